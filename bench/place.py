"""Where generated data lives between runs: `.bench/` at the root of the project, outside git.

A directory here is either complete or absent. It is built under another name, described by a `_made.json`, and renamed
when it is whole, so that an interrupted run leaves nothing that a later one could mistake for data.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DESCRIPTION = "_made.json"

Recipe = Mapping[str, object]
"""Everything that decides what a directory holds: the kind of data, its scale, its seed, the version of its maker."""


def cache_root() -> Path:
    """Return the directory of all generated data: `$SKIPSTONE_BENCH`, else `.bench/` at the root of the project."""
    return Path(os.environ.get("SKIPSTONE_BENCH", ROOT / ".bench"))


def cached(kind: str, recipe: Recipe, make: Callable[[Path], None], root: Path | None = None) -> Path:
    """Return the directory that `recipe` describes, made by `make(directory)` unless it is already whole.

    >>> import tempfile
    >>> def make(directory):
    ...     _ = (directory / "a.txt").write_text("1")
    >>> with tempfile.TemporaryDirectory() as t:
    ...     here = cached("letters", {"scale": 1}, make, root=Path(t))
    ...     again = cached("letters", {"scale": 1}, lambda directory: 1 / 0, root=Path(t))
    ...     here == again, sorted(file.name for file in here.iterdir())
    (True, ['_made.json', 'a.txt'])
    """
    canonical = json.dumps(dict(recipe), sort_keys=True, default=str)
    home = (root or cache_root()) / kind
    place = home / f"{_slug(recipe)}-{hashlib.sha256(canonical.encode()).hexdigest()[:10]}"
    if is_whole(place, canonical):
        return place
    home.mkdir(parents=True, exist_ok=True)
    with unfinished(place) as draft:
        make(draft)
        files = {str(f.relative_to(draft)): f.stat().st_size for f in sorted(draft.rglob("*")) if f.is_file()}
        described = {"recipe": json.loads(canonical), "files": files}
        (draft / DESCRIPTION).write_text(json.dumps(described, indent=1, sort_keys=True))
    return place


def is_whole(place: Path, canonical_recipe: str) -> bool:
    """Return whether every file that was made for this recipe is still there at its full size."""
    try:
        described = json.loads((place / DESCRIPTION).read_text())
        if json.dumps(described["recipe"], sort_keys=True) != canonical_recipe:
            return False
        return all((place / name).stat().st_size == size for name, size in described["files"].items())
    except (OSError, ValueError, KeyError):
        return False


@contextmanager
def unfinished(place: Path) -> Iterator[Path]:
    """Yield a scratch directory that takes the name `place` if the block succeeds, and vanishes if it does not."""
    draft = place.with_name(f"{place.name}.unfinished-{os.getpid()}")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        yield draft
        shutil.rmtree(place, ignore_errors=True)
        draft.rename(place)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _slug(recipe: Recipe) -> str:
    """Return the short values of a recipe as a readable part of a directory name."""
    words = (f"{key}{value}" for key, value in recipe.items() if len(str(value)) <= 24)
    return "-".join("".join(c if c.isalnum() or c in "._" else "_" for c in word) for word in words)[:80]

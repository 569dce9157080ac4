"""Generated data is either whole or not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.place import cached


def write_two_files(directory: Path) -> None:
    (directory / "a.bin").write_bytes(b"12345")
    (directory / "b.bin").write_bytes(b"678")


def must_not_be_made(directory: Path) -> None:
    raise AssertionError("whole data was made again")


def test_data_is_made_once(tmp_path: Path) -> None:
    first = cached("kind", {"scale": 1}, write_two_files, root=tmp_path)
    assert cached("kind", {"scale": 1}, must_not_be_made, root=tmp_path) == first


def test_another_recipe_is_other_data(tmp_path: Path) -> None:
    first = cached("kind", {"scale": 1}, write_two_files, root=tmp_path)
    assert cached("kind", {"scale": 2}, write_two_files, root=tmp_path) != first


def test_a_maker_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    def fail_halfway(directory: Path) -> None:
        (directory / "a.bin").write_bytes(b"123")
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        cached("kind", {"scale": 1}, fail_halfway, root=tmp_path)
    assert list((tmp_path / "kind").iterdir()) == []


@pytest.mark.parametrize("damage", ["missing", "shorter", "no description", "garbled description", "other recipe"])
def test_damaged_data_is_made_again(tmp_path: Path, damage: str) -> None:
    place = cached("kind", {"scale": 1}, write_two_files, root=tmp_path)
    if damage == "missing":
        (place / "a.bin").unlink()
    elif damage == "shorter":
        (place / "a.bin").write_bytes(b"12")
    elif damage == "no description":
        (place / "_made.json").unlink()
    elif damage == "garbled description":
        (place / "_made.json").write_text("{")
    else:
        (place / "_made.json").write_text('{"recipe": {"scale": 3}, "files": {}}')
    assert cached("kind", {"scale": 1}, write_two_files, root=tmp_path) == place
    assert (place / "a.bin").read_bytes() == b"12345"

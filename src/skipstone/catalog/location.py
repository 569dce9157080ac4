"""Where a table lives: a URI, the options that open it, and the few file operations that the catalog and store need."""

from __future__ import annotations

import functools
import os
import posixpath
import urllib.parse
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs

from skipstone.errors import InvalidInput, SkipstoneError, StorageFailed

__all__ = ["Location", "StoredFile", "told_as_damage"]


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file below a location: its path relative to it, its size, and when it was last written."""

    path: str
    size: int
    modified: datetime


@dataclass(frozen=True, slots=True)
class Location:
    """A directory of a local disk or an object store, and the storage options that open it; small and picklable.

    Options carry delta-rs's names (`AWS_REGION`, `AWS_ENDPOINT_URL`, ...), in any case, and are passed on to it as they
    are; those that pyarrow's file systems know are translated for them.

    >>> Location.at("/data/lake/sales").child("data").uri
    '/data/lake/sales/data'
    """

    uri: str
    options: tuple[tuple[str, str], ...] = ()

    @classmethod
    def at(cls, uri: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Location:
        """Name a place by path or URI. Relative paths are made absolute, so that other processes find them too."""
        text = os.fspath(uri)
        if not text:
            raise InvalidInput("a location needs a path or a URI; it was empty")
        if text.startswith("file:"):
            text = urllib.parse.unquote(urllib.parse.urlsplit(text).path)
        if "://" not in text:
            text = os.path.abspath(text)
        return cls(text.rstrip("/") or "/", tuple(sorted((options or {}).items())))

    @property
    def is_local(self) -> bool:
        """Whether this is a directory of the local file system."""
        return "://" not in self.uri

    @property
    def storage_options(self) -> dict[str, str] | None:
        """The options as delta-rs takes them."""
        return dict(self.options) or None

    def child(self, *parts: str) -> Location:
        """A place below this one."""
        return Location(posixpath.join(self.uri, *parts), self.options)

    def filesystem(self) -> tuple[Any, str]:
        """Open pyarrow's file system for this place and give it with the path inside it."""
        return _filesystem(self.uri, self.options)

    def read(self, path: str) -> bytes:
        """Read a small file whole; FileNotFoundError where there is none."""
        filesystem, base = self.filesystem()
        with filesystem.open_input_stream(posixpath.join(base, path)) as stream:
            return bytes(stream.read())

    def write(self, path: str, content: bytes) -> None:
        """Write a small file so that it is there whole or not at all, replacing one of its name."""
        filesystem, base = self.filesystem()
        target = posixpath.join(base, path)
        if not self.is_local:
            # Object stores show an object only once its upload is complete.
            with filesystem.open_output_stream(target) as stream:
                stream.write(content)
            return
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        unfinished = f"{target}.{uuid.uuid4().hex}.unfinished"
        with open(unfinished, "wb") as file:
            file.write(content)
        os.replace(unfinished, target)

    def exists(self, path: str) -> bool:
        """Whether there is a file of this name."""
        filesystem, base = self.filesystem()
        info = filesystem.get_file_info(posixpath.join(base, path))
        return bool(info.type == pyarrow.fs.FileType.File)

    def require_no_file(self) -> None:
        """Refuse a place that is a file, where a directory of tables is or is to be."""
        filesystem, base = self.filesystem()
        if filesystem.get_file_info(base).type == pyarrow.fs.FileType.File:
            raise InvalidInput(f"{self.uri} is a file, and not a directory of tables")

    def missing(self, paths: list[str]) -> list[str]:
        """Name those of the paths at which there is no file, in the order given."""
        filesystem, base = self.filesystem()
        infos = filesystem.get_file_info([posixpath.join(base, path) for path in paths])
        return [path for path, info in zip(paths, infos, strict=True) if info.type != pyarrow.fs.FileType.File]

    def directories(self) -> tuple[str, ...]:
        """Name the directories right below this place, sorted; none where there is nothing."""
        self.require_no_file()
        filesystem, base = self.filesystem()
        infos = filesystem.get_file_info(pyarrow.fs.FileSelector(base, allow_not_found=True))
        return tuple(sorted(info.base_name for info in infos if info.type == pyarrow.fs.FileType.Directory))

    def list(self, path: str = "") -> Iterator[StoredFile]:
        """List the files below a path, at any depth, by name."""
        filesystem, base = self.filesystem()
        selector = pyarrow.fs.FileSelector(posixpath.join(base, path), allow_not_found=True, recursive=True)
        infos = filesystem.get_file_info(selector)
        files = (info for info in infos if info.type == pyarrow.fs.FileType.File)
        for info in sorted(files, key=lambda info: str(info.path)):
            modified = info.mtime or datetime.fromtimestamp(0, UTC)
            yield StoredFile(posixpath.relpath(info.path, base), info.size, modified)

    def delete(self, path: str) -> None:
        """Delete a file; one that is gone already is no error, for two cleaners may meet."""
        filesystem, base = self.filesystem()
        try:
            filesystem.delete_file(posixpath.join(base, path))
        except FileNotFoundError:
            return
        if self.is_local:
            _remove_empty_parents(Path(base), Path(base, path).parent)


@contextmanager
def told_as_damage(place: Location, path: str) -> Iterator[None]:
    """Say of a file of ours that cannot be read which one it is: nobody asked for anything wrong.

    That there is none is told as it is; whoever knows why will say so.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except (pa.ArrowException, ValueError, OSError) as error:
        if isinstance(error, SkipstoneError):
            raise
        reason = (str(error).splitlines() or ["no reason given"])[0]
        raise StorageFailed(f"{place.uri}/{path} cannot be read: {reason}") from error


def _remove_empty_parents(base: Path, directory: Path) -> None:
    # Directories exist only on file systems; an empty one is left behind by a chunk that has been rewritten.
    while directory != base and base in directory.parents:
        try:
            directory.rmdir()
        except OSError:
            return
        directory = directory.parent


@functools.lru_cache(maxsize=64)
def _filesystem(uri: str, options: tuple[tuple[str, str], ...]) -> tuple[Any, str]:
    if "://" not in uri:
        return pyarrow.fs.LocalFileSystem(), uri
    scheme = uri.partition("://")[0].lower()
    known = {name.lower(): value for name, value in options}
    rest = uri.partition("://")[2]
    if scheme in ("s3", "s3a"):
        return pyarrow.fs.S3FileSystem(**_s3_arguments(known)), rest
    if scheme in ("gs", "gcs"):
        return pyarrow.fs.GcsFileSystem(**_gcs_arguments(known)), rest
    if scheme in ("abfs", "abfss", "az"):
        return _azure(rest, known)
    try:
        filesystem, path = pyarrow.fs.FileSystem.from_uri(uri)
    except pa.ArrowInvalid as error:
        raise InvalidInput(f"{uri} cannot be opened: {str(error).splitlines()[0]}") from error
    return filesystem, path


def _pick(known: Mapping[str, str], *names: str) -> str | None:
    return next((known[name] for name in names if name in known), None)


def _s3_arguments(known: Mapping[str, str]) -> dict[str, Any]:
    endpoint = _pick(known, "aws_endpoint_url", "aws_endpoint", "endpoint_url", "endpoint")
    scheme = "http" if endpoint is not None and endpoint.startswith("http://") else "https"
    arguments = {
        "access_key": _pick(known, "aws_access_key_id", "access_key_id"),
        "secret_key": _pick(known, "aws_secret_access_key", "secret_access_key"),
        "session_token": _pick(known, "aws_session_token", "session_token"),
        "region": _pick(known, "aws_region", "aws_default_region", "region"),
        "endpoint_override": endpoint.partition("://")[2] or endpoint if endpoint else None,
        "scheme": scheme,
    }
    return {name: value for name, value in arguments.items() if value is not None}


def _gcs_arguments(known: Mapping[str, str]) -> dict[str, Any]:
    endpoint = _pick(known, "google_base_url", "base_url", "endpoint")
    if endpoint is None:
        return {}
    return {"endpoint_override": endpoint.partition("://")[2] or endpoint, "scheme": endpoint.partition("://")[0]}


def _azure(rest: str, known: Mapping[str, str]) -> tuple[Any, str]:
    authority, _, path = rest.partition("/")
    container, _, host = authority.partition("@")
    account = _pick(known, "azure_storage_account_name", "account_name") or host.partition(".")[0]
    arguments = {
        "account_name": account,
        "account_key": _pick(known, "azure_storage_account_key", "account_key"),
        "sas_token": _pick(known, "azure_storage_sas_token", "sas_token"),
    }
    filesystem = pyarrow.fs.AzureFileSystem(**{name: value for name, value in arguments.items() if value is not None})
    return filesystem, f"{container}/{path}"

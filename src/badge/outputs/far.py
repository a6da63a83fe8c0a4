"""Outputs in an object store (`s3://…`, `gs://…`, `memory://…`), by fsspec: whole objects, and a copy on this machine's disk.

    url/parts.json                 as in a directory; a part is listed with its digest
    url/part-<key>/outputs.json    as in a directory, and the digest of each file; written last: the part is complete
    url/part-<key>/…               its files, as they are

A copy lies in `cache_folder()/outputs`, under the digest: what was fetched once is not fetched again, and a part that has
changed is another one. Copies may be deleted at any time.
"""

import hashlib
import os
import re
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from badge.core.writing import cache_folder, folder_for, writing_to
from badge.errors import BadgeError, InputError, MissingExtraError, WriteError, in_short
from badge.outputs import store

#: Which extra brings the library for a kind of URL.
EXTRAS = {"s3": ("s3fs", "s3"), "s3a": ("s3fs", "s3"), "gs": ("gcsfs", "gs"), "gcs": ("gcsfs", "gs")}
#: Bytes that are read at once.
BLOCK = 2**24
DELETE = "delete the part and predict again"


@dataclass(frozen=True)
class Far:
    """A folder in an object store. Objects are written whole."""

    where: str

    def __str__(self) -> str:
        return self.where

    def scratch(self, name: str) -> Path:
        """A folder beside the copies, to make a part in."""
        return folder_for(cache_folder() / "outputs") / f".{name}-{uuid.uuid4().hex[:8]}"

    def read(self, names: Sequence[str]) -> dict[str, bytes]:
        """The objects of these names that are there."""
        with self._files() as (files, root):
            found = files.cat([f"{root}/{name}" for name in names], on_error="return")
            for content in found.values():
                if isinstance(content, Exception) and not isinstance(content, FileNotFoundError):
                    raise content
        contents = {name: found[f"{root}/{name}"] for name in names}
        return {name: content for name, content in contents.items() if isinstance(content, bytes)}

    def write(self, name: str, content: bytes) -> None:
        with self._files(writing=True) as (files, root):
            files.pipe_file(f"{root}/{name}", content)

    def names(self) -> list[str]:
        """What is directly in the folder."""
        with self._files() as (files, root):
            files.invalidate_cache()
            try:
                return sorted(Path(path).name for path in files.ls(root, detail=False))
            except FileNotFoundError:
                return []

    def remove(self, name: str) -> None:
        with self._files(writing=True) as (files, root):
            files.rm(f"{root}/{name}", recursive=True)

    def take(self, folder: Path, name: str) -> str:
        """Write the part in `folder` to the store, and keep it as the copy of this machine; its digest."""
        files = [file for file in sorted(folder.iterdir()) if file.name != store.META]
        text = replace(store.meta_of(folder), files={file.name: _digest(file) for file in files}).text().encode()
        try:
            with self._files(writing=True) as (system, root):
                for file in files:
                    system.put_file(str(file), f"{root}/{name}/{file.name}")
            self.write(f"{name}/{store.META}", text)
            settle(folder, self._copy(name, _sum(text)))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return _sum(text)

    def metas(self, names: Sequence[str]) -> list[tuple[store.Meta, str] | None]:
        """The outputs.json of each of these parts and its digest; None for a part that is not there."""
        found = self.read([f"{name}/{store.META}" for name in names])
        contents = [found.get(f"{name}/{store.META}") for name in names]
        return [None if text is None else (self._meta(text), _sum(text)) for text in contents]

    def copy(self, name: str, digest: str) -> Path:
        """The part `name` on this machine's disk; fetched unless a copy with this digest is there."""
        target = self._copy(name, digest)
        if target.is_dir():
            return target
        text = self.read([f"{name}/{store.META}"]).get(f"{name}/{store.META}")
        if text is None or _sum(text) != digest:
            how = "is missing" if text is None else "was changed since parts.json was written"
            raise InputError(f"{self}/{name} {how}: run the same badge.cluster.predict again")
        hidden = folder_for(self.scratch(name))
        try:
            for file, known in self._meta(text).files.items():
                with self._files() as (system, root), writing_to(hidden):
                    system.get_file(f"{root}/{name}/{Path(file).name}", str(hidden / Path(file).name))
                if _digest(hidden / Path(file).name) != known:
                    raise InputError(f"{self}/{name}/{file} was changed since it was written: {DELETE}")
            (hidden / store.META).write_bytes(text)
            for array, changed in zip(store.ARRAYS, store.read_progress(hidden).changed, strict=True):
                os.utime(hidden / f"{array}.npy", ns=(changed, changed))  # its digest is right: it is trusted unread
            settle(hidden, target)
        finally:
            shutil.rmtree(hidden, ignore_errors=True)
        return target

    def _copy(self, name: str, digest: str) -> Path:
        return cache_folder() / "outputs" / _sum(self.where.encode())[:16] / f"{name}-{digest}"

    def _meta(self, text: bytes) -> store.Meta:
        what = f"{self}: {store.META} of a part"
        meta = store.Meta.parsed(text, what, DELETE)
        if not meta.files:
            raise InputError(f"{what} is damaged: {DELETE}")
        return meta

    def sees(self, part: Any) -> bool:
        """All see an object store."""
        return True

    def named(self, part: Any, meta: store.Meta) -> bool:
        """Whether the rows of a part have names."""
        return store.IDS in meta.files

    @contextmanager
    def _files(self, writing: bool = False) -> Iterator[tuple[Any, str]]:
        """The file system of the folder and its path there; an error of either becomes one line."""
        try:
            yield _opened(self.where)
        except BadgeError:
            raise
        except Exception as error:  # each kind of store has its own errors
            if writing:
                raise WriteError(f"{self} cannot be written: {in_short(error)}") from error
            if isinstance(error, FileNotFoundError):
                raise
            raise InputError(f"{self} cannot be read: {in_short(error)}") from error


@dataclass(frozen=True)
class FarPart:
    """A part in an object store, as far as it is known without reading its rows."""

    place: Far
    name: str
    digest: str
    forms: tuple[store.Form, ...]

    def form(self, array: str) -> tuple[int, torch.dtype]:
        columns, kind = self.forms[store.ARRAYS.index(array)]
        return columns, getattr(torch, kind)

    def here(self) -> Path:
        return self.place.copy(self.name, self.digest)


@cache
def _opened(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it."""
    import fsspec

    kind = re.split(r"::|:/", url)[0]
    try:
        files, root = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:
        if isinstance(error, ImportError) and kind in EXTRAS:
            raise MissingExtraError(f"{kind}://", *EXTRAS[kind]) from None
        raise InputError(f"{url} cannot be opened: {in_short(error)}") from error
    return files, str(root).rstrip("/")


def settle(hidden: Path, target: Path) -> None:
    """Give a part or a copy its name, unless another process has made it meanwhile."""
    folder_for(target.parent)
    with writing_to(target):
        try:
            hidden.rename(target)
        except OSError:
            shutil.rmtree(hidden, ignore_errors=True)
            if not target.is_dir():
                raise


def _digest(file: Path) -> str:
    found = hashlib.blake2b(digest_size=16)
    with file.open("rb") as stream:
        while block := stream.read(BLOCK):
            found.update(block)
    return found.hexdigest()


def _sum(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=16).hexdigest()

"""Images as a pool: files, or a folder searched recursively; decoded with Pillow."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from badge.core.progress import bar
from badge.errors import DataError, MissingExtraError

__all__ = ["CONTENT_TYPES", "ImageFiles", "ImageFolder"]

#: ending -> content type; nothing else is ever served
CONTENT_TYPES = {
    ".gif": "image/gif",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
}
#: pixels along a side that a model is given at least, where the file has them
LARGEST = 256


class ImageFiles:
    """Images by their paths, as a pool whose items are RGB pictures of Pillow."""

    def __init__(self, paths: Sequence[Path], names: Sequence[str] | None = None) -> None:
        self.paths = list(paths)
        self.names = [path.name for path in self.paths] if names is None else list(names)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, position: int) -> Any:
        return self._open(position).convert("RGB")

    def digest(self) -> str:
        """Names, sizes and times of change of all files: cheap, and different when one of them is."""
        about = hashlib.sha256()
        for name, path in zip(self.names, self.paths, strict=True):
            stat = path.stat()
            about.update(f"{name}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode(errors="surrogateescape"))
        return about.hexdigest()

    def small(self, side: int, progress: bool = False) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """All images as bytes [N, 3, side, side], squeezed to a square."""
        pixels = np.empty((len(self), 3, side, side), dtype=np.uint8)
        with bar("reading images", len(self), enabled=progress) as advance:
            for position in range(len(self)):
                pixels[position] = np.asarray(self[position].resize((side, side))).transpose(2, 0, 1)
                advance(1)
        return pixels

    def _open(self, position: int) -> Any:
        """A picture of Pillow; one that cannot be read is black for the model, and a person can skip it."""
        try:
            from PIL import Image
        except ImportError:
            raise MissingExtraError("labelling images", "pillow", "label") from None
        try:
            image = Image.open(self.paths[position])
            image.draft("RGB", (LARGEST, LARGEST))  # a large JPEG is decoded at about this size, many times faster
            image.load()
            return image
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
            return Image.new("RGB", (1, 1))


class ImageFolder(ImageFiles):
    """The images below a folder. Ids are paths relative to it; links that lead out of it are left out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        found = sorted(
            path for path in self.folder.rglob("*") if path.suffix.lower() in CONTENT_TYPES and path.is_file()
        )
        paths = [path for path in found if path.resolve().is_relative_to(self.folder)]
        if len(paths) < 2:
            endings = ", ".join(CONTENT_TYPES)
            raise DataError(f"{folder} holds {len(paths)} images ({endings}): at least 2 are needed")
        names = [path.relative_to(self.folder).as_posix() for path in paths]
        for name in names:
            if name.encode("utf-8", "replace").decode() != name:
                raise DataError(f"the file name {name!r} is not UTF-8: rename it")
        super().__init__(paths, names)

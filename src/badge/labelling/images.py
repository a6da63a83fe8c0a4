"""Images as a pool: files, or a folder searched recursively; decoded with Pillow."""

import hashlib
import io
import struct
import threading
import zlib
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from badge.core.importing import needs
from badge.core.progress import bar
from badge.errors import DataError, in_short

#: files with these endings are images; nothing else is ever served
ENDINGS = (".gif", ".jpeg", ".jpg", ".png", ".webp")
#: what Pillow raises about a file that is not an image, is damaged, or is too large
UNREADABLE = (OSError, SyntaxError, ValueError, KeyError, struct.error, zlib.error, EOFError)
#: pixels along the longer side of what a person is sent, and of what a model gets at least where the file has them
SCREEN, LARGEST = 2048, 256
#: pixels of the largest image that is decoded, which take 3 bytes each; a JPEG is decoded smaller
MOST_PIXELS = 100_000_000
#: images that are decoded at the same time, and those sent last that are kept
AT_ONCE, KEPT = threading.Semaphore(2), 16


def picture_of(path: Path, side: int) -> Any:
    """An image as people see it: RGB of 8 bits, upright, the first frame, transparent parts white.

    The longer side may be larger than `side`, but the image is never larger than MOST_PIXELS. An `OSError` or a
    `ValueError` says why it cannot be read.
    """
    from PIL import Image, ImageOps

    with _opened(path) as image:
        image.draft("RGB", (side, side))  # a large JPEG is decoded at about this size, many times faster
        if image.width * image.height > MOST_PIXELS:
            raise ValueError(f"it has {image.width:,} × {image.height:,} pixels, and {MOST_PIXELS:,} are read at most")
        image.load()
        upright = ImageOps.exif_transpose(image)
    if upright.mode.startswith("I"):  # 16 bits: the upper 8 are what a screen shows
        upright = Image.fromarray((np.asarray(upright).astype(np.uint32) >> 8).clip(0, 255).astype(np.uint8))
    if upright.has_transparency_data:
        upright = Image.alpha_composite(Image.new("RGBA", upright.size, "white"), upright.convert("RGBA"))
    return upright.convert("RGB")


def _opened(path: Path) -> Any:
    """A file of Pillow, not decoded. JPEG and PNG directly: `Image.open` refuses large ones before their size is known."""
    from PIL import Image, JpegImagePlugin, PngImagePlugin

    with path.open("rb") as file:
        head = file.read(2)
    if head in (b"\xff\xd8", b"\x89P"):
        return (JpegImagePlugin.JpegImageFile if head == b"\xff\xd8" else PngImagePlugin.PngImageFile)(path)
    try:
        return Image.open(path)
    except Image.DecompressionBombError:
        raise ValueError(f"it has more than {MOST_PIXELS:,} pixels") from None


def _is_plain(path: Path) -> str | None:
    """The content type of a file that every browser shows as `picture_of` does; None: it has to be made."""
    from PIL import Image

    with _opened(path) as image:
        plain = (
            image.format in ("JPEG", "PNG", "WEBP")
            and image.mode in ("L", "RGB", "P")
            and not image.has_transparency_data
            and max(image.size) <= SCREEN
            and image.getexif().get(0x0112, 1) == 1
            and getattr(image, "n_frames", 1) == 1
        )
        return Image.MIME[str(image.format)] if plain else None


class ImageFiles:
    """Images by their paths: a pool of RGB pictures of Pillow."""

    def __init__(self, paths: Sequence[Path], names: Sequence[str] | None = None) -> None:
        self.paths = list(paths)
        self.names = [path.name for path in self.paths] if names is None else list(names)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, position: int) -> Any:
        """An image for the model; one that cannot be read is black, and a person can skip it."""
        with needs("labelling images", "pillow", "label"):
            from PIL import Image
        try:
            return picture_of(self.paths[position], LARGEST)
        except UNREADABLE:
            return Image.new("RGB", (1, 1))

    def shown(self, position: int) -> tuple[str, bytes]:
        """Content type and bytes for a person: the file, or a picture made from it that fits the screen."""
        path = self.paths[position]
        try:
            stat = path.stat()
            return _sent(path, stat.st_size, stat.st_mtime_ns)
        except UNREADABLE as error:
            raise DataError(f"{self.names[position]} cannot be shown: {in_short(error)}") from None

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


@lru_cache(KEPT)
def _sent(path: Path, size: int, changed: int) -> tuple[str, bytes]:
    with AT_ONCE:
        with suppress(*UNREADABLE):
            if (media := _is_plain(path)) is not None:
                return media, path.read_bytes()
        picture, body = picture_of(path, SCREEN), io.BytesIO()
        picture.thumbnail((SCREEN, SCREEN))
        kind = "png" if path.suffix.lower() == ".png" and size <= 2**20 else "jpeg"
        picture.save(body, kind, quality=92)
    return f"image/{kind}", body.getvalue()


class ImageFolder(ImageFiles):
    """The images below a folder. Ids are paths relative to it; links that lead out of it are left out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        found = sorted(path for path in self.folder.rglob("*") if path.suffix.lower() in ENDINGS and path.is_file())
        paths = [path for path in found if path.resolve().is_relative_to(self.folder)]
        if len(paths) < 2:
            raise DataError(f"{folder} holds {len(paths)} images ({', '.join(ENDINGS)}): at least 2 are needed")
        names = [path.relative_to(self.folder).as_posix() for path in paths]
        for name in names:
            if name.encode("utf-8", "replace").decode() != name:
                raise DataError(f"the file name {name!r} is not UTF-8: rename it")
        super().__init__(paths, names)

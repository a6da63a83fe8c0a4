"""Images as a pool: files, or a folder searched recursively; decoded with Pillow, a very large PNG strip by strip."""

import hashlib
import io
import os
import struct
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import numpy as np

from badge.errors import DataError, MissingExtraError, in_short

with suppress(ImportError):  # pools of images need it alone
    from PIL import Image, ImageOps, JpegImagePlugin, PngImagePlugin

#: files with these endings are images; nothing else is ever served
ENDINGS = (".gif", ".jpeg", ".jpg", ".png", ".webp")
#: what Pillow raises about a file that is not an image, is damaged, or is too large
UNREADABLE = (OSError, SyntaxError, ValueError, KeyError, AssertionError, struct.error, zlib.error, EOFError)
#: the longer side, in pixels: at most this for a person; at least this for a model, if the file has as many
SCREEN, LARGEST = 2048, 256
#: pixels that are decoded at once; a PNG of more is read in strips, a JPEG is decoded smaller
MOST_PIXELS = 50_000_000
#: images that are decoded at the same time, and those sent last that are kept
AT_ONCE, KEPT = threading.Semaphore(2), 16


def picture_of(path: Path, side: int) -> Any:
    """An image as people see it: RGB of 8 bits, upright, the first frame, transparent parts white.

    The longer side may be larger than `side`, but the image is never larger than MOST_PIXELS. An `OSError` or a
    `ValueError` says why it cannot be read.
    """
    size = png_size(path)
    if size is not None and size[0] * size[1] > MOST_PIXELS:
        return reduced_png(path, SCREEN)
    with _opened(path) as image:
        image.draft("RGB", (side, side))  # a large JPEG is decoded at about this size, many times faster
        if image.width * image.height > MOST_PIXELS:
            raise ValueError(f"it has {image.width:,} × {image.height:,} pixels, and {MOST_PIXELS:,} are read at most")
        image.load()
        return _as_shown(ImageOps.exif_transpose(image))


def _as_shown(image: Any) -> Any:
    """RGB of 8 bits: of 16 bits the upper 8, transparent parts white."""
    if image.mode.startswith("I"):
        image = Image.fromarray((np.asarray(image).astype(np.uint32) >> 8).clip(0, 255).astype(np.uint8))
    if _is_transparent(image):
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA"))
    return image.convert("RGB")


def _is_transparent(image: Any) -> bool:
    """Whether a part of it is. Older versions of Pillow ask the palette, which a damaged file may lack."""
    return (image.mode != "P" or image.palette is not None) and bool(image.has_transparency_data)


def _opened(path: Path) -> Any:
    """A file of Pillow, not decoded. JPEG and PNG directly, since `Image.open` refuses those that can be read in parts."""
    with path.open("rb") as file:
        head = file.read(2)
    if head in (b"\xff\xd8", b"\x89P"):
        return (JpegImagePlugin.JpegImageFile if head == b"\xff\xd8" else PngImagePlugin.PngImageFile)(path)
    try:
        return Image.open(path)
    except Image.DecompressionBombError:
        raise ValueError(f"it has more than {MOST_PIXELS:,} pixels") from None


def _plain_media(path: Path) -> str | None:
    """The content type of a file that browsers show as `picture_of` does; None: another picture has to be made of it."""
    with _opened(path) as image:
        plain = (
            image.format in ("JPEG", "PNG", "WEBP")
            and image.mode in ("L", "RGB", "P")
            and not _is_transparent(image)
            and max(image.size) <= SCREEN
            and image.getexif().get(0x0112, 1) == 1
            and getattr(image, "n_frames", 1) == 1
        )
        return Image.MIME[str(image.format)] if plain else None


class ImageFiles:
    """Images by their paths: a pool of RGB pictures of Pillow."""

    def __init__(self, paths: Sequence[Path], names: Sequence[str] | None = None) -> None:
        if find_spec("PIL") is None:
            raise MissingExtraError("labelling images", "pillow", "label")
        self.paths = list(paths)
        self.names = [path.name for path in self.paths] if names is None else list(names)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, position: int) -> Any:
        """An image for the model; one that cannot be read is black, and a person can skip it."""
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
            said = str(error).replace(f"{path.parent}{os.sep}", "")  # where the folder lies is the server's own affair
            raise DataError(f"{self.names[position]} cannot be shown: {in_short(said)}") from None

    def digest(self) -> str:
        """Names, sizes and times of change of all files: cheap, and different when one of them is."""
        about = hashlib.sha256()
        for name, path in zip(self.names, self.paths, strict=True):
            stat = path.stat()
            about.update(f"{name}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode(errors="surrogateescape"))
        return about.hexdigest()


@lru_cache(KEPT)
def _sent(path: Path, size: int, changed: int) -> tuple[str, bytes]:
    with AT_ONCE:
        large = png_size(path) is None or size > 2**20
        with suppress(*UNREADABLE):
            if (media := _plain_media(path)) is not None:
                return media, path.read_bytes()
        picture, body = picture_of(path, SCREEN), io.BytesIO()
        picture.thumbnail((SCREEN, SCREEN))
        picture.save(body, "JPEG" if large else "PNG", quality=92)
    return ("image/jpeg" if large else "image/png"), body.getvalue()


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


SIGNATURE = b"\x89PNG\r\n\x1a\n"
#: bytes of a strip, and of the file that are read at a time
STRIP, READ = 16 * 2**20, 2**20
#: colour type -> channels; colour type that decodes a number of bytes per pixel unchanged
CHANNELS, PLAIN = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}, {1: 0, 2: 4, 3: 2, 4: 6}


def png_size(path: Path) -> tuple[int, int] | None:
    """Width and height of a PNG; None for other files."""
    with path.open("rb") as file:
        head = file.read(24)
    return struct.unpack(">II", head[16:24]) if head[:8] == SIGNATURE and len(head) == 24 else None


def reduced_png(path: Path, side: int) -> Any:
    """An RGB picture of Pillow, its longer side at most `side`, transparent parts white. ValueError: not this way.

    It is scaled down strip by strip, so that memory does not grow with the image. A row of a PNG is stored as differences to
    the row above: the last row of a strip, decoded, goes in front of the next. Pillow decodes a strip as a small image, first
    its bytes and then its colours.
    """
    with path.open("rb") as file:
        chunks = _chunks(file)
        _, head = next(chunks)
        width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", head)
        bits = depth * CHANNELS[colour]
        if interlaced or bits > 32:
            raise ValueError("interlaced or of more than 32 bits a pixel")
        row, step = 1 + -(-width * bits // 8), max(1, bits // 8)
        factor = -(-max(width, height) // side)
        rows = factor * max(1, STRIP // row // factor)
        picture = Image.new("RGB", (-(-width // factor), -(-height // factor)), "white")
        extra: dict[bytes, bytes] = {}
        above, top = bytes(row), 0  # a row of zeros stands above the first
        for strip in _strips(chunks, row * rows, extra):
            plain = _small_png((row - 1) // step, 8, PLAIN[step], above + strip, row, {})
            decoded = np.asarray(plain).reshape(-1, row - 1)[1:]
            stored = np.pad(decoded, ((0, 0), (1, 0)))  # as they are, not as differences
            part = _as_shown(_small_png(width, depth, colour, stored.tobytes(), row, extra)).reduce(factor)
            picture.paste(part, (0, top // factor))
            above, top = stored[-1].tobytes(), top + len(stored)
    return picture


def _chunks(file: IO[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Kind and content of each chunk; image data in parts."""
    file.seek(len(SIGNATURE))
    while len(head := file.read(8)) == 8:
        length, kind = struct.unpack(">I4s", head)
        if kind == b"IDAT":
            for start in range(0, length, READ):
                yield kind, file.read(min(READ, length - start))
        else:
            yield kind, file.read(length)
        file.seek(4, 1)


def _strips(chunks: Iterator[tuple[bytes, bytes]], size: int, extra: dict[bytes, bytes]) -> Iterator[bytes]:
    """The inflated data in parts of `size` bytes; palette and transparency go to `extra`."""
    inflate, held = zlib.decompressobj(), bytearray()
    for kind, data in chunks:
        if kind in (b"PLTE", b"tRNS"):
            extra[kind] = data
        while kind == b"IDAT" and data:
            held += inflate.decompress(data, size - len(held))
            data = inflate.unconsumed_tail
            if len(held) == size:
                yield bytes(held)
                held.clear()
    if held:
        yield bytes(held)


def _small_png(width: int, depth: int, colour: int, data: bytes, row: int, extra: dict[bytes, bytes]) -> Any:
    """Stored rows of `row` bytes as an image of Pillow."""
    head = struct.pack(">IIBBBBB", width, len(data) // row, depth, colour, 0, 0, 0)
    whole = data[: len(data) // row * row]  # the last row of a torn file
    parts = ((b"IHDR", head), *extra.items(), (b"IDAT", zlib.compress(whole, 0)), (b"IEND", b""))
    pack = struct.Struct(">I").pack
    body = b"".join(pack(len(part)) + kind + part + pack(zlib.crc32(kind + part)) for kind, part in parts)
    return PngImagePlugin.PngImageFile(io.BytesIO(SIGNATURE + body))

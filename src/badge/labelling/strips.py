"""A very large PNG scaled down while it is read: strips of rows, so that memory does not grow with the image.

A row of a PNG is stored as differences to the row above. So the last row of a strip, decoded, goes in front of the next
strip, and Pillow decodes each strip as a small image.
"""

import io
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
#: bytes of a strip, and of the file that are read at a time
STRIP, READ = 16 * 2**20, 2**20
#: colour type -> channels; colour type that decodes a number of bytes per pixel unchanged
CHANNELS, PLAIN = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}, {1: 0, 2: 4, 3: 2, 4: 6}

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def png_size(path: Path) -> tuple[int, int] | None:
    """Width and height of a PNG; None: it is none."""
    with path.open("rb") as file:
        head = file.read(24)
    return struct.unpack(">II", head[16:24]) if head[:8] == SIGNATURE and len(head) == 24 else None


def reduced_png(path: Path, side: int) -> Any:
    """An RGB picture of Pillow whose longer side is at most `side`; transparent parts are white. ValueError: not this way."""
    from PIL import Image

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
            raw = _decoded(above + strip, row, step)
            above, raw = b"\0" + raw[-1].tobytes(), raw[1:]
            part = Image.fromarray(_colours(raw, width, depth, colour, extra)).reduce(factor)
            picture.paste(part, (0, top // factor))
            top += len(raw)
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


def _decoded(data: bytes, row: int, step: int) -> Bytes:
    """Rows of stored bytes as rows of pixels' bytes: [rows, row − 1]."""
    from PIL.PngImagePlugin import PngImageFile

    rows = len(data) // row
    head = struct.pack(">IIBBBBB", (row - 1) // step, rows, 8, PLAIN[step], 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(data[: rows * row], 0)), (b"IEND", b""))
    body = b"".join(
        struct.pack(">I", len(part)) + kind + part + struct.pack(">I", zlib.crc32(kind + part)) for kind, part in parts
    )
    decoded: Bytes = np.asarray(PngImageFile(io.BytesIO(SIGNATURE + body)))
    return decoded.reshape(rows, row - 1)


def _colours(raw: Bytes, width: int, depth: int, colour: int, extra: dict[bytes, bytes]) -> Bytes:
    """Pixels as [rows, width, 3]; transparent parts become white."""
    rows = len(raw)
    if depth < 8:
        bits = np.unpackbits(raw, axis=1).reshape(rows, -1, depth)
        values = (bits @ (1 << np.arange(depth)[::-1])).astype(np.uint8)[:, :width]
        pixels = (values if colour == 3 else values * (255 // (2**depth - 1)))[:, :, None]
    else:
        pixels = raw.reshape(rows, width, CHANNELS[colour], depth // 8)[..., 0]  # of 16 bits the upper 8
    if colour == 3:
        palette = np.frombuffer(extra[b"PLTE"].ljust(768, b"\0"), np.uint8).reshape(256, 3)
        opacity = np.frombuffer(extra.get(b"tRNS", b"").ljust(256, b"\xff"), np.uint8)
        pixels = np.concatenate([palette[pixels[..., 0]], opacity[pixels]], axis=2)
    if pixels.shape[2] in (2, 4):
        alpha = pixels[..., -1:].astype(np.uint16)
        pixels = ((pixels[..., :-1] * alpha + 255 * (255 - alpha)) // 255).astype(np.uint8)
    return np.ascontiguousarray(np.broadcast_to(pixels, (rows, width, 3)))

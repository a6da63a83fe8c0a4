"""The model sees what the person sees: 16 bits, rotation, CMYK, palettes, transparency, animation, very large files."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import badge.labelling.images as strips
from badge.errors import DataError
from badge.labelling.images import SCREEN, ImageFiles, ImageFolder, picture_of
from pages import Person, Server

image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
READ = """id => new Promise((done, fail) => {
  const shown = new Image();
  shown.onload = () => {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 8;
    const brush = canvas.getContext("2d");
    brush.drawImage(shown, 0, 0, 8, 8);
    done([shown.naturalWidth, shown.naturalHeight, [...brush.getImageData(0, 0, 8, 8).data]]);
  };
  shown.onerror = fail;
  shown.src = "/file?id=" + id;
})"""


def picture(width: int = 96, height: int = 64) -> Any:
    """Four areas of different colours: a rotated one is another picture."""
    pixels = np.zeros((height, width, 3), dtype=np.uint8)
    pixels[: height // 2, : width // 2] = (220, 30, 30)
    pixels[: height // 2, width // 2 :] = (30, 200, 60)
    pixels[height // 2 :, : width // 2] = (40, 60, 210)
    pixels[height // 2 :, width // 2 :] = (200, 180, 40)
    return image.fromarray(pixels)


def write_all(folder: Path) -> None:
    folder.mkdir()
    plain = picture()
    plain.save(folder / "plain.png")
    grey = np.repeat(np.linspace(0, 65535, 96)[None], 64, axis=0).astype(np.uint16)
    image.fromarray(grey).save(folder / "grey16.png")
    turned = image.Exif()
    turned[0x0112] = 6
    plain.save(folder / "turned.jpg", exif=turned, quality=95)
    plain.convert("CMYK").save(folder / "cmyk.jpg", quality=95)
    plain.convert("P").save(folder / "palette.png")
    clear = plain.convert("RGBA")
    clear.putalpha(image.fromarray(np.repeat(np.linspace(0, 255, 96)[None], 64, axis=0).astype(np.uint8)))
    clear.save(folder / "clear.png")
    clear.quantize(16).save(folder / "clear-palette.png")
    plain.save(folder / "moving.gif", save_all=True, append_images=[image.new("RGB", (96, 64), "black")], duration=20)
    plain.convert("L").save(folder / "grey.webp", lossless=True)
    plain.resize((3000, 1800)).save(folder / "large.jpg", quality=95)


def test_the_model_sees_what_the_browser_shows(browser: Any, tmp_path: Path) -> None:
    write_all(tmp_path / "photos")
    server = Server(tmp_path, "photos", "--classes", "a,b", "--journal", "p.jsonl")
    try:
        ann = Person(browser, server.url, color_scheme="dark")
        folder = ImageFolder(tmp_path / "photos")
        for place, name in enumerate(folder.names):
            width, height, data = ann.page.evaluate(READ, name)
            shown = np.array(data).reshape(8, 8, 4)[..., :3]
            model = np.asarray(folder[place].resize((8, 8), image.Resampling.BOX)).astype(int)
            assert np.abs(shown - model).mean() < 6, name
            assert max(width, height) <= SCREEN, name
        grey = np.asarray(folder[folder.names.index("grey16.png")])
        assert grey.min() < 3 and grey.max() > 252 and 120 < grey.mean() < 135  # 97.6 % of it was white
        assert folder[folder.names.index("turned.jpg")].size == (64, 96)
        ann.close()
    finally:
        server.kill()


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "LA", "P", "1", "I;16"])
def test_strips_are_exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """Every filter and layout of a PNG, in strips of a few rows, against the whole image decoded at once."""
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (301, 457, 3), dtype=np.uint8)
    smooth = np.linspace(0, 255, 457, dtype=np.uint8)[None, :, None] // 2 + noise // 8  # for the filters
    made = image.fromarray(np.concatenate([noise[:150], smooth[150:]]).astype(np.uint8))
    if mode in ("RGBA", "LA"):
        made = made.convert(mode)
        made.putalpha(image.fromarray(noise[..., 0]))
    elif mode == "I;16":
        made = image.fromarray(rng.integers(0, 65536, (301, 457)).astype(np.uint16))
    else:
        made = made.convert(mode)
    made.save(tmp_path / "a.png")
    monkeypatch.setattr(strips, "STRIP", 20_000)
    ours = np.asarray(strips.reduced_png(tmp_path / "a.png", 64)).astype(int)
    whole = np.asarray(picture_of(tmp_path / "a.png", 10_000).reduce(8)).astype(int)
    assert ours.shape == whole.shape and np.abs(ours - whole).max() <= 1


def large_png(path: Path, side: int, colour: int = 2) -> None:
    """A PNG of side × side pixels, written row by row; of colour type 3 it has no palette."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    deflate = zlib.compressobj(1)
    row = b"\0" + (bytes((10, 200, 30)) if colour == 2 else b"\1") * side
    data = b"".join(deflate.compress(row) for _ in range(side)) + deflate.flush()
    head = struct.pack(">IIBBBBB", side, side, 8, colour, 0, 0, 0)
    path.write_bytes(strips.SIGNATURE + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b""))


def test_a_png_without_its_palette_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large_png(tmp_path / "a.png", 40, colour=3)
    files = ImageFiles([tmp_path / "a.png"])
    assert files.shown(0)[0] == "image/png" and files[0].getpixel((0, 0)) == (0, 0, 0)
    monkeypatch.setattr(strips, "MOST_PIXELS", 1000)  # now it is read in strips
    assert files[0].getpixel((0, 0)) == (0, 0, 0)


def test_a_very_large_png_is_scaled_in_little_memory(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource", reason="not on this system")
    large_png(tmp_path / "large.png", 10_000)  # 300 MB of pixels; 20,000 takes as little memory, and longer
    files = ImageFiles([tmp_path / "large.png"])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    media, body = files.shown(0)
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert media == "image/jpeg" and len(body) < 2**20 and more < 250
    seen = files[0]
    assert max(seen.size) <= SCREEN and seen.getpixel((5, 5)) == (10, 200, 30)


def test_what_cannot_be_shown_does_not_say_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "torn.png").write_bytes(b"no image")
    for name in ("torn.png", "gone.png"):
        with pytest.raises(DataError, match=rf"{name} cannot be shown: .*'{name}'") as refused:
            ImageFiles([tmp_path / name]).shown(0)
        assert str(tmp_path) not in str(refused.value)


def test_what_cannot_be_shown_says_why(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    picture().save(tmp_path / "photos" / "a.png")
    image.new("L", (12_000, 9_000)).save(tmp_path / "photos" / "b.gif")
    server = Server(tmp_path, "photos", "--classes", "a,b", "--journal", "p.jsonl")
    try:
        ann = Person(browser, server.url)
        for _ in range(2):
            if "b.gif" in ann.page.inner_text("#item figcaption"):
                ann.page.wait_for_selector("#item .broken")
                assert "cannot be shown: it has" in ann.page.inner_text("#item .broken")
            ann.press("1")
        ann.close()
    finally:
        server.kill()

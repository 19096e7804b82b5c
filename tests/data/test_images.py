"""Any picture file to RGB, or a DataError that names the file."""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tenet.data.images import encode_jpeg, encode_png, open_picture, picture_size
from tenet.errors import DataError


def test_exif_rotation_is_applied_unless_only_the_stored_pixels_fit(tmp_path: Path) -> None:
    pixels = np.zeros((20, 30, 3), np.uint8)
    pixels[:, :15] = 255
    exif = Image.Exif()
    exif[0x0112] = 6
    path = tmp_path / "turned.png"
    Image.fromarray(pixels).save(path, exif=exif)
    upright = open_picture(path)
    assert upright.shape == (30, 20, 3)
    assert upright[:15].min() == 255
    assert upright[15:].max() == 0
    assert picture_size(path) == (20, 30)
    assert np.array_equal(open_picture(path, size=(30, 20)), pixels)
    assert open_picture(path, size=(20, 30)).shape == (30, 20, 3)


def test_transparent_pixels_are_laid_over_white(tmp_path: Path) -> None:
    rgba = Image.new("RGBA", (4, 4), (10, 20, 30, 0))
    rgba.putpixel((0, 0), (10, 20, 30, 255))
    rgba.putpixel((1, 0), (0, 0, 0, 128))
    rgba.save(tmp_path / "a.png")
    rgb = open_picture(tmp_path / "a.png")
    assert rgb[0, 0].tolist() == [10, 20, 30]
    assert rgb[3, 3].tolist() == [255, 255, 255]
    assert abs(int(rgb[0, 1, 0]) - 127) <= 1


def test_palette_with_and_without_transparency(tmp_path: Path) -> None:
    picture = Image.new("P", (2, 1))
    picture.putpalette([255, 0, 0, 0, 255, 0])
    picture.putpixel((1, 0), 1)
    picture.save(tmp_path / "plain.png")
    picture.save(tmp_path / "holes.png", transparency=1)
    assert open_picture(tmp_path / "plain.png")[0].tolist() == [[255, 0, 0], [0, 255, 0]]
    assert open_picture(tmp_path / "holes.png")[0].tolist() == [[255, 0, 0], [255, 255, 255]]


def test_sixteen_bit_grey_keeps_its_range(tmp_path: Path) -> None:
    values = np.array([[0, 257, 32896, 65535]], np.uint16)
    Image.fromarray(values).save(tmp_path / "deep.png")
    assert open_picture(tmp_path / "deep.png")[0, :, 0].tolist() == [0, 1, 128, 255]


@pytest.mark.parametrize("mode", ["1", "L", "LA", "CMYK", "LAB"])
def test_other_modes_become_rgb(mode: str, tmp_path: Path) -> None:
    path = tmp_path / "picture.tif"
    Image.new(mode, (16, 8)).save(path)
    assert open_picture(path).shape == (8, 16, 3)
    assert open_picture(path).dtype == np.uint8


def test_cmyk_jpeg_has_its_colours(tmp_path: Path) -> None:
    Image.new("RGB", (8, 8), (200, 40, 40)).convert("CMYK").save(tmp_path / "print.jpg", quality=95)
    assert np.abs(open_picture(tmp_path / "print.jpg")[4, 4].astype(int) - (200, 40, 40)).max() < 12


def test_first_frame_of_an_animation(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (4, 4), colour) for colour in ((255, 0, 0), (0, 0, 255))]
    frames[0].save(tmp_path / "film.gif", save_all=True, append_images=frames[1:])
    assert open_picture(tmp_path / "film.gif")[0, 0].tolist() == [255, 0, 0]


def test_float_pixels_are_refused(tmp_path: Path) -> None:
    Image.fromarray(np.ones((3, 3), np.float32)).save(tmp_path / "float.tif")
    with pytest.raises(DataError, match=r"float\.tif: expected 8- or 16-bit"):
        open_picture(tmp_path / "float.tif")


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp", ".avif"])
def test_truncated_files_are_refused_by_name(suffix: str, tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    path = tmp_path / f"half{suffix}"
    Image.fromarray(noise).save(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(DataError, match="half"):
        open_picture(path)


def test_what_is_not_a_picture_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "note.jpg").write_text("hello")
    (tmp_path / "empty.jpg").write_bytes(b"")
    (tmp_path / "page.eps").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n")
    for name in ("note.jpg", "empty.jpg", "page.eps", "absent.jpg"):
        with pytest.raises(DataError, match=name):
            open_picture(tmp_path / name)
    with pytest.raises(DataError, match="expected a picture, got a folder; list its files"):
        open_picture(tmp_path)


def _png_header(width: int, height: int) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("side", [9_500, 60_000])
def test_bombs_are_refused_before_they_are_decoded(side: int, tmp_path: Path) -> None:
    path = tmp_path / "bomb.png"
    path.write_bytes(_png_header(side, side))
    with pytest.raises(DataError, match=r"bomb\.png: expected at most 80 million pixels"):
        open_picture(path)


MAGIC = [b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"BM", b"II*\0"]


@pytest.mark.filterwarnings("ignore")  # Pillow warns of damaged metadata
@given(st.binary(max_size=200), st.sampled_from(MAGIC))
def test_no_bytes_raise_anything_but_a_data_error(body: bytes, magic: bytes) -> None:
    message = "upload"
    try:
        open_picture(magic + body, name="upload")
    except DataError as error:
        message = str(error)
    assert "upload" in message


@pytest.mark.filterwarnings("ignore:Corrupt EXIF")
def test_damaged_exif_leaves_the_picture_readable() -> None:
    stream = io.BytesIO()
    Image.new("RGB", (6, 4)).save(stream, "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff" + b"\xff" * 20)
    assert open_picture(stream.getvalue()).shape == (4, 6, 3)


def test_jpeg_colours_at_full_resolution_where_asked() -> None:
    pixels = np.zeros((16, 16, 3), np.uint8)
    pixels[:, ::2] = (220, 30, 30)
    pixels[:, 1::2] = (30, 30, 220)
    half, full = (open_picture(encode_jpeg(pixels, 95, kind)) for kind in ("4:2:0", "4:4:4"))
    assert np.abs(full.astype(int) - pixels).max() < 40 < np.abs(half.astype(int) - pixels).max()


def test_png_round_trip() -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    assert np.array_equal(open_picture(encode_png(pixels)), pixels)

"""Any picture file to RGB, or a clear refusal that names the file.

The rules, so that the same file gives the same pixels everywhere in the house:
- EXIF rotation is applied: the frame of boxes is the upright picture.
- Alpha and transparent palette colours are laid over white.
- 16-bit grey is divided by 257; CMYK, palette, LAB and 1-bit pictures are converted by Pillow.
- Of an animated or multi-page file the first frame is taken.
- A truncated file, one of more than `MAX_PIXELS`, of float pixels, or of a format that is not in
  `FORMATS` (some of Pillow's others start programs) is a DataError.
"""

import io
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import AvifImagePlugin, Image, ImageOps

from tenet.errors import DataError

FORMATS = ("JPEG", "PNG", "WEBP", "AVIF", "GIF", "BMP", "TIFF", "PPM", "JPEG2000")
SUFFIXES = (
    ".jpg",
    ".jpeg",
    ".png",
    ".webp",
    ".avif",
    ".gif",
    ".bmp",
    ".tif",
    ".tiff",
    ".ppm",
    ".pgm",
    ".jp2",
)
MAX_PIXELS = 80_000_000
"""An 80-megapixel picture takes 240 MB as RGB; more than that is a mistake or an attack."""

_EXIF_ORIENTATION = 0x0112
_SIDEWAYS = (5, 6, 7, 8)
_ALPHA_MODES = ("RGBA", "LA", "PA", "La", "RGBa")
# Whatever a decoder raises for a file that is damaged; Pillow has no common root for them.
_DAMAGED = (
    OSError,
    ValueError,
    SyntaxError,
    EOFError,
    IndexError,
    KeyError,
    TypeError,
    OverflowError,
    MemoryError,
)

# A 320-pixel AVIF takes 1.5 ms on one thread and 3.9 ms on all: starting them costs more than they save,
# and loading uses the cores by decoding several pictures at once.
AvifImagePlugin.DEFAULT_MAX_THREADS = 1

Source = Path | str | bytes | BinaryIO


def open_picture(
    source: Source, name: str | None = None, size: tuple[int, int] | None = None
) -> NDArray[np.uint8]:
    """(H, W, 3) uint8 RGB of a picture file, upright.

    source  a path, the file's bytes, or an open binary file
    name    what to call it in an error; a path's own by default
    size    (W, H) of the frame in which its boxes are given. Where EXIF turns the picture and only the
            pixels as stored have this size, they are returned as stored: the boxes were drawn on them.
    """
    name = _name_of(source, name)
    with _open(source, name) as picture:
        turned = _is_sideways(picture)
        as_stored = size is not None and turned and picture.size == size
        return decoded(picture, name, turn=not as_stored)


def decoded(picture: Image.Image, name: str, turn: bool = True) -> NDArray[np.uint8]:
    """(H, W, 3) uint8 RGB of an opened picture; upright, unless it is not to be turned."""
    try:
        rgb = _to_rgb(_upright(picture) if turn else picture, name)
    except (*_DAMAGED, Image.DecompressionBombError) as error:
        raise DataError(
            f"{name}: expected a whole picture, but it cannot be decoded ({error}); "
            "it is truncated or damaged: fetch it again"
        ) from error
    # A copy, because Pillow's own memory is read-only and torch warns of that.
    return np.array(rgb, np.uint8)


def picture_size(source: Source, name: str | None = None) -> tuple[int, int]:
    """(W, H) of the upright picture, from the file's header alone."""
    name = _name_of(source, name)
    with _open(source, name) as picture:
        width, height = picture.size
        return (height, width) if _is_sideways(picture) else (width, height)


def encode_png(pixels: NDArray[np.uint8]) -> bytes:
    """A PNG file of (H, W, 3) uint8 RGB."""
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG", compress_level=4)
    return stream.getvalue()


def encode_jpeg(pixels: NDArray[np.uint8], quality: int = 92, subsampling: str = "4:2:0") -> bytes:
    """A JPEG file of (H, W, 3) uint8 RGB; with subsampling 4:4:4 its colours at full resolution."""
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG", quality=quality, subsampling=subsampling)
    return stream.getvalue()


def _name_of(source: Source, name: str | None) -> str:
    return name or (str(source) if isinstance(source, (str, Path)) else "picture")


def _open(source: Source, name: str) -> Image.Image:
    stream = io.BytesIO(source) if isinstance(source, bytes) else source
    try:
        picture = Image.open(stream, formats=FORMATS)
    except FileNotFoundError as error:
        raise DataError(f"{name}: expected a picture, but there is no such file") from error
    except IsADirectoryError as error:
        raise DataError(f"{name}: expected a picture, got a folder; list its files") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise DataError(_too_large(name)) from error
    except _DAMAGED as error:
        raise DataError(
            f"{name}: expected a picture ({', '.join(FORMATS)}), but it is not one or its header is damaged"
        ) from error
    width, height = picture.size
    if width * height > MAX_PIXELS:
        picture.close()
        raise DataError(f"{_too_large(name)} (it has {width} × {height})")
    return picture


def _too_large(name: str) -> str:
    return f"{name}: expected at most {MAX_PIXELS // 1_000_000} million pixels, got more; scale it down"


def _is_sideways(picture: Image.Image) -> bool:
    try:
        return picture.getexif().get(_EXIF_ORIENTATION) in _SIDEWAYS
    except Exception:  # a damaged EXIF block says nothing about the pixels, which may be sound
        return False


def _upright(picture: Image.Image) -> Image.Image:
    # Pixels first: what fails here is the picture's fault, not its EXIF block's.
    picture.load()
    try:
        return ImageOps.exif_transpose(picture)
    except Exception:  # see _is_sideways
        return picture


def _to_rgb(picture: Image.Image, name: str) -> Image.Image:
    if picture.mode == "RGB" and "transparency" not in picture.info:
        return picture.copy()
    if picture.mode.startswith("I;16") or picture.mode == "I":
        return _sixteen_bit(picture, name)
    if picture.mode == "F":
        raise DataError(f"{name}: expected 8- or 16-bit pixels, got floats; save it as an 8-bit picture")
    if picture.mode in _ALPHA_MODES or "transparency" in picture.info:
        rgba = picture.convert("RGBA")
        white = Image.new("RGBA", rgba.size, (255, 255, 255, 255))
        return Image.alpha_composite(white, rgba).convert("RGB")
    return picture.convert("RGB")


def _sixteen_bit(picture: Image.Image, name: str) -> Image.Image:
    values = np.asarray(picture).astype(np.int64)
    if values.size and (values.min() < 0 or values.max() > 65535):
        raise DataError(
            f"{name}: expected 8- or 16-bit pixels, got values from {values.min()} to {values.max()}; "
            "save it as an 8-bit picture"
        )
    grey = ((values + 128) // 257).astype(np.uint8)
    return Image.fromarray(grey).convert("RGB")

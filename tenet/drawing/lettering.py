"""Text on pictures: one font at every size, and words that always fit.

Pillow's own font is inside the package, so that a picture looks the same on every machine; it knows
little more than ASCII. Accents are left away, a letter that it does not have becomes `?`, and a name of
nothing else is told by its number. A TrueType file of the user's own (`font=`) writes any script.
"""

import unicodedata
from functools import lru_cache
from pathlib import Path

from PIL import ImageFont

from tenet.errors import InputError

Font = ImageFont.FreeTypeFont
MOST_LETTERS = 200
"""Of a name; more would not be read in a picture, and costs time to measure."""
_NO_SUCH_LETTER = "\uffff"
_PLAIN = str.maketrans(
    {"ß": "ss", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "æ": "ae", "Æ": "AE", "œ": "oe"}
    | {"Œ": "OE", "ı": "i", "þ": "th", "ð": "d", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "−": "-"}
)


@lru_cache(maxsize=64)
def font_of(size: int, font: Path | None = None) -> Font:
    """The font at `size` pixels: Pillow's own, or a TrueType file."""
    try:
        if font is not None:
            return ImageFont.truetype(str(font), size)
        built_in = ImageFont.load_default(size)
    except OSError as error:
        raise InputError(f"font: expected a TrueType file such as NotoSans.ttf, got {font}") from error
    assert isinstance(built_in, ImageFont.FreeTypeFont)  # Pillow's wheels are all built with FreeType
    return built_in


@lru_cache(maxsize=4096)
def _has(letter: str, font: Path | None) -> bool:
    face = font_of(20, font)
    drawn, none = face.getmask(letter), face.getmask(_NO_SUCH_LETTER)
    return letter == " " or (drawn.size, bytes(drawn)) != (none.size, bytes(none))


@lru_cache(maxsize=1024)
def writable(text: str, font: Path | None = None) -> str:
    """`text` in letters that the font has, in one line; empty where it has none of them."""
    spaced = "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in text[:MOST_LETTERS])
    kept, told = [], False
    for letter in unicodedata.normalize("NFC", " ".join(spaced.split())):
        if _has(letter, font):
            kept.append(letter)
            told = told or letter.isalnum()
            continue
        plain = unicodedata.normalize("NFKD", letter.translate(_PLAIN))
        plain = "".join(c for c in plain if not unicodedata.combining(c))
        if plain and all(_has(c, font) for c in plain):
            kept.append(plain)
            told = True
        else:
            kept.append("?")
    return "".join(kept) if told else ""


def width_of(text: str, face: Font) -> int:
    """In pixels, rounded up."""
    return int(-(-face.getlength(text) // 1))


def shortened(text: str, face: Font, most: int) -> str:
    """`text`, or its beginning with `…`, at most `most` pixels wide; empty where nothing fits."""
    if width_of(text, face) <= most:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if width_of(text[:middle].rstrip() + "…", face) <= most:
            low = middle
        else:
            high = middle - 1
    return text[:low].rstrip() + "…" if low else ""


def wrapped(text: str, face: Font, most: int) -> list[str]:
    """`text` in lines of at most `most` pixels; a word that is wider is cut."""
    lines: list[str] = []
    for word in text.split():
        if lines and width_of(f"{lines[-1]} {word}", face) <= most:
            lines[-1] = f"{lines[-1]} {word}"
        else:
            lines.append(shortened(word, face, most))
    return lines


def line_height(face: Font) -> int:
    """From one line to the next, in pixels."""
    ascent, descent = face.getmetrics()
    return ascent + descent

"""Files that tests need and no picture library writes: a bomb, a film."""

import struct
import zlib
from pathlib import Path

import pytest
from fake_bank import scene


def png_header(width: int, height: int) -> bytes:
    """A PNG that says it is that large and holds next to nothing."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + check

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(bytes(1000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def write_video(path: Path, frames: int = 7) -> Path:
    """A red thing that moves 20 px a frame, ten frames a second."""
    av = pytest.importorskip("av")
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt, stream.bit_rate = 320, 240, "yuv420p", 4_000_000
        for number in range(frames):
            picture = scene(320, 240, ("red", (20 + 20 * number, 100, 70 + 20 * number, 150)))
            for packet in stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)
    return path


def turn_video(path: Path) -> None:
    """Mark an MP4 as one to show turned clockwise by a quarter, as telephones do: the matrix of its track."""
    content = path.read_bytes()
    one, turned = 1 << 16, -(1 << 16)
    upright = struct.pack(">9i", one, 0, 0, 0, one, 0, 0, 0, 1 << 30)
    quarter = struct.pack(">9i", 0, one, 0, turned, 0, 0, 240 << 16, 0, 1 << 30)
    place = content.index(upright, content.index(b"tkhd"))
    path.write_bytes(content[:place] + quarter + content[place + len(upright) :])

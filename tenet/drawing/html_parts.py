"""What the project's HTML pages share: the frame of a page in one file, its look, and pictures inside it.

A page needs no script and no other file or host, follows the reader's dark or light setting, and fits a
phone. Whoever puts text into one escapes it: names of classes and files come from strangers.
"""

import base64
from html import escape

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tenet.data.images import encode_jpeg


def page(title: str, style: str, body: str) -> str:
    """A whole page; the title is escaped here, the body is HTML."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}{style}</style></head>"
        f"<body><main>{body}</main></body></html>\n"
    )


def data_uri(pixels: NDArray[np.uint8], longest: int) -> str:
    """A picture as a JPEG inside the page, its longer side at most `longest` pixels."""
    image = Image.fromarray(np.ascontiguousarray(pixels))
    image.thumbnail((longest, longest), Image.Resampling.LANCZOS)
    return "data:image/jpeg;base64," + base64.b64encode(encode_jpeg(np.array(image), 82)).decode("ascii")


STYLE = """
:root{color-scheme:light dark;--bg:#f7f7f4;--card:#fff;--ink:#1d2126;--soft:#667;--rule:#dcdcd4;
  --accent:#2563b8; --l:42%}
@media(prefers-color-scheme:dark){:root{--bg:#14171b;--card:#1d2228;--ink:#e8eaed;--soft:#9aa3ad;
  --rule:#333a43; --accent:#6ea8f5;--l:66%}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);
  font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1160px;margin:0 auto;padding:32px 20px 48px}
h1{font-size:30px;line-height:1.2;margin:.1em 0 .3em}
h1 small{font-weight:400;color:var(--soft);font-size:.75em}
h2{font-size:17px;margin:0 0 10px}
header p{max-width:80ch;margin:.3em 0}
.kicker{color:var(--accent);font-weight:600;letter-spacing:.02em}
section{margin-top:28px}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;background:var(--card);border:1px solid var(--rule);
  font-variant-numeric:tabular-nums}
th,td{padding:6px 14px;text-align:right;border-bottom:1px solid var(--rule);white-space:nowrap}
th:first-child{text-align:left;font-weight:500}
thead th{color:var(--soft);font-weight:600}
figure{background:var(--card);border:1px solid var(--rule);border-radius:10px;margin:0;overflow:hidden}
figcaption{padding:8px 12px 2px;display:flex;flex-direction:column}
figcaption span{color:var(--soft);font-size:12px;overflow-wrap:anywhere}
footer{margin-top:36px;color:var(--soft);font-size:12px}
"""

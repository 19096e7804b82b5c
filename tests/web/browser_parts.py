"""A real browser, and how tests of the page use it."""

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ARTEFACTS = Path(os.environ.get("TENET_ARTEFACTS", Path(__file__).parent.parent.parent / "artefacts"))
"""Where screenshots go, to be looked at after a failure; nothing reads them."""
THING = (100, 80, 220, 200)
"""The thing to be taught, xyxy in pixels of the picture `teach` of the fixture `pictures`."""
PATIENCE = 60_000
"""Milliseconds until something that should appear is taken for missing."""


def until(page: Any, expression: str) -> None:
    """Wait for something in the page. Not `wait_for_function`: the page's policy forbids what it does."""
    end = time.monotonic() + PATIENCE / 1000
    while not page.evaluate(expression):
        assert time.monotonic() < end, expression
        page.wait_for_timeout(50)


def shot(page: Any, name: str) -> None:
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(ARTEFACTS / f"{name}.png"))


def opened(page: Any) -> None:
    """Wait for the editor and its picture."""
    page.wait_for_selector("#editor[open] #draw img")
    # Its width is set once it is loaded.
    until(page, "document.querySelector('#draw img').style.width !== ''")


def draw(page: Any, box: tuple[float, float, float, float]) -> None:
    """Drag a box, xyxy in pixels of the picture in the editor."""
    frame = page.locator("#draw img").bounding_box()
    scale = frame["width"] / page.evaluate("document.querySelector('#draw img').naturalWidth")
    corners = [(frame["x"] + x * scale, frame["y"] + y * scale) for x, y in (box[:2], box[2:])]
    page.mouse.move(*corners[0])
    page.mouse.down()
    page.mouse.move(*((a + b) / 2 for a, b in zip(*corners, strict=True)))
    page.mouse.move(*corners[1])
    page.mouse.up()


def teach(page: Any, picture: Path, name: str = "red brick") -> None:
    """Show it the thing of `pictures["teach"]`."""
    page.set_input_files("#teach-files", str(picture))
    opened(page)
    draw(page, THING)
    page.fill("#editor-name", name)
    shot(page, "teach")
    page.click("#editor-add")
    page.wait_for_selector("#editor:not([open])", state="attached")
    page.wait_for_selector(".class .shot img")


def drop(page: Any, target: str, files: Sequence[Path], kind: str = "image/png") -> None:
    """As if files were dragged onto the page and let go."""
    given = page.evaluate_handle(
        """([files, type]) => {
            const carried = new DataTransfer();
            for (const [name, content] of files) {
                carried.items.add(new File([new Uint8Array(content)], name, { type }));
            }
            return carried;
        }""",
        [[[file.name, list(file.read_bytes())] for file in files], kind],
    )
    page.dispatch_event(target, "drop", {"dataTransfer": given})


def drop_folder(page: Any, target: str, folder: Path) -> None:
    """The same with a folder, which only the browser itself can carry."""
    frame = page.locator(target).bounding_box()
    place = {"x": frame["x"] + frame["width"] / 2, "y": frame["y"] + frame["height"] / 2}
    session = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(folder)], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        session.send("Input.dispatchDragEvent", {"type": kind, "data": data, **place})

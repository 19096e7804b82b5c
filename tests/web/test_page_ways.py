"""The page in a real browser: folders, archives, progress, maps, the keyboard alone, and reloads."""

import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from browser_parts import CHROMIUM, THING, drop, drop_folder, teach, until
from fake_bank import scene
from served import Served
from web_parts import png

from tenet.client import Client

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="Chromium is not installed: apt-get install chromium"
)


@pytest.fixture
def folder(tmp_path: Path, pictures: dict[str, Path]) -> Path:
    """A folder of three pictures, one of them further inside, and something else."""
    made = tmp_path / "holiday"
    (made / "inner").mkdir(parents=True)
    for name in ("a.png", "b.png", "inner/c.png"):
        (made / name).write_bytes(pictures["query"].read_bytes())
    (made / "notes.txt").write_text("no picture")
    return made


def names_of(served: Served) -> list[str]:
    """The pictures of the newest job."""
    client = Client(served.address)
    return [one["name"] for one in client.job_results(client.jobs()[0].id)["pictures"]]


# ---- what comes in


def test_a_folder_is_chosen_or_dropped(
    page: Any, served: Served, pictures: dict[str, Path], folder: Path
) -> None:
    teach(page, pictures["teach"])
    with page.expect_file_chooser() as waiting:
        page.click("#folder-open")
    waiting.value.set_files(str(folder))
    page.wait_for_selector(".job:has-text('3 pictures done')")
    assert sorted(names_of(served)) == ["holiday/a.png", "holiday/b.png", "holiday/inner/c.png"]
    drop_folder(page, "#find-drop", folder)
    until(page, "document.querySelectorAll('.job').length === 2")
    page.wait_for_selector(".job:first-child:has-text('3 pictures done')")
    assert sorted(names_of(served)) == ["holiday/a.png", "holiday/b.png", "holiday/inner/c.png"]
    assert page.locator(".tile").count() == 0


def test_a_dropped_zip_or_many_pictures_are_a_job(
    page: Any, served: Served, pictures: dict[str, Path], tmp_path: Path
) -> None:
    teach(page, pictures["teach"])
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        for row in range(2):
            archive.write(pictures["query"], f"{row}.png")
    drop(page, "#find-drop", [tmp_path / "two.zip"], "application/zip")
    page.wait_for_selector(".job:has-text('2 pictures done')")
    many = [tmp_path / f"{row}.png" for row in range(61)]
    for path in many:
        path.write_bytes(png(scene(40, 30)))
    drop(page, "#find-drop", many)
    page.wait_for_selector(".job:has-text('61 pictures done')")
    # As many as the page shows are shown.
    drop(page, "#find-drop", many[:2])
    until(page, "document.querySelectorAll('.tile').length === 2")
    assert len(Client(served.address).jobs()) == 2


# ---- what is seen


def test_progress_is_shown_while_it_looks(page: Any, pictures: dict[str, Path]) -> None:
    teach(page, pictures["teach"])
    held: list[Any] = []
    free: list[bool] = []
    page.route("**/v1/detect", lambda route: route.continue_() if free else held.append(route))
    page.set_input_files("#find-files", [str(pictures["query"])] * 4)
    page.wait_for_selector("#progress:has-text('0 of 4 pictures')")
    page.wait_for_selector("#canvas .busy .spin")
    assert "looking…" in page.locator("#caption").inner_text()
    assert page.locator(".tile b").all_inner_texts() == ["…"] * 4
    assert page.get_attribute("#progress", "aria-valuenow") == "0"
    held.pop(0).continue_()
    page.wait_for_selector("#progress:has-text('1 of 4 pictures')")
    assert page.get_attribute("#progress", "aria-valuenow") == "25"
    free.append(True)
    for route in held:
        route.continue_()
    page.wait_for_selector("#progress", state="hidden")
    assert page.locator("#canvas .busy").count() == 0
    assert page.locator(".tile b").all_inner_texts() == ["2"] * 4


def test_attention_is_drawn_over_both(page: Any, pictures: dict[str, Path]) -> None:
    teach(page, pictures["teach"])
    page.set_input_files("#find-files", str(pictures["query"]))
    until(page, "document.querySelectorAll('.hit canvas').length === 4")
    drawn = "[...document.querySelectorAll('.hit:first-child canvas')].map((one) => one.toDataURL())"
    # An empty canvas is a short text.
    until(page, f"{drawn}.every((one) => one.length > 2000)")
    plain = page.evaluate(drawn)
    assert page.locator("#map").is_disabled()
    page.locator("label.switch:has(#attention)").click()
    page.wait_for_selector(".hit:first-child figcaption:has-text('cosine')")
    mapped = page.evaluate(drawn)
    assert [one != other for one, other in zip(plain, mapped, strict=True)] == [True, True]
    page.locator("label.switch:has(#attention)").click()
    until(page, f"JSON.stringify({drawn}) === {json_text(plain)}")


def json_text(value: Any) -> str:
    import json

    return json.dumps(json.dumps(value, separators=(",", ":")))


# ---- without a mouse


def corners(page: Any) -> list[float]:
    """Left, top, width and height of the box that is being drawn, in pixels of the screen."""
    style = page.locator("#draw .box").get_attribute("style")
    return [float(value) for value in re.findall(r"(-?[\d.]+)px", style)[:4]]


def choose(page: Any, button: str, *files: Path) -> None:
    with page.expect_file_chooser() as waiting:
        # After the browser was told to hand choosers over: that takes it a moment.
        page.wait_for_timeout(200)
        page.focus(button)
        page.keyboard.press("Enter")
    waiting.value.set_files([str(file) for file in files])


def test_the_keyboard_is_enough(page: Any, pictures: dict[str, Path]) -> None:
    page.wait_for_selector("text=It knows nothing yet")
    choose(page, "#teach-drop", pictures["teach"])
    until(page, "document.activeElement.id === 'draw'")
    page.keyboard.press("ArrowRight")
    began = corners(page)
    page.keyboard.press("ArrowRight")
    moved = corners(page)
    page.keyboard.press("Alt+ArrowRight")
    little = corners(page)
    assert 0 < little[0] - moved[0] < moved[0] - began[0]
    assert little[1:] == began[1:]
    page.keyboard.press("Shift+ArrowDown")
    grown = corners(page)
    assert grown[:3] == little[:3]
    assert grown[3] > little[3]
    # The thing is (100, 80, 220, 200) of 400 x 300 pixels; the box began in the middle of them.
    for key in ["ArrowLeft"] * 5 + ["ArrowUp"] * 2 + ["Shift+ArrowLeft"] * 8:
        page.keyboard.press(key)
    page.focus("#editor-name")
    page.keyboard.type("thing")
    page.keyboard.press("Enter")
    page.wait_for_selector(".class h3:has-text('thing')")
    page.wait_for_selector("#editor:not([open])", state="attached")
    choose(page, "#find-drop", pictures["query"], pictures["empty"])
    until(page, "[...document.querySelectorAll('.tile b')].every((one) => one.textContent !== '…')")
    page.focus(".tile[aria-selected=true]")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#caption strong:has-text('empty.png')")
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("#caption strong:has-text('query.png')")
    page.keyboard.press("Delete")
    page.wait_for_selector("#caption strong:has-text('empty.png')")
    page.focus("button[aria-label='Forget thing']")
    page.keyboard.press("Enter")
    page.wait_for_selector("#ask[open]")
    page.focus("#ask-yes")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=It knows nothing yet")


# ---- after a reload


def test_old_results_are_looked_at_again(page: Any, served: Served, pictures: dict[str, Path]) -> None:
    teach(page, pictures["teach"])
    page.set_input_files("#find-files", str(pictures["query"]))
    until(page, "document.querySelectorAll('svg.boxes g').length === 2")
    page.locator("#threshold").fill("0.31")
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.url) if one.url.endswith("/v1/detect") else None)
    page.reload()
    until(page, "document.querySelectorAll('svg.boxes g').length === 2")
    assert page.locator("#threshold").input_value() == "0.31"
    assert page.locator("#threshold-shown").inner_text() == "0.31"
    assert asked == []
    client = Client(served.address)
    client.remove("red brick")
    client.register("other", [(pictures["teach"], THING)])
    page.reload()
    page.wait_for_selector("svg.boxes g:has-text('other')")
    assert len(asked) == 1


def test_pictures_that_wait_for_a_first_class_wait_on(page: Any, pictures: dict[str, Path]) -> None:
    page.set_input_files("#find-files", str(pictures["query"]))
    waits = "#caption:has-text('waits until it is shown a thing')"
    page.wait_for_selector(waits)
    # Kept when the browser has written it, which nobody hears of.
    page.wait_for_timeout(300)
    page.reload()
    page.wait_for_selector(waits)
    teach(page, pictures["teach"])
    until(page, "document.querySelectorAll('svg.boxes g').length === 2")

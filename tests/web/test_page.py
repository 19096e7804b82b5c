"""The page in a real browser: teach by drawing, detect, slide, explain, export, reload and find it."""

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from browser_parts import CHROMIUM, PATIENCE, THING, draw, drop, opened, shot, teach, until
from served import Served

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="Chromium is not installed: apt-get install chromium"
)


def boxes(page: Any) -> int:
    return int(page.locator("svg.boxes g").count())


def test_teach_detect_slide_explain_export_reload(
    page: Any, pictures: dict[str, Path], tmp_path: Path
) -> None:
    page.wait_for_selector("text=It knows nothing yet")
    shot(page, "empty")
    teach(page, pictures["teach"])
    assert page.locator(".class h3").inner_text() == "red brick"
    assert page.locator(".class .badge").inner_text() == "good"

    page.set_input_files("#find-files", [str(pictures["query"]), str(pictures["empty"])])
    until(page, "document.querySelectorAll('svg.boxes g').length === 2")
    assert "2 things found" in page.locator("#caption").inner_text()
    assert page.locator(".tile").count() == 2

    page.locator("#threshold").fill("0.99")
    assert boxes(page) == 0
    assert "nothing at this score" in page.locator("#caption").inner_text()
    page.locator("#threshold").fill("0.3")
    assert boxes(page) == 2

    page.locator("label.switch:has(#attention)").click()
    page.wait_for_selector(".hit figcaption:has-text('cosine')")
    shot(page, "find")

    with page.expect_download() as waiting:
        page.select_option("#export", "coco")
    coco = json.loads(Path(waiting.value.path()).read_text())
    assert len(coco["annotations"]) == 2
    assert {one["file_name"] for one in coco["images"]} == {"query.png", "empty.png"}
    for layout, files in (("yolo", "labels/query.txt"), ("voc", "Annotations/query.xml")):
        with page.expect_download() as waiting:
            page.select_option("#export", layout)
        assert files in zipfile.ZipFile(waiting.value.path()).namelist()
    with page.expect_download() as waiting:
        page.select_option("#export", "csv")
    assert Path(waiting.value.path()).read_text().count("\n") == 3
    with page.expect_download() as waiting:
        page.click("#bank-export")
    bank = tmp_path / "saved.bank"
    shutil.copy(waiting.value.path(), bank)

    page.reload()
    page.wait_for_selector(".class .shot img")
    until(page, "document.querySelectorAll('.tile').length === 2")
    page.locator(".tile").first.click()
    until(page, "document.querySelectorAll('svg.boxes g').length === 2")

    page.click("button[aria-label='Forget red brick']")
    page.click("#ask-yes")
    page.wait_for_selector("text=It knows nothing yet")
    page.set_input_files("#bank-file", str(bank))
    page.wait_for_selector(".class h3:has-text('red brick')")


def test_shots_are_added_renamed_and_removed(page: Any, pictures: dict[str, Path]) -> None:
    teach(page, pictures["teach"], "brick")
    page.set_input_files("#teach-files", str(pictures["query"]))
    opened(page)
    page.fill("#editor-name", "brick")
    page.locator("label.switch:has(#editor-whole)").click()
    page.click("#editor-add")
    until(page, "document.querySelectorAll('.class .shot').length === 2")
    page.locator(".class .shot").last.hover()
    page.click("button[aria-label='Remove shot 1 of brick']")
    until(page, "document.querySelectorAll('.class .shot').length === 1")
    page.click("button[aria-label='Rename brick']")
    page.fill("#ask-input", "<b>stone")
    page.keyboard.press("Enter")
    page.wait_for_selector(".class h3:has-text('<b>stone')")


def test_pictures_that_come_as_the_editor_closes_are_not_lost(page: Any, pictures: dict[str, Path]) -> None:
    """The browser tells of the closing later than it closes."""
    page.set_input_files("#teach-files", str(pictures["teach"]))
    opened(page)
    page.evaluate(
        """() => {
            const carried = new DataTransfer();
            carried.items.add(new File([], "next.png", { type: "image/png" }));
            document.querySelector("#editor").close();
            const input = document.querySelector("#teach-files");
            input.files = carried.files;
            input.dispatchEvent(new Event("change", { bubbles: true }));
        }"""
    )
    page.wait_for_selector("#editor[open] #draw img[alt='next.png']", state="attached")
    page.wait_for_timeout(300)
    page.set_input_files("#teach-files", str(pictures["query"]))
    until(page, "document.querySelector('#editor-count').textContent === '1 more to come'")


def test_pictures_are_dropped(page: Any, pictures: dict[str, Path]) -> None:
    page.wait_for_selector("text=It knows nothing yet")
    drop(page, "#teach-drop", [pictures["teach"]])
    opened(page)
    draw(page, THING)
    page.fill("#editor-name", "brick")
    page.keyboard.press("Enter")
    page.wait_for_selector(".class .shot img")
    drop(page, "#find-drop", [pictures["query"]])
    until(page, "document.querySelectorAll('svg.boxes g').length === 2")
    # Once there is a picture, another may be dropped anywhere beside it.
    drop(page, "#stage", [pictures["empty"]])
    until(page, "document.querySelectorAll('.tile').length === 2")


def test_several_boxes_on_one_picture(page: Any, pictures: dict[str, Path]) -> None:
    page.set_input_files("#teach-files", str(pictures["query"]))
    opened(page)
    page.fill("#editor-name", "brick")
    draw(page, (60, 60, 170, 180))
    page.click("#editor-more")
    until(page, "document.querySelectorAll('#draw .done').length === 1")
    assert page.locator("#editor-add").is_disabled()
    draw(page, (300, 150, 430, 280))
    page.click("#editor-add")
    page.wait_for_selector("#editor:not([open])", state="attached")
    until(page, "document.querySelectorAll('.class .shot').length === 2")


def test_a_picture_that_waits_is_looked_at_once_something_is_taught(
    page: Any, pictures: dict[str, Path]
) -> None:
    page.set_input_files("#find-files", [str(pictures["query"]), str(pictures["empty"])])
    page.wait_for_selector("#caption:has-text('waits until it is shown a thing')")
    teach(page, pictures["teach"])
    until(page, "document.querySelectorAll('svg.boxes g').length === 2")
    page.click("button[aria-label='Remove query.png from the page']")
    page.wait_for_selector("#caption:has-text('nothing found')")
    page.reload()
    page.wait_for_selector("#caption strong:has-text('empty.png')")


def test_the_example_that_comes_with_it(page: Any) -> None:
    page.click("#example")
    opened(page)
    assert page.locator("#editor-name").input_value() == "coin"
    page.wait_for_selector("#caption strong:has-text('coins.png')", state="attached")


def test_a_service_that_cannot_be_reached(browser: Any, served: Served, pictures: dict[str, Path]) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.route("**/v1/**", lambda route: route.abort())
    page.goto(served.address)
    page.wait_for_selector("text=The service cannot be reached")
    shot(page, "unreachable")
    page.unroute("**/v1/**")
    page.click("text=Try again")
    page.wait_for_selector("text=It knows nothing yet")
    context.close()


def test_a_bad_picture_is_told(
    page: Any, pictures: dict[str, Path], tmp_path: Path, excused: list[str]
) -> None:
    excused.append("422")
    teach(page, pictures["teach"])
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"no picture")
    page.set_input_files("#find-files", str(bad))
    page.wait_for_selector("#caption .problem:has-text('expected a picture')")
    shot(page, "error")


def test_a_zip_is_done_in_the_background(page: Any, pictures: dict[str, Path], tmp_path: Path) -> None:
    teach(page, pictures["teach"])
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        for row in range(5):
            archive.write(pictures["query"], f"{row}.png")
    page.set_input_files("#batch-files", str(tmp_path / "many.zip"))
    page.wait_for_selector(".job:has-text('5 pictures done')")
    with page.expect_download() as waiting:
        page.locator(".job select").select_option("csv")
    assert Path(waiting.value.path()).read_text().count("\n") == 11


def test_the_camera(page: Any, pictures: dict[str, Path]) -> None:
    teach(page, pictures["teach"])
    page.click("#camera-open")
    until(page, "document.querySelector('#camera-view').videoWidth > 0")
    page.click("#camera-take")
    page.wait_for_selector("#caption strong:has-text('camera-')")


def test_phone_width_and_dark(browser: Any, served: Served, pictures: dict[str, Path]) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme="dark", has_touch=True)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(served.address)
    page.wait_for_selector("text=It knows nothing yet")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    teach(page, pictures["teach"])
    page.click("#tab-find")
    page.set_input_files("#find-files", str(pictures["query"]))
    until(page, "document.querySelectorAll('svg.boxes g').length === 2")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "it scrolls sideways"
    shot(page, "phone")
    page.click("#theme")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    context.close()


def test_a_token_is_asked_for(browser: Any, tmp_path: Path, pictures: dict[str, Path]) -> None:
    token = "a-token-for-the-page"
    served = Served(tmp_path / "other.db", "--pieces", token=token)
    try:
        context = browser.new_context()
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(served.address)
        page.wait_for_selector("#ask[open]")
        page.fill("#ask-input", token)
        page.click("#ask-yes")
        page.wait_for_selector("text=It knows nothing yet")
        teach(page, pictures["teach"])
        until(page, "document.querySelector('.class .shot img').naturalWidth > 0")
        context.close()
    finally:
        served.kill()

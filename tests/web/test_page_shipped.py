"""The page with the model that comes with tenet: three coins are drawn, the others are found.

Its screenshots are those of docs/service.md.
"""

from pathlib import Path
from typing import Any

import pytest
from browser_parts import CHROMIUM, PATIENCE, draw, opened, shot, until
from served import Served

from tenet.demo import SCENES

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="Chromium is not installed: apt-get install chromium"
)
FEWEST = 8
"""Coins of 24 that any model which may be shipped finds."""


def test_three_coins_are_drawn_and_others_found(browser: Any, tmp_path: Path) -> None:
    served = Served(tmp_path / "store.db", shipped=True)
    try:
        context = browser.new_context(viewport={"width": 1360, "height": 900})
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(served.address)
        page.click("#example")
        opened(page)
        for row, example in enumerate(SCENES[0].shots):
            draw(page, example.box)
            if row == 2:
                shot(page, "shipped-teach")
            page.click("#editor-add" if row == 2 else "#editor-more")
            until(page, f"document.querySelectorAll('.class .shot').length === {row + 1}")
        page.wait_for_selector("#editor:not([open])", state="attached")
        # A moment after the last lesson the picture is looked at again.
        page.wait_for_timeout(600)
        until(page, "/^\\d+ things found/.test(document.querySelector('#caption span').textContent)")
        shot(page, "shipped-page")
        assert page.locator("svg.boxes g").count() >= FEWEST
        context.close()
        on_a_phone(browser, served, SCENES[0].path)
    finally:
        served.kill()


def on_a_phone(browser: Any, served: Served, picture: Path) -> None:
    """The same class from another device, dark, with the reasons of what was found."""
    context = browser.new_context(
        viewport={"width": 390, "height": 1000}, device_scale_factor=2, color_scheme="dark", has_touch=True
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(served.address)
    page.wait_for_selector(".class .shot img")
    page.click("#tab-find")
    page.set_input_files("#find-files", str(picture))
    until(page, f"document.querySelectorAll('svg.boxes g').length >= {FEWEST}")
    page.locator("#threshold").fill("0.99")
    page.locator("label.switch:has(#attention)").click()
    page.wait_for_selector(".hit figcaption:has-text('cosine')")
    until(page, "!document.querySelector('#found').textContent.includes('explaining')")
    page.locator("#threshold").fill("0.25")
    # What was explained is remembered.
    page.wait_for_selector(".hit:first-child figcaption:has-text('cosine')")
    shot(page, "shipped-phone")
    context.close()

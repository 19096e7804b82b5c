"""What the documentation points to exists."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from tenet.presets import ablations

ROOT = Path(__file__).parent.parent
PAPER = (ROOT / "docs/paper_to_code.md").read_text()


def resolve(name: str) -> object:
    """A dotted name: the longest module prefix is imported, the rest are attributes."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[end:]:
            found = getattr(found, attribute)
        return found
    raise AssertionError(f"{name} cannot be found")


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(tenet\.[a-zA-Z0-9_.]+)`", PAPER))))
def test_name_exists(name: str) -> None:
    assert resolve(name) is not None


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`(tests/[^`]+)`", PAPER))))
def test_test_exists(path: str) -> None:
    file, _, function = path.partition("::")
    text = (ROOT / file).read_text()
    assert not function or f"def {function}(" in text


def test_every_table_is_told() -> None:
    for table in ablations():
        assert f"`{table}`" in PAPER


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target

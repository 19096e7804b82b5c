"""The README's commands and Python run as they stand there."""

import re
import shlex
from pathlib import Path

import pytest

from tenet.cli import build_parser

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_python_blocks_run_in_order() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) >= 2
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    found = names["found"]
    assert len(found) == 1  # type: ignore[arg-type]
    assert names["psi"].shape == (300, 128)  # type: ignore[attr-defined]


@pytest.mark.parametrize("line", re.findall(r"`(tenet [^`]+)`", README))
def test_commands_are_understood(line: str) -> None:
    words = shlex.split(line)[1:]
    assert build_parser(words[0]).parse_args(words).command == words[0]


def test_make_verbs_exist() -> None:
    verbs = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"make ([a-z]+)\b", README)) - {"the"}
    assert {"demo", "test", "help"} <= named <= verbs


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target

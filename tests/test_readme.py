"""The README's commands and Python run as they stand there."""

import re
import shlex
from pathlib import Path

import pytest

from tenet.cli import build_parser, main
from tenet.demo import FOLDER

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_python_blocks_run_in_order() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) >= 2
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    assert len(names["found"].boxes) == len(names["found"].names)  # type: ignore[attr-defined]
    assert names["psi"].shape == (300, 128)  # type: ignore[attr-defined]


def test_shell_blocks_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder with the photograph that they name."""
    [block] = [text for text in re.findall(r"```sh\n(.*?)```", README, re.DOTALL) if "tenet register" in text]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "coins.png").write_bytes((FOLDER / "coins.png").read_bytes())
    for line in block.strip().splitlines():
        words = shlex.split(line)[1:]
        if words[-1] == "--help":
            with pytest.raises(SystemExit) as stop:
                main(words)
            assert stop.value.code == 0
        else:
            assert main(words) == 0, line
    for name in ("coins.bank", "found.json", "found/annotated/coins.jpg", "why.png"):
        assert (tmp_path / name).stat().st_size > 0, name


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

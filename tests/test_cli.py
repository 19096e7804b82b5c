"""The command line: help, errors in one line, exit codes."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tenet.cli import COMMANDS, build_parser, main


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert all(name in text for name in COMMANDS)
    examples = re.findall(r"^  tenet (.+)$", text, re.MULTILINE)
    assert {"demo", "register", "detect"} <= {line.split()[0] for line in examples}
    for line in examples:
        words = shlex.split(line)
        assert build_parser(words[0]).parse_args(words).command == words[0]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_has_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    assert "examples:" in capsys.readouterr().out


def test_unknown_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["nonsense"])
    assert stop.value.code == 2
    assert "nonsense" in capsys.readouterr().err


def test_a_user_error_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "no_such_model"]) == 1
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "paper_voc" in message
    assert "no_such_model" in message


def test_models_prints_settings_and_size(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "lite0_paper"]) == 0
    text = capsys.readouterr().out
    assert "orders = (2, 3, 4)" in text
    assert "relation_head" in text
    assert main(["models", "--ablations"]) == 0
    assert "table3a" in capsys.readouterr().out


def test_models_tells_those_with_weights(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    listed = capsys.readouterr().out
    assert re.search(r"tenet_pair +threshold 0\.\d\d, tenet_lite0 and \w+ together, the default", listed)
    assert re.search(r"tenet_voc1 .*bird, bus, cow, motorbike, sofa are new to it", listed)
    assert main(["models", "tenet_voc1"]) == 0
    assert "relation_head" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["finetune", "tenet_lite0", "--data", "x.json"],
        ["trial", "--data", "x.json"],
        ["train", "recipes/track_v1.toml"],
        ["evaluate", "tenet_voc1", "--data", "x.json"],
    ],
    ids=lambda words: words[0],
)
def test_a_folder_that_cannot_be_is_told_before_the_work(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert main([*words, "--out", str(tmp_path / "file" / "run")]) == 1
    told = capsys.readouterr().err
    assert "--out: expected a folder that can be written" in told
    assert told.count("\n") == 1


def test_a_shipped_model_is_told_what_to_learn(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["finetune", "tenet_lite0"]) == 1
    assert "--data SET with your annotated pictures, or --bank BANK" in capsys.readouterr().err


def test_a_closed_pipe_is_no_traceback() -> None:
    program = f"{sys.executable} -m tenet.cli models --ablations | head -n 1"
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("table3a: ")
    assert "Traceback" not in done.stderr

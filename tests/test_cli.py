"""The command line: help, errors in one line, exit codes."""

import re
import shlex
import subprocess
import sys

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


def test_a_closed_pipe_is_no_traceback() -> None:
    program = f"{sys.executable} -m tenet.cli models --ablations | head -n 1"
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("table3a: ")
    assert "Traceback" not in done.stderr

"""docs/service.md: its commands and its Python run as they stand there, in their order."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from served import ROOT, Served
from web_parts import fake_model

from tenet.cli import build_parser
from tenet.demo import FOLDER
from tenet.web.app import create_app
from tenet.web.job_store import MOST_DONE, MOST_OPEN
from tenet.web.limits import Limits
from tenet.web.metrics import Metrics

TEXT = (ROOT / "docs/service.md").read_text()
ADDRESS = "http://127.0.0.1:8000"


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """In a folder with the photographs that are named."""
    monkeypatch.chdir(tmp_path)
    for name in ("coins.png", "coffee.jpg"):
        shutil.copy(FOLDER / name, tmp_path)
    running = Served(tmp_path / "store.db")
    yield running
    running.kill()


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed: apt-get install curl")
def test_the_commands_run(served: Served, tmp_path: Path) -> None:
    blocks = [block for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL) if "$URL" in block]
    assert len(blocks) >= 5
    # A refusal ends the script; nothing goes through a proxy.
    head = 'set -euo pipefail\ncurl() { command curl -sSf --noproxy "*" "$@"; }\n'
    script = head + "\n".join(blocks).replace(ADDRESS, served.address)
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr
    for name in ("shot.jpg", "scene.jpg", "why.png", "found.json", "found.zip", "found.csv", "things.bank"):
        assert (tmp_path / name).stat().st_size > 0, name


def test_the_python_runs(served: Served, tmp_path: Path) -> None:
    [block] = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    shutil.make_archive(str(tmp_path / "pictures"), "zip", tmp_path, "coins.png")
    names: dict[str, object] = {}
    exec(block.replace(ADDRESS, served.address), names)
    assert len(names["found"].boxes) >= 1  # type: ignore[attr-defined]


def test_every_route_is_shown(tmp_path: Path) -> None:
    app = create_app(fake_model(), tmp_path / "store.db")
    app.state.service.close()
    shown = TEXT.replace("$JOB", "{key}").replace("old%20coin", "{name}").replace("/coin", "/{name}")
    shown = re.sub(r"shots/1\b", "shots/{shot}", shown)
    missing = [path for path in app.openapi()["paths"] if f"$URL{path}" not in shown]
    assert missing == []


def test_every_metric_is_told() -> None:
    named = set(re.findall(r"^# HELP (\S+)", Metrics().text().decode(), re.MULTILINE))
    named = {name for name in named if not name.endswith("_created")}
    assert named == set(re.findall(r"`(tenet_[a-z_]+)", TEXT.split("## Metrics")[1].split("\n## ")[0]))


def test_the_limits_are_those_of_the_code() -> None:
    table = TEXT.split("| limit | |")[1].split("\n\n")[0]
    limits, megabyte = Limits(), 1024 * 1024
    assert f"{limits.upload // megabyte} MB, {limits.pictures} pictures, {limits.body_seconds:g} s" in table
    assert f"{limits.pixels // 1_000_000} million pixels" in table
    assert f"{limits.archive // megabyte} MB; unpacked {limits.unpacked // megabyte // 1024} GB" in table
    assert f"{limits.job_pictures} pictures" in table
    assert f"{limits.open_requests}, together {limits.open_bytes // megabyte} MB" in table
    assert f"({limits.megabyte_seconds:g} s more for each MB" in table
    assert f"its header | {limits.head_seconds:g} s" in table
    assert f"{limits.shots} shots; {limits.classes:,} classes; {MOST_OPEN} jobs" in table
    assert f"{MOST_DONE} that are |" in table
    assert f"{limits.waiting} pictures" in table


def test_the_options_are_those_of_the_command() -> None:
    asked = vars(build_parser("serve").parse_args(["serve"]))
    assert asked["batch"] == Limits().batch
    table = TEXT.split("## Configuration")[1].split("\n\n")[1]
    for name in ("host", "port", "store", "batch"):
        assert f"`--{name} {asked[name]}`" in table
    assert all(f"`--{name.replace('_', '-')}" in table for name in set(asked) - {"command", "run"})


def test_its_pictures_are_there() -> None:
    shown = re.findall(r'(?:src="|\]\()(images/[^")]+)', TEXT)
    assert len(shown) == 2
    for name in shown:
        assert 10_000 < (ROOT / "docs" / name).stat().st_size < 300_000, name

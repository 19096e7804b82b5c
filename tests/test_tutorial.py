"""The tutorial notebook runs as it stands: with the fake model, and with the shipped one."""

import re
from pathlib import Path
from typing import Any

import pytest

from tenet.bank import ClassBank

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

ROOT = Path(__file__).parent.parent
NOTEBOOK = ROOT / "docs/tutorial.ipynb"
# In the notebook's own process the fake model takes the place of the shipped one.
FAKE = f"""
import sys
sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / "tests")!r}]
from fake_runtime import FakeRuntime
from tenet.predictor import Tenet
Tenet.load = staticmethod(lambda name=None: Tenet(FakeRuntime()))
"""
REAL = f"import sys; sys.path.insert(0, {str(ROOT)!r})"


def executed(first: str, folder: Path) -> Any:
    """The notebook with its outputs, after a cell that prepares its process."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(first))
    resources = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    return notebook


def text_of(notebook: Any) -> str:
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return "".join(output.get("text", "") for output in outputs)


def pictures_of(notebook: Any) -> int:
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return sum("image/png" in output.get("data", {}) for output in outputs)


def test_no_output_is_kept() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(code) >= 8
    assert all(not cell.outputs and cell.execution_count is None for cell in code)
    assert NOTEBOOK.stat().st_size < 30_000


def counts_of(text: str) -> tuple[int, dict[float, int], int]:
    """What it printed: coins found, coins found at each threshold, and what was found where nothing is."""
    [coins, absent] = [int(count) for count in re.findall(r"^(\d+) found$", text, re.MULTILINE)]
    at = {float(t): int(count) for t, count in re.findall(r"^(0\.\d) (\d+) found$", text, re.MULTILINE)}
    return coins, at, absent


def check_counts(text: str) -> None:
    """Laws of any model: a higher threshold finds no more, and five at most are listed, best first."""
    coins, at, _ = counts_of(text)
    assert list(at) == [0.2, 0.4, 0.6, 0.8]
    assert list(at.values()) == sorted(at.values(), reverse=True)
    [default] = re.findall(r"^default: ([\d.]+)$", text, re.MULTILINE)
    listed = [float(score) for score in re.findall(r"^coin (\d\.\d\d)  \[", text, re.MULTILINE)]
    assert len(listed) == min(coins, 5)
    assert listed == sorted(listed, reverse=True)
    assert all(score >= round(float(default), 2) for score in listed)


def test_every_cell_runs(tmp_path: Path) -> None:
    done = executed(FAKE, tmp_path)
    assert pictures_of(done) == 4
    check_counts(text_of(done))
    assert counts_of(text_of(done))[0] == 1  # the fake draws one box around everything of a colour
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert {"things.bank", "results/coco/results.json", "results/page.html"} <= written
    assert ClassBank.open(tmp_path / "things.bank").names == ("coin", "cat", "cup")


def test_it_runs_with_the_shipped_model(tmp_path: Path) -> None:
    done = executed(REAL, tmp_path)
    assert pictures_of(done) == 4
    check_counts(text_of(done))
    coins, _, absent = counts_of(text_of(done))
    assert coins >= 12
    assert absent <= 1

"""The tutorial notebook runs as it stands: always with the fake model, and with the real one where it is."""

from pathlib import Path
from typing import Any

import pytest

from tenet.runtime.torch_runtime import shipped_models

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


def test_every_cell_runs(tmp_path: Path) -> None:
    done = executed(FAKE, tmp_path)
    assert pictures_of(done) == 4
    assert "found" in text_of(done)
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert {"things.bank", "results/coco/results.json", "results/page.html"} <= written


@pytest.mark.skipif(
    not shipped_models(), reason="no weights in tenet/weights yet: the tutorial needs a model"
)
def test_it_runs_with_the_shipped_model(tmp_path: Path) -> None:
    done = executed(REAL, tmp_path)
    assert pictures_of(done) == 4
    assert (tmp_path / "things.bank").exists()

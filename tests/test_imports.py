"""Who may import whom (the house's table), and that the light half stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "tenet"

# What teaching and finding may not import: they reach the network through the runtime's protocol alone.
LIGHT = {"torch", "tenet.models", "tenet.ops", "tenet.engine", "tenet.commands", "tenet.cli"}

# What makes pictures for people to look at: numpy and Pillow, no network and no plotting library.
DRAWING = {"torch", "matplotlib", "tenet.models", "tenet.ops", "tenet.engine", "tenet.commands", "tenet.cli"}
# room: packages and rooms that it must never import
NEVER = {
    "errors.py": {"torch", "numpy", "tenet.models", "tenet.ops", "tenet.config"},
    "structures.py": {"torch", "tenet.models", "tenet.ops", "tenet.config"},
    "config.py": {"torch", "numpy", "tenet.models", "tenet.ops"},
    "presets.py": {"torch", "numpy", "tenet.models", "tenet.ops"},
    "settings.py": {"torch", "numpy", "tenet.models", "tenet.ops"},
    "recipe.py": {"torch", "tenet.models", "tenet.ops", "tenet.engine"},
    "pictures.py": LIGHT,
    "bank.py": LIGHT,
    "banks": LIGHT,
    "predictor.py": LIGHT,
    "looks": LIGHT,
    "results": LIGHT,
    "trials": LIGHT,
    "records": LIGHT,
    "ablations": {"tenet.commands", "tenet.cli", "tenet.bench", "tenet.predictor", "tenet.web"},
    "cli.py": {"torch", "numpy", "tenet.models", "tenet.ops"},
    "visualize.py": DRAWING,
    "drawing": LIGHT,
    "web": LIGHT,
    "client.py": LIGHT | {"tenet.web"},
    "client_forms.py": LIGHT | {"tenet.web"},
    "demo": DRAWING | {"skimage"},
    "ops": {"tenet.models", "tenet.config", "tenet.structures", "pathlib", "os"},
    "data": {"torch", "tenet.models", "tenet.ops", "tenet.scoring", "tenet.commands"},
    "scoring": {"torch", "tenet.models", "tenet.ops", "tenet.commands"},
    "models": {"tenet.data", "tenet.scoring", "tenet.engine", "tenet.cli", "tenet.presets", "tenet.commands"},
    "engine": {"tenet.cli", "tenet.commands", "tenet.bench", "tenet.presets", "tenet.predictor", "tenet.web"},
}


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


@pytest.mark.parametrize("room", NEVER)
def test_import_directions(room: str) -> None:
    files = [PACKAGE / room] if room.endswith(".py") else sorted((PACKAGE / room).rglob("*.py"))
    assert files
    for file in files:
        for name in imported(file):
            broken = [never for never in NEVER[room] if name == never or name.startswith(never + ".")]
            assert not broken, f"{file.relative_to(PACKAGE.parent)} imports {name}"


def test_no_torch_at_the_top_of_a_command() -> None:
    for file in sorted((PACKAGE / "commands").glob("*.py")):
        tree = ast.parse(file.read_text())
        top = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
        names = {getattr(node, "module", None) or node.names[0].name for node in top}
        heavy = {name for name in names if name.split(".")[0] in {"torch", "numpy", "PIL"}}
        assert not heavy, f"{file.name} imports {heavy} before it runs"


@pytest.mark.parametrize(
    "code", ["import tenet", "import tenet.cli; tenet.cli.build_parser(None).format_help()"]
)
def test_the_light_half_loads_no_torch(code: str) -> None:
    check = f"import sys; {code}; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_the_predictor_loads_no_torch() -> None:
    check = "import sys, tenet.predictor, tenet.results.folder; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_a_report_loads_no_torch() -> None:
    check = "import sys, tenet.ablations.report, tenet.records.tables; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0

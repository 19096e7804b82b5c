"""The models whose weights come with the package, by name. Loads no torch."""

from pathlib import Path

SHIPPED = Path(__file__).parent.parent / "weights"
DEFAULT = "tenet_pair"
LEARNS = "tenet_lite2"
"""What learns where no model is named: a single network."""
PAIR = "tenet-pair-1"
"""What the file of a pair of models calls itself (`tenet.runtime.loading`)."""


def shipped_models() -> list[str]:
    """Their names."""
    return sorted(path.stem for path in SHIPPED.glob("*.json"))

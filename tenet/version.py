"""The version, apart from everything else so that packaging can read it without importing torch."""

import subprocess
from pathlib import Path

__version__ = "0.1.0"


def clone_says(*words: str) -> str | None:
    """What `git WORDS` prints where the package is a clone, nothing on a machine without git; None where it
    is no clone."""
    root = Path(__file__).parent.parent
    if not (root / ".git").exists():
        return None
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()

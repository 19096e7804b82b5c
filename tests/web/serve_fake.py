"""`tenet serve` in a process of its own, with the fake model. Arguments are those of the command."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from fake_bank import PiecesRuntime
from fake_runtime import FakeRuntime

from tenet.cli import main
from tenet.predictor import Tenet

if __name__ == "__main__":
    pieces = "--pieces" in sys.argv
    words = [word for word in sys.argv[1:] if word != "--pieces"]
    Tenet.load = staticmethod(lambda name=None: Tenet(PiecesRuntime() if pieces else FakeRuntime()))  # type: ignore[method-assign]
    sys.exit(main(["serve", "--no-browser", *words]))

"""The server that `tenet bench serve` measures, in a process of its own: `serve_child STORE BATCH MODEL`."""

import sys

from tenet.bench.serve import PATIENCE
from tenet.errors import TenetError
from tenet.predictor import Tenet


def main() -> None:
    """Serve on a free port of this machine, and print the address."""
    from tenet.web.limits import Limits
    from tenet.web.server import serve

    store, batch, name = sys.argv[1:4]

    def began(address: str, _store: str) -> None:
        print(address, flush=True)

    limits = Limits(batch=int(batch), seconds=PATIENCE)
    try:
        serve(lambda: Tenet.load(name or None), "127.0.0.1", 0, store, None, began, limits)
    except TenetError as error:
        # The one who started it reads a line, and tells it.
        print(" ".join(str(error).split()), flush=True)
        sys.exit(1)


if __name__ == "__main__":
    main()

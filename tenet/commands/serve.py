"""Open a page in which a person teaches the detector and sees it work; the same program is an HTTP service.

Listens on this machine alone unless told otherwise; on any other address a token is demanded of every
request: `--token`, or better TENET_TOKEN in the environment, which process lists do not show. Classes,
shots and jobs are kept in one SQLite file, or in PostgreSQL for several servers (extra `postgres`).

examples:
  tenet serve
  tenet serve --store things.db --port 9000 --no-browser
  TENET_TOKEN=… tenet serve --host 0.0.0.0 --store postgresql://tenet@db.example/tenet
"""

import argparse
import os
import sys

from tenet.errors import MissingExtraError

STORE = "tenet-store.db"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default %(default)s)")
    parser.add_argument("--port", type=_port, default=8000, help="0: any free one (default %(default)s)")
    parser.add_argument(
        "--store",
        default=STORE,
        metavar="FILE|URL",
        help="SQLite file or postgresql:// (default %(default)s)",
    )
    parser.add_argument("--token", metavar="TEXT", help="demand it of every request (default: TENET_TOKEN)")
    parser.add_argument("--model", metavar="NAME", help="another model than the one that comes with tenet")
    parser.add_argument(
        "--batch",
        type=_number,
        default=4,
        help="most pictures looked at together (default %(default)s)",
    )
    parser.add_argument("--no-browser", action="store_true", help="do not open the page")


def run(args: argparse.Namespace) -> int:
    try:
        from tenet.web.limits import Limits
        from tenet.web.safety import check_token
        from tenet.web.server import serve
    except ImportError as error:
        raise MissingExtraError("tenet serve", "serve") from error

    from tenet.predictor import Tenet

    token = check_token(args.host, args.token or os.environ.get("TENET_TOKEN") or None)

    def began(address: str, store: str) -> None:
        print(f"page and service: {address}   (Ctrl+C ends it)\nstore: {store}", flush=True)
        if not args.no_browser and sys.stdout.isatty():
            import webbrowser

            webbrowser.open(address)

    limits = Limits(batch=args.batch)
    serve(lambda: Tenet.load(args.model), args.host, args.port, args.store, token, began, limits)
    return 0


def _number(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 64:
        raise argparse.ArgumentTypeError(f"expected a number of pictures from 1 to 64, got {text!r}")
    return int(text)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to 65535, got {text!r}")
    return int(text)

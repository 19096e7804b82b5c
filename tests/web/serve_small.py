"""A server with a short queue before a slow fake model: `serve_small.py STORE`."""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from fake_runtime import FakeRuntime

from tenet.predictor import Tenet
from tenet.web.limits import Limits
from tenet.web.server import serve

LIMITS = Limits(waiting=3, open_requests=6, head_seconds=1.0)


class Slow(FakeRuntime):
    def encode_images(self, pictures):  # type: ignore[no-untyped-def]
        time.sleep(0.05)
        return super().encode_images(pictures)


if __name__ == "__main__":
    told = lambda address, store: print(f"page and service: {address}", flush=True)  # noqa: E731
    serve(lambda: Tenet(Slow()), "127.0.0.1", 0, sys.argv[-1], None, told, LIMITS)

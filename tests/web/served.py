"""A served store for a test: started, spoken to, killed."""

import os
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

ROOT = Path(__file__).parent.parent.parent
PATIENCE = 120
"""Seconds until a server that should be up is taken for hung; it takes two when the machine is idle."""


class Served:
    """A process of `tenet serve` on a free port, with the fake model or with the shipped one; `small`: with
    the limits of serve_small.py."""

    def __init__(
        self,
        store: Path | str,
        *words: str,
        token: str | None = None,
        shipped: bool = False,
        small: bool = False,
    ) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        environment.pop("TENET_TOKEN", None)
        if token:
            environment["TENET_TOKEN"] = token
        fake = [str(Path(__file__).parent / ("serve_small.py" if small else "serve_fake.py"))]
        program = ["-m", "tenet.cli", "serve", "--no-browser"] if shipped else fake
        command = [sys.executable, *program, "--port", "0", *words]
        self.process = subprocess.Popen(
            [*command, "--store", str(store)], env=environment, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert "http://" in line, f"the server did not start: {line!r}"
        self.address = line.split()[3]
        self._until_ready()

    def _until_ready(self) -> None:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                with urlopen(f"{self.address}/readyz", timeout=10) as answer:
                    assert answer.status == 200
                    return
            except OSError:
                assert self.process.poll() is None, "the server ended"
                assert time.monotonic() < end, "the server is not ready"
                time.sleep(0.05)

    def kill(self) -> None:
        """As if the power failed."""
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

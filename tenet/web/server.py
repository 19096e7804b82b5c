"""Runs the app behind uvicorn."""

import socket
from collections.abc import Callable

import uvicorn

from tenet.errors import InputError
from tenet.predictor import Tenet
from tenet.web.app import create_app
from tenet.web.connections import impatient
from tenet.web.limits import Limits


def serve(
    load: Callable[[], Tenet],
    host: str,
    port: int,
    store: str,
    token: str | None,
    began: Callable[[str, str], None],
    limits: Limits | None = None,
) -> None:
    """Serve until the process is told to end. `load` gives the model, once the address is ours; `began` hears
    the address and the store."""
    limits = limits or Limits()
    listening = listen(host, port)
    try:
        app = create_app(load(), store, token, limits)
    except BaseException:
        listening.close()
        raise
    config = uvicorn.Config(
        app,
        http=impatient(limits.head_seconds),
        log_level="warning",
        server_header=False,
        date_header=False,
        timeout_keep_alive=20,
        timeout_graceful_shutdown=10,
        # Its own limit answers in plain text; ours comes first, in JSON. This one is for idle connections.
        limit_concurrency=1000,
    )
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host
    named = f"[{shown}]" if ":" in shown else shown
    began(f"http://{named}:{listening.getsockname()[1]}", app.state.service.database.shown)
    uvicorn.Server(config).run(sockets=[listening])


def listen(host: str, port: int) -> socket.socket:
    """The socket, bound before anything is loaded or said: an address in use is an error in one line."""
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        # From now on who comes waits: the address is told before the app is up.
        listening.listen(1024)
    except OSError as error:
        listening.close()
        raise InputError(
            f"--port: expected to listen on {host}:{port}, but it cannot be done ({error.strerror}); "
            "choose another with --port"
        ) from error
    return listening

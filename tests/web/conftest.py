"""Stores for the tests of the service: a SQLite file, and a real PostgreSQL where it is installed."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_parts import CHROMIUM, PATIENCE, THING
from fake_bank import scene
from served import Served
from service_parts import client_of
from starlette.testclient import TestClient
from web_parts import OPENED, png

from tenet.client import Client
from tenet.web.database import Database
from tenet.web.tables import metadata


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(autouse=True)
def _close_stores() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    """A service in this process."""
    with client_of(tmp_path / "store.db") as client:
        yield client


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Not for the whole session: its event loop would be in the way of other tests."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            # Root has no sandbox, a container little shared memory, and neither has a camera.
            args=[
                "--no-sandbox",
                "--disable-dev-shm-usage",
                "--use-fake-device-for-media-stream",
                "--use-fake-ui-for-media-stream",
            ],
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    running = Served(tmp_path_factory.mktemp("store") / "store.db", "--pieces")
    yield running
    running.kill()


@pytest.fixture
def served(running: Served) -> Served:
    """The server of all these tests, without what another one taught it."""
    client = Client(running.address)
    for one in client.classes():
        client.remove(one.name)
    for job in client.jobs():
        client.forget_job(job.id)
    return running


@pytest.fixture
def excused() -> list[str]:
    """What a page may complain of in its console; a test that expects something adds it."""
    return []


@pytest.fixture
def page(browser: Any, served: Served, excused: list[str]) -> Iterator[Any]:
    """A page of its own; whatever it complains of in the console fails the test."""
    context = browser.new_context(viewport={"width": 1360, "height": 900}, accept_downloads=True)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    foreign: list[str] = []
    page.on(
        "request",
        lambda one: (
            None if one.url.startswith((served.address, "blob:", "data:")) else foreign.append(one.url)
        ),
    )
    page.goto(served.address)
    yield page
    context.close()
    assert not foreign, "the page asked another host"
    assert not [text for text in complaints if not any(status in text for status in excused)]


@pytest.fixture
def pictures(tmp_path: Path) -> dict[str, Path]:
    made = {
        "teach": scene(400, 300, ("red", THING)),
        "query": scene(500, 350, ("red", (60, 60, 170, 180)), ("red", (300, 150, 430, 280))),
        "empty": scene(400, 300),
    }
    paths = {name: tmp_path / f"{name}.png" for name in made}
    for name, path in paths.items():
        path.write_bytes(png(made[name]))
    return paths


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The URL of a server of Debian's package, on a temporary folder and a free loopback port."""
    homes = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda home: int(home.parent.name))
    if not homes:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    # The server refuses to run as root; Debian's package makes a user for it.
    user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    folder = tempfile.mkdtemp(prefix="tenet-postgres-")
    if os.geteuid() == 0:
        shutil.chown(folder, user)
    port, data = free_port(), f"{folder}/data"
    run = {"user": user, "cwd": folder, "check": True, "stdout": subprocess.DEVNULL, "timeout": 60}
    try:
        # The C locale is on every machine; others may not be made.
        kind = ["-A", "trust", "-U", "tenet", "-N", "--locale=C", "-E", "UTF8"]
        subprocess.run([homes[-1] / "initdb", "-D", data, *kind], **run)
        listen = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        control = [homes[-1] / "pg_ctl", "-D", data, "-l", f"{folder}/log", "-w"]
        subprocess.run([*control, "-o", listen, "start"], **run)
        try:
            yield f"postgresql://tenet@127.0.0.1:{port}/postgres"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **run)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty store is: what holds for one holds for the other."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    url = str(request.getfixturevalue("postgresql"))
    database = Database(url)
    metadata.drop_all(database._engine)
    database.close()
    return url

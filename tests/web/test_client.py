"""The Python client against a served store, and `tenet serve` as a program."""

import io
import json
import re
import signal
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_bank import scene
from fake_runtime import FakeRuntime
from served import Served
from web_parts import BOX, file, png

from tenet.bank import ClassBank
from tenet.cli import main
from tenet.client import Client, ServiceRefusedError
from tenet.client_forms import multipart
from tenet.errors import DataError, InputError
from tenet.predictor import Tenet

TOKEN = "a-token-of-the-tests"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    running = Served(tmp_path_factory.mktemp("store") / "store.db", token=TOKEN)
    yield running
    running.kill()


@pytest.fixture
def client(served: Served) -> Client:
    client = Client(served.address, TOKEN)
    for one in client.classes():
        client.remove(one.name)
    return client


def test_the_client_finds_what_the_library_finds(client: Client, tmp_path: Path) -> None:
    (tmp_path / "query.png").write_bytes(file("red", 9))
    told = client.register("red", [(file("red"), BOX), file("red", 1)])
    assert (told.added, len(told.shots), told.verdict) == (2, 2, "good")
    found = client.detect(tmp_path / "query.png", threshold=0.3)
    bank = ClassBank(FakeRuntime())
    bank.register("red", [(file("red"), BOX), file("red", 1)])
    expected = Tenet(FakeRuntime()).detect(tmp_path / "query.png", bank, 0.3)
    np.testing.assert_allclose(found.boxes, expected.boxes, atol=0.006)
    assert found.names.tolist() == expected.names.tolist()
    assert found.shots.tolist() == expected.shots.tolist()
    client.remove("red", told.shots[0])
    assert client.classes()[0].shots == told.shots[1:]


def test_a_single_shot_needs_no_list_and_an_array_is_told(client: Client) -> None:
    assert client.register("red", (file("red"), BOX)).added == 1
    assert client.register("red", file("red", 1)).added == 1
    wrong: Any
    for wrong in (np.zeros((4, 4, 3), np.uint8), [file("red")]):
        with pytest.raises(InputError, match="expected the path of one picture file or its bytes"):
            client.detect(wrong)


def test_a_bank_and_a_job(client: Client) -> None:
    client.register("red", [file("red")])
    content = client.save_bank()
    client.remove("red")
    assert [one.name for one in client.load_bank(content)] == ["red"]
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for seed in range(3):
            archive.writestr(f"{seed}.png", file("red", seed))
    job = client.wait(client.start_job(stream.getvalue()).id, 60)
    assert (job.state, job.done, job.failed) == ("done", 3, 0)
    assert len(json.loads(client.export_job(job.id))["annotations"]) == 3


class Recording(Client):
    """Writes down what it asks for."""

    def __init__(self, address: str, token: str) -> None:
        super().__init__(address, token)
        self.asked: list[tuple[str, str]] = []

    def _ask(self, method: str, path: str, kind: str | None, body: bytes | None) -> bytes:
        self.asked.append((method, path.partition("?")[0]))
        return super()._ask(method, path, kind, body)


def test_every_route_has_a_method(served: Served, client: Client, tmp_path: Path) -> None:
    asking = Recording(served.address, TOKEN)
    told = asking.register("red", [(file("red"), BOX), file("red", 1)])
    asking.register("blue", [(file("blue"), BOX)])
    assert asking.get("red").shots == told.shots
    assert asking.rename("red", "old new red").name == "old new red"
    assert asking.thumbnail("old new red", told.shots[0]).startswith(b"\xff\xd8")
    assert asking.scene("old new red", told.shots[0]).startswith(b"\xff\xd8")
    assert [one.name for one in asking.classes()] == ["old new red", "blue"]
    both = scene(400, 300, ("red", (20, 20, 120, 120)), ("blue", (200, 100, 300, 200)))
    assert sorted(asking.detect(png(both), 0.1).names.tolist()) == ["blue", "old new red"]
    found = asking.detect(png(both), 0.1, size=256, tiles=False, limit=1)
    assert len(found) == 1
    why = asking.explain(file("red"), classes=["old new red"], box=BOX)
    assert why["explained"][0]["class"] == "old new red"
    assert asking.explain_figure(file("red")).startswith(b"\x89PNG")
    job = asking.wait(asking.start_job([file("red"), b"no picture", file("blue")], classes="blue").id, 60)
    assert asking.jobs()[0] == job
    results = asking.job_results(job.id)
    assert [len(one["detections"]) for one in results["pictures"]] == [0, 1]
    assert len(results["failed"]) == 1
    assert asking.export(results["pictures"], ["blue"], "csv").count(b"\n") == 2
    assert asking.export_job(job.id, "csv").count(b"\n") == 2
    asking.forget_job(job.id)
    (tmp_path / "some.bank").write_bytes(asking.save_bank(["blue"]))
    assert ClassBank.open(tmp_path / "some.bank").names == ("blue",)
    asking.load_bank(tmp_path / "some.bank")
    asking.remove("old new red", told.shots[0])
    asking.remove("old new red")
    assert asking.health()["status"] == asking.ready()["status"] == "ok"
    assert "tenet_requests_total" in asking.metrics()
    described = json.loads(asking._send("GET", "/openapi.json"))["paths"]
    for path, methods in described.items():
        pattern = re.compile(re.sub(r"\{[a-z]+\}", "[^/]+", path))
        for method in methods:
            assert any(way == method.upper() and pattern.fullmatch(at) for way, at in asking.asked), (
                method,
                path,
            )


def test_refusals_carry_the_services_words(client: Client, served: Served, tmp_path: Path) -> None:
    with pytest.raises(ServiceRefusedError, match="expected a picture") as caught:
        client.register("red", [b"no picture"])
    assert (caught.value.status, caught.value.code) == (422, "bad_input")
    with pytest.raises(ServiceRefusedError, match="Bearer"):
        Client(served.address, "another-token-entirely").classes()
    with pytest.raises(DataError, match="cannot be read"):
        client.detect(tmp_path / "nothing.png")
    with pytest.raises(DataError, match="running"):
        Client("http://127.0.0.1:1").classes()
    with pytest.raises(InputError, match="http://"):
        Client("ftp://127.0.0.1")


def test_a_name_cannot_break_out_of_its_header() -> None:
    _, body = multipart([("pictures", 'a"\r\nX-Evil: 1\r\n\r\nb.png', b"x")])
    assert b"\r\nX-Evil" not in body


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--host", "0.0.0.0"], "expected a token"),
        (["--host", "::"], "expected a token"),
        (["--token", "short"], "at least 16"),
        (["--store", "mysql://a/b"], "postgresql://"),
    ],
)
def test_the_command_refuses(
    words: list[str],
    says: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(Tenet, "load", staticmethod(lambda name=None: Tenet(FakeRuntime())))
    monkeypatch.delenv("TENET_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)
    assert main(["serve", "--no-browser", "--port", "0", *words]) == 1
    shown = capsys.readouterr()
    assert says in shown.err
    assert shown.err.count("\n") == 1


def test_a_port_in_use(
    served: Served, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # It is noticed before the model is loaded, which may take a while.
    monkeypatch.setattr(Tenet, "load", staticmethod(lambda name=None: pytest.fail("the model was loaded")))
    port = served.address.rpartition(":")[2]
    assert main(["serve", "--no-browser", "--port", port, "--store", str(tmp_path / "s.db")]) == 1
    assert "choose another with --port" in capsys.readouterr().err


def test_it_ends_when_it_is_told_to(tmp_path: Path) -> None:
    running = Served(tmp_path / "store.db")
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(timeout=60) in (0, -signal.SIGTERM)
    running.kill()

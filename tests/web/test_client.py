"""The Python client against a served store, and `tenet serve` as a program."""

import io
import json
import signal
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fake_runtime import FakeRuntime
from served import Served
from web_parts import BOX, file

from tenet.bank import ClassBank
from tenet.cli import main
from tenet.client import Client, ServiceRefusedError, _multipart
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
    _, body = _multipart([("pictures", 'a"\r\nX-Evil: 1\r\n\r\nb.png', b"x")])
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
    monkeypatch.setattr(Tenet, "load", staticmethod(lambda name=None: Tenet(FakeRuntime())))
    port = served.address.rpartition(":")[2]
    assert main(["serve", "--no-browser", "--port", port, "--store", str(tmp_path / "s.db")]) == 1
    assert "choose another with --port" in capsys.readouterr().err


def test_it_ends_when_it_is_told_to(tmp_path: Path) -> None:
    running = Served(tmp_path / "store.db")
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(timeout=60) in (0, -signal.SIGTERM)
    running.kill()

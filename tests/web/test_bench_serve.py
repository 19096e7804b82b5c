"""`tenet bench serve`: wrong words are one line, and what fails is counted."""

from pathlib import Path

import pytest
from web_parts import file

from tenet.bench import serve
from tenet.cli import main


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--clients", "1,x"], "expected a whole number of at least 1, got 'x'"),
        (["--clients", ""], "expected a whole number of at least 1"),
        (["--clients", "1", "--model", "nosuchmodel"], "nosuchmodel"),
    ],
)
def test_wrong_words_are_one_line(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = main(["bench", "serve", *words])
    except SystemExit as ended:
        status = ended.code  # type: ignore[assignment]
    assert status in (1, 2)
    shown = capsys.readouterr().err
    assert says in shown
    assert "Traceback" not in shown
    assert shown.strip().splitlines()[-1].count(says) == 1


def test_where_all_fail_there_is_a_row_nevertheless() -> None:
    # Nobody listens there.
    load = serve.measure("http://127.0.0.1:1", 3, 0.2, [file()])
    assert load.latencies == []
    assert len(load.failed) >= 3
    assert serve._row(load)[:5] == ["3", "0", "0.0", "-", "-"]


def test_whatever_ends_a_request_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_words: object) -> None:
        raise RuntimeError("nobody expected this")

    monkeypatch.setattr("tenet.client.Client.detect", broken)
    load = serve.measure("http://127.0.0.1:1", 2, 0.1, [b""])
    assert set(load.failed) == {"RuntimeError: nobody expected this"}


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux tells the peak of the memory")
def test_the_peak_begins_anew() -> None:
    import mmap
    import os

    # Of the system's own: what the allocator has and gives back depends on all tests before.
    size = 300 * 1024 * 1024
    serve._forget_peak(os.getpid())
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as block:
        block.write(b"\x01" * size)
        high = float(serve._memory(os.getpid()).split()[0])
    serve._forget_peak(os.getpid())
    assert float(serve._memory(os.getpid()).split()[0]) < high - 200

"""The command, and the report: one file, nothing from outside, marks that are true."""

import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from evaluation_parts import Colours, Knowing, settings_for, small_sets
from tiny_detector import TINY

from tenet.cli import main
from tenet.config import HeadConfig
from tenet.data.synthetic import write_synthetic
from tenet.engine.evaluate import evaluate
from tenet.engine.evaluation_detector import fingerprint_weights
from tenet.engine.evaluation_examples import MISSED, RIGHT, WRONG, all_marks, choose_scenes
from tenet.engine.evaluation_report import report_html
from tenet.presets import PRESETS
from tenet.records.record import read_record
from tenet.runtime.loading import load_runtime
from tenet.scoring.report import shots_table


class Page(HTMLParser):
    """Elements that are open, and every address that the page asks for."""

    VOID = frozenset({"meta", "img", "br"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.seen: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_else() -> None:
    test, support = small_sets()
    names = {test.classes[0]: "<script>alert(1)</script>"}
    test, support = test.renamed(names), support.renamed(names)
    done = evaluate(
        Colours(), test, support, settings_for(test, base=test.classes[:1], novel=test.classes[1:])
    )
    text = report_html(done)
    page = Page(text)
    assert not page.open
    assert "script" not in page.seen
    assert page.addresses
    assert all(address.startswith("data:image/jpeg;base64,") for address in page.addresses)
    assert "http" not in text
    assert "url(" not in text
    assert "prefers-color-scheme:dark" in text
    assert text.count("<polyline") == len(test.classes) + 1
    for side in ("base", "novel"):
        assert str(done.summaries["voc07"][2].groups[side]["AP"]) in text


def test_marks_tell_right_from_wrong_and_missed() -> None:
    test, support = small_sets()
    settings = settings_for(test, query_size=(64, 96))
    objects = sum(len(record.target) for record in test.records)

    def kinds(detector: Knowing) -> list[str]:
        done = evaluate(detector, test, support, settings)
        return [mark.kind for marks in all_marks(done).values() for mark in marks]

    assert kinds(Knowing(test)) == [RIGHT] * objects
    assert kinds(Knowing(None)) == [MISSED] * objects
    shifted = Knowing(test)
    for picture, answer in shifted.answers.items():
        boxes = np.repeat(np.array([[0, 0, 4, 4]], np.float32), len(answer), 0)
        shifted.answers[picture] = replace(answer, boxes=boxes)
    found = kinds(shifted)
    assert found.count(MISSED) == objects
    assert found.count(WRONG) == len(test.classes)  # where nothing is right, the first one stands for all
    scenes = choose_scenes(evaluate(shifted, test, support, settings))
    assert [bool(own) for own in scenes.values()] == [False, True, True]


def test_the_table_has_a_column_for_each_number_of_shots() -> None:
    test, support = small_sets()
    done = evaluate(Knowing(test), test, support, settings_for(test, query_size=(64, 96)))
    text = shots_table(done.summaries["voc07"])
    assert text.splitlines()[1].split() == ["AP", "1", "shot", "2", "shots"]
    assert text.splitlines()[2].split() == ["novel", *["100.0", "±", "0.0", "100.0", "±", "0.0"]]
    assert "meta-test, strict track" in done.table()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> str:
    """A configuration that is cheap to build and to match, under a name of its own."""
    rpn = replace(TINY.rpn, conditioning="depthwise", post_nms=(40, 10))
    head = HeadConfig(kind="none", cosine_prior=True, regions="union")
    monkeypatch.setitem(PRESETS, "quick", lambda: replace(TINY, rpn=rpn, head=head))
    return "quick"


def test_command(quick: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(write_synthetic(tmp_path / "set", 8, 2, (96, 64), seed=3))
    out = tmp_path / "out"
    options = ["--data", data, "--shots", "1", "--seeds", "0-1", "--metric", "voc07", "--workers", "0"]
    assert main(["evaluate", quick, *options, "--out", str(out)]) == 0
    shown = capsys.readouterr()
    assert "quick (untrained) on annotations: 8 pictures, 2 novel classes" in shown.out
    assert shown.err == ""
    assert (out / "report.html").exists()
    document = json.loads((out / "results.json").read_text())
    assert document["track"] == "strict"
    assert set(document["results"][0]["seeds"]) == {"0", "1"}
    assert all(count < 8 for count in document["data"]["tested"].values())  # one set: shots are not tested
    assert main(["evaluate", quick, *options, "--out", str(out), "--json", "-"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["results"] == document["results"]


def test_shipped_models_are_evaluated_as_they_ship(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With their weights, and not as the configuration of the same name; what they know is no novel class."""
    data = write_synthetic(tmp_path / "set", 6, 2, (128, 128), seed=3)
    document = json.loads(data.read_text())
    document["categories"][0]["name"] = "cat"
    data.write_text(json.dumps(document))
    words = ["evaluate", "tenet_lite0", "--data", str(data), "--shots", "1", "--seeds", "0", "--limit", "2"]
    assert main([*words, "--json", str(tmp_path / "r.json")]) == 0
    shown, found = capsys.readouterr().out, json.loads((tmp_path / "r.json").read_text())
    assert found["model"] == "tenet_lite0"
    assert "untrained" not in shown
    assert found["weights"] == fingerprint_weights(load_runtime("tenet_lite0").detector)
    assert (found["settings"]["base"], len(found["settings"]["novel"])) == (["cat"], 1)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["quick", "--shots", "50"], "expected 50 shots"),
        (["quick", "--classes", "unicorn"], "expected some of"),
        (["quick", "--split", "voc1"], "expected classes of split voc1"),
        (["quick", "--side", "both"], "expected --split"),
        (["quick", "--metric", "mAP"], "metrics: expected some of"),
        (["nothing.safetensors"], "a checkpoint, or a configuration"),
    ],
)
def test_errors_are_one_line(
    quick: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], says: str
) -> None:
    data = str(write_synthetic(tmp_path / "set", 4, 2, (64, 64), seed=3))
    assert main(["evaluate", *options, "--data", data, "--out", str(tmp_path / "out")]) == 1
    shown = capsys.readouterr()
    assert says in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("text", ["", "a", "4-1", "1,-2"])
def test_numbers_that_are_none(text: str) -> None:
    with pytest.raises(SystemExit):
        main(["evaluate", "tenet_lite0", "--data", "x.json", "--seeds", text])


def test_a_record_of_an_evaluation(quick: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(write_synthetic(tmp_path / "set", 8, 2, (96, 64), seed=3))
    path = tmp_path / "records" / "quick.json"
    options = ["--data", data, "--shots", "1", "--seeds", "0-1", "--metric", "voc07", "--workers", "0"]
    assert (
        main(["evaluate", quick, *options, "--results", str(path), "--json", str(tmp_path / "all.json")]) == 0
    )
    record, document = read_record(path), json.loads((tmp_path / "all.json").read_text())
    assert record.kind == "evaluation"
    assert record.command.startswith("tenet evaluate quick --data")
    assert record.model["weights"] == document["weights"]
    assert record.config["model"]["head"]["kind"] == "none"
    assert record.config["settings"]["seeds"] == [0, 1]
    [result] = document["results"]
    assert [(f.shots, f.seed) for f in record.figures] == [(1, 0), (1, 1)]
    for figure in record.figures:
        assert figure.classes == result["seeds"][str(figure.seed)]["classes"]
        assert figure.groups == result["seeds"][str(figure.seed)]["groups"]
    capsys.readouterr()
    assert main(["results", str(tmp_path / "records")]) == 0
    mean, std = 100 * result["groups"]["novel"]["AP"], 100 * result["group_std"]["novel"]["AP"]
    assert f"| meta-test | novel | AP | {mean:.1f} ± {std:.1f} | 0, 1 |" in capsys.readouterr().out


def test_a_record_that_cannot_be_written_is_refused_first(
    quick: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", quick, "--data", "nowhere.json", "--results", str(tmp_path / "a.txt")]) == 1
    assert "--results: expected a name that ends in .json" in capsys.readouterr().err

"""Records: the way to the file and back; tables from known records, number by number; hostile files."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tenet.ablations.plan import Budget, Run, plan_runs
from tenet.ablations.report import POINT, draw, read_outcome, table
from tenet.cli import main
from tenet.errors import DataError
from tenet.presets import preset
from tenet.recipe import Recipe
from tenet.records.record import Figure, Record, find_records, made_by, read_record, write_record
from tenet.records.tables import tables


def figure(value: float | None, shots: int = 5, seed: int = 0, **changes: Any) -> Figure:
    values = {"groups": {"novel": {"AP": value}}, "classes": {"bird": {"AP": value}}}
    known = {"set": "val", "pictures": 40, "protocol": "meta-test", "metric": "voc07"}
    return Figure(**{**known, **values, "shots": shots, "seed": seed, **changes})


def record(*figures: Figure, **changes: Any) -> Record:
    known: dict[str, Any] = {
        "kind": "evaluation",
        "command": "tenet evaluate x",
        "model": {"name": "x", "weights": "abcdef0123"},
        "config": {"settings": {"shots": [5], "seeds": [0], "limit": 40}},
        "seconds": 1.5,
        "made_by": {"tenet": "1", "commit": "c" * 40, "changed": False},
        "time": "2026-01-01T00:00:00+00:00",
    }
    return Record(figures=figures, **{**known, **changes})


def test_written_is_read(tmp_path: Path) -> None:
    kept = record(figure(0.25), figure(None, seed=1))
    write_record(tmp_path / "a" / "one.json", kept)
    assert read_record(tmp_path / "a" / "one.json") == kept
    assert find_records(tmp_path) == {tmp_path / "a" / "one.json": kept}


def test_what_made_it_is_filled_in(tmp_path: Path) -> None:
    write_record(tmp_path / "one.json", record(figure(0.25), made_by={}, time=""))
    found = read_record(tmp_path / "one.json")
    assert found.made_by == made_by()
    assert found.made_by["tenet"]
    assert found.time.endswith("+00:00")


@pytest.mark.parametrize(
    "harm",
    [
        {"figures": 5},
        {"figures": [{"set": "val"}]},
        {"figures": [{**record(figure(0.5)).to_json()["figures"][0], "shots": "5"}]},
        {"figures": [{**record(figure(0.5)).to_json()["figures"][0], "groups": {"novel": {"AP": "high"}}}]},
        {"kind": "guess"},
        {"model": {}},
        {"more": 1},
        {"format": "tenet-record-9"},
    ],
    ids=str,
)
def test_a_damaged_record_is_named(tmp_path: Path, harm: dict[str, Any]) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps({**record(figure(0.5)).to_json(), **harm}))
    with pytest.raises(DataError, match=r"one\.json: expected a"):
        read_record(path)


def test_the_table_of_shots_and_protocols_is_exact() -> None:
    meta = record(figure(0.10), figure(0.20, seed=1), figure(0.05, shots=1), figure(None, shots=1, seed=1))
    tuned = record(figure(0.5, protocol="fine-tuned"))
    assert tables({Path("a.json"): meta, Path("b.json"): tuned}) == (
        "### x on val: VOC 11-point AP, percent\n\n"
        "40 pictures, weights abcdef01\n\n"
        "| protocol | classes |  | 1 shot | 5 shots | seeds |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
        "| meta-test | novel | AP | 5.0 | 15.0 ± 7.1 | 0, 1 |\n"
        "| fine-tuned | novel | AP | – | 50.0 | 0 |"
    )


def test_other_weights_or_settings_are_another_table() -> None:
    one = record(figure(0.1))
    others = [
        replace(one, model={"name": "x", "weights": "other"}),
        replace(one, config={"settings": {"limit": 80}}),
        record(figure(0.1, pictures=80)),
        record(figure(0.1, metric="coco")),
    ]
    for other in others:
        assert tables({Path("a"): one, Path("b"): other}).count("###") == 2
    assert tables({Path("a"): one, Path("b"): record(figure(0.2, seed=1))}).count("###") == 1


def test_ways_of_trying_a_model_are_rows_of_one_table() -> None:
    """Older records do not have every setting of a trial."""
    ways = ("trial", "trial, fine-tuned on the shots' pictures", "trial, bare crops")
    settings: list[dict[str, Any]] = [
        {"bare": False},
        {"bare": False, "finetune": "pictures"},
        {"bare": True},
    ]
    shown = tables(
        {
            Path(way): record(figure(0.1, protocol=way), config={"settings": own})
            for way, own in zip(ways, settings, strict=True)
        }
    )
    assert shown.count("###") == 1
    rows = [line.split("|")[1].strip() for line in shown.splitlines() if line.startswith("| trial")]
    assert list(dict.fromkeys(rows)) == [ways[0], ways[2], ways[1]]


def test_a_draw_with_two_figures_is_refused() -> None:
    assert tables({Path("a"): record(figure(0.1)), Path("b"): record(figure(0.1))}).count("10.0") == 1
    with pytest.raises(DataError, match="b: expected the figures of a"):
        tables({Path("a"): record(figure(0.1)), Path("b"): record(figure(0.2))})


# Ablations ------------------------------------------------------------------------------------------


def ground(**train: Any) -> Recipe:
    document = {"train": train, "data": {"train": ["t.json"], "split": "voc1"}, "evaluate": {"shots": [5]}}
    return replace(Recipe.from_dict(document), model=preset("tenet_lite0"))


def measured(run: Run, *values: float | None) -> Record:
    """A run's record with these values, one for each draw."""
    draws = zip(run.recipe.evaluate.seeds, values, strict=True)
    figures = [figure(value, seed=seed) for seed, value in draws]
    extra = [replace(each, metric="coco", groups={"novel": {"AP": 0.01}}) for each in figures]
    return record(
        *figures, *extra, kind="ablation", command="tenet ablate", config=run.config(),
        model={"name": run.variant},
    )  # fmt: skip


def write_all(folder: Path, name: str, values: dict[tuple[str, int], Any], draws: int = 1) -> None:
    seeds = tuple(dict.fromkeys(seed for _, seed in values))
    for run in plan_runs(name, ground(iterations=30), Budget(seeds=seeds, draws=draws)):
        if (run.variant, run.seed) in values:
            own = values[run.variant, run.seed]
            write_record(run.path(folder), measured(run, *(own if isinstance(own, tuple) else (own,))))


def test_the_table_of_an_ablation_is_exact(tmp_path: Path) -> None:
    values: dict[tuple[str, int], Any] = {
        ("rbf", 0): (0.30, 0.40),
        ("rbf", 1): (0.40, 0.60),
        ("softmax", 0): (0.20, 0.30),
        ("softmax", 1): (0.50, None),
    }
    write_all(tmp_path, "attention_kind", values, draws=2)
    text = table(read_outcome(tmp_path, "attention_kind"))
    assert text.startswith("# attention_kind: RBF against softmax attention\n")
    assert text.splitlines()[-4:] == [
        "| variant | novel, 5 shots | Δ 5 shots | seeds |",
        "| --- | --- | --- | --- |",
        "| **rbf** | 42.5 ± 10.6 |  | 0, 1 |",
        "| softmax | 37.5 ± 17.7 | -3.3 ± 6.7 | 0, 1 |",
    ]
    assert "30 steps of 4 episodes on t.json, base classes of voc1" in text
    assert "40 pictures of val" in text
    assert "2 draws of shots" in text
    assert "Commit cccccccccccc." in text
    assert "```\ntenet ablate\n```" in text


def test_a_part_of_the_runs_makes_a_table(tmp_path: Path) -> None:
    write_all(tmp_path, "table3b_heads", {("Z-shot", 0): 0.1, ("Spatial-HOP", 0): 0.2})
    text = table(read_outcome(tmp_path, "table3b_heads"))
    assert text.splitlines()[-2:] == ["| Z-shot | 10.0 | 0 |", "| Spatial-HOP | 20.0 | 0 |"]
    assert "Δ 5 shots" not in text


def test_rows_come_in_the_order_of_the_table(tmp_path: Path) -> None:
    rows = [run.variant for run in plan_runs("ancestors", ground(), Budget())]
    write_all(tmp_path, "ancestors", {(row, 0): 0.1 for row in rows})
    assert [variant.name for variant in read_outcome(tmp_path, "ancestors").variants] == rows


def test_budgets_are_not_mixed(tmp_path: Path) -> None:
    for iterations, variant in ((30, 0), (40, 1)):
        run = plan_runs("attention_kind", ground(iterations=iterations), Budget())[variant]
        write_record(run.path(tmp_path), measured(run, 0.1))
    with pytest.raises(DataError, match=r"softmax_seed0.*train\.iterations: 30 against 40"):
        read_outcome(tmp_path, "attention_kind")


def lines_of(axes: Any) -> dict[str, list[tuple[float, float]]]:
    """Label → points of each curve."""
    return {
        bars.get_label(): [(float(x), float(y)) for x, y in bars.lines[0].get_xydata()]
        for bars in axes.containers
    }


def test_curves_are_the_records(tmp_path: Path) -> None:
    values = {("eta'=50", 0): 0.1, ("eta'=50", 1): 0.3, ("eta'=200", 0): 0.5, ("eta'=100", 0): 0.4}
    write_all(tmp_path, "supplement_eta_prime", values)
    [axes] = draw(read_outcome(tmp_path, "supplement_eta_prime")).axes
    assert lines_of(axes) == {"5 shots": [(50, 20), (100, 40), (200, 50)]}
    assert axes.get_xlabel() == "eta'"


def test_a_curve_for_each_group_of_orders(tmp_path: Path) -> None:
    values = {(f"r={r} eta={eta}", 0): eta / 10 for r in ("2", "2,3") for eta in (1, 7)}
    write_all(tmp_path, "fig3a_eta", values)
    [axes] = draw(read_outcome(tmp_path, "fig3a_eta")).axes
    assert lines_of(axes) == {name: [(1, 10), (7, 70)] for name in ("r=2", "r=2,3")}


def test_what_is_no_curve_is_bars(tmp_path: Path) -> None:
    write_all(tmp_path, "table3b_heads", {("Z-shot", 0): 0.1, ("both", 0): 0.2})
    [axes] = draw(read_outcome(tmp_path, "table3b_heads")).axes
    assert [round(bar.get_width(), 6) for bar in axes.patches] == [10, 20]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["Z-shot", "both"]
    assert POINT.fullmatch("r=2,3") is None


def test_the_command_makes_all_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_record(tmp_path / "v1" / "meta.json", record(figure(0.1)))
    write_all(tmp_path, "attention_kind", {("rbf", 0): 0.3})
    (tmp_path / "other.json").write_text("[1]")
    assert main(["results", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "### x on val" in text
    assert "# attention_kind" in text
    assert main(["results", str(tmp_path), "--out", str(tmp_path / "all.md")]) == 0
    assert (tmp_path / "all.md").read_text() == text
    assert main(["ablate", "attention_kind", "--report", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "attention_kind" / "table.md").read_text().strip() in text


@pytest.mark.parametrize(
    "words", [["results", "{}"], ["results", "{}/none"], ["ablate", "table3a", "--report", "--out", "{}"]]
)
def test_nothing_to_tell_is_one_line(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word.format(tmp_path) for word in words]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert not list(tmp_path.iterdir())

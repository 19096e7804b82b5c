"""An ablation: a record for each variant and seed, goes on where it stopped, refuses to mix budgets."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from ablation_parts import ground_recipe, write_sets
from tiny_runs import write_recipe

import tenet.ablations.measure as measuring
from tenet.ablations.plan import ALIASES, Budget, plan_runs, slug
from tenet.cli import main
from tenet.engine.locks import claimed
from tenet.presets import ABLATION_TABLES, ablations, preset
from tenet.recipe import Recipe
from tenet.records.record import read_record
from tenet.settings import parse_toml


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sets(tmp_path_factory.mktemp("sets"))


@pytest.fixture
def words(sets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """`tenet ablate` of two variants and two seeds, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipe").mkdir()
    recipe = write_recipe(tmp_path / "recipe", ground_recipe())
    ground = ["--recipe", str(recipe), "--data-root", str(sets)]
    return ["ablate", "attention_kind", *ground, "--seeds", "0,1"]


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def figures(folder: Path) -> dict[str, Any]:
    """What was measured, without times."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        record = read_record(path)
        found[path.name] = (record.figures, record.model, record.config)
    return found


FILES = [f"{kind}_seed{seed}.json" for kind in ("rbf", "softmax") for seed in (0, 1)]


def test_a_record_for_each_variant_and_seed(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    results = Path("results/attention_kind")
    assert sorted(path.name for path in results.iterdir()) == sorted([*FILES, "figure.png", "table.md"])
    assert (results / "figure.png").read_bytes()[:4] == b"\x89PNG"
    record = read_record(results / "softmax_seed1.json")
    assert record.kind == "ablation"
    assert record.command.startswith("tenet ablate attention_kind")
    assert record.config["recipe"]["seed"] == 1
    assert record.config["recipe"]["model"]["head"]["attention"]["kind"] == "softmax"
    assert {(f.metric, f.shots, f.seed) for f in record.figures} == {
        (metric, shots, 1) for metric in ("voc07", "coco") for shots in (1, 2)
    }
    assert all(set(figure.groups) == {"novel"} for figure in record.figures)
    assert all(set(figure.classes) == {"bird", "bus", "cow"} for figure in record.figures)
    assert {"tenet", "python"} <= set(record.made_by)
    assert record.time
    assert not list(Path("runs/ablations").rglob("*.safetensors")), "finished runs leave no checkpoints"
    assert "**rbf**" in capsys.readouterr().out


def test_all_variants_get_the_same_but_for_the_model() -> None:
    runs = plan_runs("ancestors", ground_recipe(), Budget(seeds=(0, 3), shots=(5,), draws=2))
    assert len(runs) == 2 * len(ablations()["ancestors"])
    for seed in (0, 3):
        own = [run.recipe for run in runs if run.seed == seed]
        assert {recipe.seed for recipe in own} == {seed}
        assert len({(r.data, r.episodes, r.train, r.evaluate) for r in own}) == 1
        assert own[0].evaluate.seeds == (2 * seed, 2 * seed + 1)
    assert [run.variant for run in runs if run.reference] == ["tenet", "tenet"]
    assert len({run.key for run in runs}) == len(runs)


def test_the_key_does_not_depend_on_the_spelling() -> None:
    """A recipe made in code and the same through TOML and JSON; but any other setting is another run."""
    made = ground_recipe()
    read = Recipe.from_dict(parse_toml(made.to_toml(), ""))
    stored = Recipe.from_dict(json.loads(json.dumps(made.to_dict())))
    keys = {plan_runs("attention_kind", recipe, Budget())[0].key for recipe in (made, read, stored)}
    assert len(keys) == 1
    for budget in (Budget(iterations=5), Budget(shots=(1,)), Budget(limit=5), Budget(draws=2)):
        assert plan_runs("attention_kind", made, budget)[0].key not in keys


class Killed(BaseException):
    """What no handler catches, as a kill is."""


def test_resumed_is_uninterrupted(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped in the middle of a training, then in the middle of an evaluation."""
    assert main([*words, "--out", "whole"]) == 0
    train, evaluate = measuring.meta_train, measuring.evaluate
    calls = {"train": 0, "evaluate": 0}

    def stop_training(recipe: Any, options: Any, ground: Any) -> Any:
        calls["train"] += 1
        detector = train(recipe, options, ground)
        if calls["train"] == 2:
            for path in (options.out / "checkpoints").glob("step_00000004.*"):
                path.unlink()
            raise Killed
        return detector

    def stop_evaluating(*args: Any, **named: Any) -> Any:
        calls["evaluate"] += 1
        done = evaluate(*args, **named)
        if calls["evaluate"] == 1:
            next(iter((named["out"] / "shards").iterdir())).unlink()
            raise Killed
        return done

    parts = [*words, "--out", "parts", "--work", "work", "--set", "train.save_every=2"]
    with monkeypatch.context() as patch:
        patch.setattr(measuring, "meta_train", stop_training)
        with pytest.raises(Killed):
            main(parts)
    assert [path.name for path in Path("parts/attention_kind").iterdir()] == ["rbf_seed0.json"]
    with monkeypatch.context() as patch:
        patch.setattr(measuring, "evaluate", stop_evaluating)
        with pytest.raises(Killed):
            main(parts)
    assert main(parts) == 0
    whole, resumed = figures(Path("whole/attention_kind")), figures(Path("parts/attention_kind"))
    assert list(whole) == list(resumed) == sorted(FILES)
    for name in whole:
        assert whole[name][:2] == resumed[name][:2], name
        assert whole[name][2]["key"] == resumed[name][2]["key"]


def test_what_is_there_is_not_made_again(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main([*words, "--variants", "rbf"]) == 0
    before = tree(Path("results"))
    made: list[str] = []
    measure = measuring.meta_train

    def counted(recipe: Any, options: Any, ground: Any) -> Any:
        made.append(recipe.name)
        return measure(recipe, options, ground)

    monkeypatch.setattr(measuring, "meta_train", counted)
    assert main(words) == 0
    assert made == ["attention_kind: softmax, seed 0", "attention_kind: softmax, seed 1"]
    assert {name: content for name, content in tree(Path("results")).items() if name in before} | {
        "attention_kind/table.md": b"",
        "attention_kind/figure.png": b"",
    } == before | {"attention_kind/table.md": b"", "attention_kind/figure.png": b""}


def test_the_base_is_trained_once_for_all_tables(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of one table that is one of another too, on the same ground, is the same record there."""
    assert main([*words, "--variants", "rbf"]) == 0

    def refused(*_: Any) -> Any:
        raise AssertionError("trained again")

    monkeypatch.setattr(measuring, "meta_train", refused)
    ancestors = ["ablate", "ancestors", *words[2:], "--variants", "tenet"]
    assert main(ancestors) == 0
    for seed in (0, 1):
        first = read_record(Path(f"results/attention_kind/rbf_seed{seed}.json"))
        again = read_record(Path(f"results/ancestors/tenet_seed{seed}.json"))
        assert (again.figures, again.command, again.time, again.made_by) == (
            first.figures,
            first.command,
            first.time,
            first.made_by,
        )
        assert again.notes["measured_as"] == f"attention_kind/rbf_seed{seed}.json"
        assert (again.config["ablation"], again.model["name"]) == ("ancestors", "tenet")
    heads = ["ablate", "table3b_heads", *words[2:], "--variants", "both"]
    with pytest.raises(AssertionError, match="trained again"):
        main([*heads, "--iterations", "5"])


def test_another_start_is_refused_before_a_step(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The same path with other weights is another start."""
    recipe = words[words.index("--recipe") + 1]
    root = words[words.index("--data-root") + 1]
    start = ["train", recipe, "--data-root", root, "--out", "runs/start", "--set", "train.iterations=1"]
    assert main(start) == 0
    once = [*words, "--set", "train.start=runs/start", "--seeds", "0", "--variants", "rbf"]
    assert main(once) == 0
    assert main(once) == 0
    shutil.rmtree("runs/start")
    assert main([*start, "--set", "train.lr=0.5", "--set", "seed=7"]) == 0
    capsys.readouterr()
    assert main(once) == 1
    told = capsys.readouterr().err
    assert "other weights than then" in told
    assert told.count("\n") == 1


def test_a_record_from_before_a_setting_counts(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting that came later, at what it is by default, changes nothing."""
    once = [*words, "--seeds", "0", "--variants", "rbf"]
    assert main(once) == 0
    path = Path("results/attention_kind/rbf_seed0.json")
    document = json.loads(path.read_text())
    del document["config"]["recipe"]["model"]["head"]["earlier_maps"]
    document["config"]["key"] = "of another time"
    path.write_text(json.dumps(document))
    monkeypatch.setattr(measuring, "meta_train", None)
    assert main(once) == 0


def test_another_budget_is_refused_before_a_step(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--variants", "rbf", "--seeds", "0"]) == 0
    before = tree(Path.cwd())
    capsys.readouterr()
    assert main([*words, "--iterations", "5"]) == 1
    told = capsys.readouterr()
    assert told.err.count("\n") == 1
    assert "train.iterations: 4 against 5" in told.err
    assert tree(Path.cwd()) == before


def test_a_dry_run_touches_nothing(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    before = tree(Path.cwd())
    assert main([*words, "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert tree(Path.cwd()) == before
    assert not Path("results").exists()
    assert not Path("runs").exists()
    assert [line for line in told.splitlines() if line.endswith("to do")] == [
        f"{kind}, seed {seed}: to do" for seed in (0, 1) for kind in ("rbf", "softmax")
    ]
    assert "4 runs, 4 to do" in told
    assert "a step" in told


def test_what_cannot_be_tested_is_refused_before_a_step(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--shots", "500"]) == 1
    assert "expected 500 shots" in capsys.readouterr().err
    assert not Path("results").exists()


def test_an_unknown_name_lists_the_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ablate", "table9"]) == 1
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert all(name in message for name in (*ABLATION_TABLES, *ALIASES, "table9"))


def test_an_unknown_row_lists_the_rows(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--variants", "cosine"]) == 1
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "rbf; softmax" in message


def test_without_a_name_they_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ablate"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in (*ABLATION_TABLES, *ALIASES))


@pytest.mark.parametrize("base", ["paper_voc", "tenet_lite0", "lite0_paper"])
def test_every_table_has_the_base_and_names_for_files(base: str) -> None:
    """And every row of a table differs from the others: a run would be made twice."""
    for table, rows in ablations(preset(base)).items():
        assert preset(base) in rows.values(), table
        assert len({slug(row) for row in rows}) == len(rows), table
        assert len(set(map(repr, rows.values()))) == len(rows), table
        assert all(not set(slug(row)) & set("/\\: '") for row in rows)


def test_a_record_of_another_kind_in_the_way(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    path = Path("results/attention_kind/rbf_seed0.json")
    path.parent.mkdir(parents=True)
    for content in ("{", "[]", json.dumps({"format": "tenet-record-1", "figures": 5})):
        path.write_text(content)
        assert main(words) == 1
        assert str(path) in capsys.readouterr().err
        assert path.read_text() == content


def test_two_processes_share_the_runs(
    words: list[str], sets: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = plan_runs("attention_kind", ground_recipe(), Budget(seeds=(0,)))[0]
    folder = measuring.Places(sets).folder(first)
    once = [*words, "--seeds", "0"]
    with claimed(folder.parent / f"{folder.name}.lock") as mine:
        assert mine
        assert main(once) == 0
        told = capsys.readouterr().out
        assert "rbf, seed 0: another process has it" in told
        assert [path.name for path in Path("results/attention_kind").iterdir()] == ["softmax_seed0.json"]
    assert main(once) == 0
    assert Path("results/attention_kind/rbf_seed0.json").is_file()
    assert Path("results/attention_kind/table.md").is_file()
    assert not list(Path("runs/ablations").rglob("*.lock"))

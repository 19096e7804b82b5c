"""Recipes as files: every one reads; overrides, near misses, wrong types, and the way back to TOML."""

from pathlib import Path

import pytest

from tenet.errors import ConfigError
from tenet.presets import ABLATION_TABLES, ANCESTORS, ablations, preset
from tenet.recipe import Recipe, data_root, load_recipe
from tenet.settings import parse_toml

RECIPES = sorted((Path(__file__).parent.parent / "recipes").glob("*.toml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_survives_the_way_through_toml(path: Path) -> None:
    recipe = load_recipe(path)
    assert recipe.about
    assert recipe.name == path.stem
    assert Recipe.from_dict(parse_toml(recipe.to_toml(), "")) == recipe


def test_the_papers_experiments_are_all_there() -> None:
    names = {path.stem for path in RECIPES}
    assert names >= {f"ablation_{table}" for table in ABLATION_TABLES}
    assert names >= {f"ancestor_{name}" for name in ANCESTORS}
    assert names >= {f"{kind}{n}" for kind in ("voc_split", "track_v") for n in (1, 2, 3)}
    assert names >= {"coco", "fsod", "track_c", "track_d", "track_a"}
    voc = load_recipe(RECIPES[0].parent / "voc_split1.toml")
    assert (voc.train.lr, voc.train.iterations, voc.train.steps) == (0.002, 60_000, (56_000,))
    assert voc.evaluate.shots == (1, 2, 3, 5, 10)


def recipe_file(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text)
    return path


def test_a_preset_and_changes(tmp_path: Path) -> None:
    path = recipe_file(tmp_path, '[model]\npreset = "tenet_lite0"\n[model.head]\nrois = 32\n')
    recipe = load_recipe(path, ["train.lr=1", "episodes.query_sizes=[320, 384]", "name=other"])
    assert recipe.model.head.rois == 32
    assert recipe.model.rpn == preset("tenet_lite0").rpn
    assert recipe.train.lr == 1.0
    assert isinstance(recipe.train.lr, float)
    assert recipe.episodes.query_sizes == (320, 384)
    assert recipe.episodes.support_size == 224, "sizes follow the model"
    assert recipe.name == "other"


def test_a_row_of_a_table(tmp_path: Path) -> None:
    path = recipe_file(tmp_path, '[model]\nablation = "table4a_heads"\n')
    assert load_recipe(path).model == preset("paper_voc")
    assert load_recipe(path, ["model.row=TA=8"]).model == ablations()["table4a_heads"]["TA=8"]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("train.iteratons=5", r"unknown setting train\.iteratons; did you mean train\.iterations\?"),
        ("trian.lr=5", r"did you mean train\?"),
        ("model.head.roi=5", r"did you mean model\.head\.rois\?"),
        ("train.zzz=5", "expected one of iterations"),
        ("train.lr=fast", "train.lr: expected a number, got 'fast'"),
        ("train.batch=1.5", "train.batch: expected a whole number, got 1.5"),
        ("train.cache=1", "train.cache: expected true or false, got 1"),
        ("evaluate.shots=5", r"evaluate.shots: expected a list of whole numbers"),
        ("model.rpn.pre_nms=[1]", "expected a list of 2"),
        ("model.preset=tenet_lite9", "tenet_lite0"),
        ("model.row=x", "set model.ablation too"),
        ("train.optimizer=adam", "'adamw'"),
        ("train.micro_batch=3", "multiple"),
        ("train.cache=true", r"model\.encoder\.frozen = true"),
        ("seed=-1", "at least 0"),
        ("train=5", "expected"),
        ("train", "key=value"),
        ("name.x=5", "expected a table at name"),
        ("episodes.ways=0", "at least 1"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        load_recipe(recipe_file(tmp_path, ""), [override])
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_recipe(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not parse"):
        load_recipe(recipe_file(tmp_path, "a = "))
    with pytest.raises(ConfigError, match="see recipes/"):
        load_recipe(tmp_path / "nothing.toml")


def test_where_paths_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TENET_DATA", raising=False)
    assert data_root() == Path("data")
    monkeypatch.setenv("TENET_DATA", "/elsewhere")
    assert data_root() == Path("/elsewhere")
    assert data_root(Path("here")) == Path("here")

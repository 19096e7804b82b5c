"""A recipe: everything that an experiment is, read from one small TOML file. No torch.

    [model]      a preset, a row of an ablation table or an ancestor of it, and changes to single settings
    [data]       what is trained on, and the split into base and novel classes
    [episodes]   how episodes are drawn (`tenet.data.episodes.EpisodeSettings`)
    [train]      meta-training
    [finetune]   fine-tuning on K shots
    [evaluate]   shots, seeds, metric and test sets

Paths are relative to a data root: `--data-root`, the variable TENET_DATA, or `./data`.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tenet.config import ModelConfig
from tenet.data.episode_settings import EpisodeSettings
from tenet.errors import ConfigError
from tenet.presets import ANCESTORS, ablations, preset
from tenet.settings import Table, changed, override, parse_toml, to_table, unknown_key, write_toml

MODEL_ORIGINS = ("preset", "ablation", "row", "ancestor")
ENCODER_LEARNS = ("keep_maps", "known_classes")
"""Settings of [train] that only an encoder that learns with boxes has."""
DATA_SPLITS = ("", "voc1", "voc2", "voc3", "coco", "fsod")


def _one_of(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise ConfigError(f"{name}: expected one of {', '.join(map(repr, allowed))}; got {value!r}")


def _positive(section: str, settings: object, names: Sequence[str]) -> None:
    for name in names:
        if not getattr(settings, name) > 0:
            raise ConfigError(f"{section}.{name}: expected more than 0, got {getattr(settings, name)!r}")


@dataclass(frozen=True)
class DataConfig:
    """What is trained on."""

    train: tuple[str, ...] = ()
    """JSON files or folders, relative to the data root; several are merged."""
    image_set: str = ""
    """VOC devkits and YOLO folders: the part, such as trainval, of all sets; or name it as FOLDER:PART."""
    split: str = ""
    """voc1, voc2, voc3, coco, fsod, or empty where every class is trained on."""
    leave_out_novel: bool = False
    """With a split: leave out pictures that show novel objects, which would be learned as background."""
    coco_names: bool = False
    """Call VOC's classes as COCO does, and merge sets of different classes: for VOC and COCO together."""

    def __post_init__(self) -> None:
        _one_of("data.split", self.split, DATA_SPLITS)
        if self.leave_out_novel and self.split in ("", "fsod"):
            raise ConfigError(
                "data.leave_out_novel: expected data.split = one of voc1, voc2, voc3, coco, which tell "
                f"the novel classes; got {self.split!r}"
            )


@dataclass(frozen=True)
class OptimConfig:
    """Steps, optimiser and schedule: shared by meta-training and fine-tuning. The paper's values."""

    iterations: int = 60_000
    """Steps of the optimiser."""
    batch: int = 4
    """Episodes in a step, over all processes together."""
    micro_batch: int = 1
    """Episodes that pass the network together. A step is the mean of batch / micro_batch such parts,
    spread over the processes, so their number does not change the result."""
    optimizer: str = "sgd"
    """sgd or adamw."""
    lr: float = 0.002
    """Learning rate after the warm-up."""
    momentum: float = 0.9
    """Of sgd."""
    weight_decay: float = 1e-4
    """Not applied to biases, norms and other vectors."""
    encoder_lr: float = 1.0
    """The backbone's learning rate, as a share of `lr`."""
    schedule: str = "step"
    """step, cosine or constant."""
    steps: tuple[int, ...] = (56_000,)
    """step: iterations at which the rate is multiplied by `gamma`."""
    gamma: float = 0.1
    """step: see `steps`."""
    warmup: int = 1000
    """Iterations of linear warm-up."""
    warmup_start: float = 0.001
    """The first iteration's rate, as a share of `lr`."""
    clip: float = 10.0
    """The gradient's norm is cut to this; 0 leaves it."""
    precision: str = "float32"
    """float32, or bfloat16 autocast (slower on CPUs without AMX)."""

    def __post_init__(self) -> None:
        _one_of("optimizer", self.optimizer, ("sgd", "adamw"))
        _one_of("schedule", self.schedule, ("step", "cosine", "constant"))
        _one_of("precision", self.precision, ("float32", "bfloat16"))
        _positive("train", self, ("iterations", "batch", "micro_batch", "lr"))
        if self.batch % self.micro_batch:
            raise ConfigError(
                f"train.batch: expected a multiple of train.micro_batch ({self.micro_batch}), "
                f"got {self.batch}"
            )


@dataclass(frozen=True)
class TrainConfig(OptimConfig):
    """Meta-training."""

    start: str = ""
    """A shipped model, a run or a checkpoint to start from; parts of the same name and shape are taken."""
    learn: str = "all"
    """all; boxes: only what knows no class, the neck, the RPN's common part and box quality (and the encoder,
    where it is not frozen), from every object of the queries, at a third of a step's cost; or relations:
    only what compares with shots, on the boxes of `start`, which stay as they are and are all that is taken
    from it."""
    keep_maps: float = 0.0
    """With learn = "boxes" and an encoder that learns: how much its last map is held to what it was at the
    start; 0 lets it go."""
    known_classes: float = 0.0
    """With learn = "boxes" and an encoder that learns: how much naming the objects of the classes that are
    trained on counts, by their means at the start; 0 teaches boxes alone."""
    save_every: int = 1000
    """Iterations between checkpoints."""
    keep: int = 3
    """Newest checkpoints that are kept, beside the best."""
    log_every: int = 20
    """Iterations between lines of metrics.jsonl."""
    picture_every: int = 0
    """Iterations between pictures in TensorBoard; 0 draws none."""
    cache: bool = False
    """Read the frozen encoder's maps from the feature cache."""
    cache_queries: bool = True
    """Queries from the cache as well. If not, they are drawn anew for every step, at fresh scales, cut-outs
    and mosaics, and only the shots come from the cache."""
    cache_views: int = 2
    """Views (scale, aspect, flip, cut-out, mosaic) of each query picture in the cache."""
    query_pool: int = 0
    """Queries are drawn from this many pictures of each class, the same for every seed; 0 takes all."""
    shot_views: int = 2
    """Views of each shot in the cache."""
    shot_pool: int = 0
    """Shots are drawn from this many boxes of each class, the same for every seed; 0 takes all. Pools keep
    the cache small."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _one_of("train.learn", self.learn, ("all", "boxes", "relations"))
        if self.learn == "relations" and not self.start:
            raise ConfigError(
                'train.start: expected a model whose boxes are taken with train.learn = "relations", got none'
            )
        for name in ENCODER_LEARNS:
            if getattr(self, name) < 0:
                raise ConfigError(f"train.{name}: expected at least 0, got {getattr(self, name)}")
        _positive("train", self, ("save_every", "keep", "log_every", "cache_views", "shot_views"))


@dataclass(frozen=True)
class FinetuneConfig(OptimConfig):
    """Fine-tuning on K shots of novel (and base) classes; the same loop as meta-training."""

    iterations: int = 300
    lr: float = 0.0005
    schedule: str = "cosine"
    steps: tuple[int, ...] = ()
    warmup: int = 20
    shots: int = 5
    """K, shots of each class."""
    base: bool = True
    """K shots of each base class as well, so that those are not forgotten."""
    per_picture: int = 20
    """At most so many steps for each picture, because few pictures are soon learned by heart; 0: no limit."""
    average: float = 0.75
    """The learned parameters' share in their mean with those before; 1 takes them alone."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.average <= 1:
            raise ConfigError(f"finetune.average: expected above 0 and at most 1, got {self.average}")
        if self.per_picture < 0:
            raise ConfigError(f"finetune.per_picture: expected at least 0, got {self.per_picture}")


@dataclass(frozen=True)
class EvaluateConfig:
    """What is measured."""

    shots: tuple[int, ...] = (1, 2, 3, 5, 10)
    seeds: tuple[int, ...] = (0,)
    metric: str = "voc07"
    """voc07 (11 points), voc12 (every point) or coco."""
    test: tuple[str, ...] = ()
    """Test sets, relative to the data root; several are scored one by one."""
    support: tuple[str, ...] = ()
    """Where the shots come from; empty: each test set itself, whose other pictures are then the test."""
    image_set: str = ""
    """The same for the test sets."""
    shot_list: str = ""
    """A public list of shots (`tenet data shots --list`); empty: drawn by seed."""
    limit: int = 0
    """Only this many test pictures; 0 takes all."""
    min_shot_side: float = 0.0
    """Boxes with a side below this many pixels are no shots."""
    side: str = "novel"
    """novel, base, or all classes."""
    track: str = "strict"
    """strict: the encoder has seen ImageNet alone. paper: whatever the paper's authors used."""

    def __post_init__(self) -> None:
        _one_of("evaluate.metric", self.metric, ("voc07", "voc12", "coco"))
        _one_of("evaluate.side", self.side, ("novel", "base", "all"))
        _one_of("evaluate.track", self.track, ("strict", "paper"))
        if not self.shots or min(self.shots) < 1 or not self.seeds:
            raise ConfigError(
                "evaluate: expected shots of at least 1 and at least one seed, such as shots = [1, 5], "
                f"seeds = [0]; got {list(self.shots)} and {list(self.seeds)}"
            )


@dataclass(frozen=True)
class Recipe:
    """A whole experiment."""

    name: str = "unnamed"
    about: str = ""
    seed: int = 0
    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    episodes: EpisodeSettings = field(default_factory=EpisodeSettings)
    train: TrainConfig = field(default_factory=TrainConfig)
    finetune: FinetuneConfig = field(default_factory=FinetuneConfig)
    evaluate: EvaluateConfig = field(default_factory=EvaluateConfig)

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise ConfigError(f"seed: expected at least 0, got {self.seed}")
        if self.train.cache and not self.model.encoder.frozen:
            raise ConfigError(
                "train.cache holds maps of an encoder that does not learn; set model.encoder.frozen = true "
                "or train.cache = false"
            )
        asked = [name for name in ENCODER_LEARNS if getattr(self.train, name)]
        if asked and (
            self.train.learn != "boxes" or self.model.encoder.frozen or not self.model.head.cosine_prior
        ):
            raise ConfigError(
                f'train.{asked[0]}: expected train.learn = "boxes", an encoder that learns '
                "(model.encoder.frozen = false) and model.head.cosine_prior = true; set them, or "
                f"train.{asked[0]} = 0"
            )

    def to_dict(self) -> Table:
        """Every setting spelled out; `Recipe.from_dict` gives the same recipe."""
        return to_table(self)

    def to_toml(self) -> str:
        return write_toml(self.to_dict())

    @staticmethod
    def from_dict(table: Table) -> "Recipe":
        """A recipe from the tables of a TOML file; what is not said keeps its default."""
        sections = dict(table)
        model = _model(sections.pop("model", {}))
        # Episodes are drawn at the sizes that the detector is made for, unless the recipe says otherwise.
        size, longer = model.query_size
        episodes = EpisodeSettings(query_sizes=(size,), query_longer=longer, support_size=model.support_size)
        start = Recipe(model=model, episodes=episodes)
        known = [item for item in start.__dataclass_fields__ if item != "model"]
        for key in sections:
            if key not in known:
                raise unknown_key(key, ["model", *known], "")
        parts = {key: value for key, value in sections.items() if isinstance(value, dict)}
        plain = {key: value for key, value in sections.items() if key not in parts}
        changes = {key: changed(getattr(start, key), value, key) for key, value in parts.items()}
        return changed(replace(start, **changes), plain, "recipe")


def _model(table: object) -> ModelConfig:
    """[model]: where it starts from, and the changes to single settings."""
    if not isinstance(table, dict):
        raise ConfigError(f"model: expected a table such as [model], got {table!r}")
    origin = {key: table[key] for key in MODEL_ORIGINS if key in table}
    for key, value in origin.items():
        if not isinstance(value, str):
            raise ConfigError(f"model.{key}: expected a text in quotes, got {value!r}")
    config = preset(origin["preset"]) if "preset" in origin else ModelConfig()
    if "ablation" in origin:
        config = _ablation_row(origin["ablation"], origin.get("row"), config)
    elif "row" in origin:
        raise ConfigError("model.row names a row of an ablation table; set model.ablation too")
    if "ancestor" in origin:
        _one_of("model.ancestor", origin["ancestor"], tuple(ANCESTORS))
        config = ANCESTORS[origin["ancestor"]](config)
    return changed(config, {key: value for key, value in table.items() if key not in origin}, "model")


def _ablation_row(table: str, row: str | None, base: ModelConfig) -> ModelConfig:
    """A row as a change to `base`; without a row the base itself, which is the paper's own row."""
    tables = ablations(base)
    _one_of("model.ablation", table, tuple(tables))
    if row is None:
        return base
    _one_of("model.row", row, tuple(tables[table]))
    return tables[table][row]


def load_recipe(path: Path | str, overrides: Sequence[str] = ()) -> Recipe:
    """The recipe of a TOML file, with `a.b=value` overrides; its name is the file's, unless it says one."""
    where = Path(path)
    try:
        text = where.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{where}: expected a recipe (TOML), but it cannot be read ({error}); see recipes/"
        ) from error
    table = {"name": where.stem, **parse_toml(text, str(where))}
    for assignment in overrides:
        table = override(table, assignment)
    try:
        return Recipe.from_dict(table)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error


def data_root(given: Path | None = None) -> Path:
    """Where the paths of recipes start: what was given, TENET_DATA, or ./data."""
    return given if given is not None else Path(os.environ.get("TENET_DATA", "data"))

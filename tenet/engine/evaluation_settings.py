"""What an evaluation measures: classes, shots, seeds, metrics, protocol and track. Loads no torch."""

from dataclasses import asdict, dataclass
from typing import Any

from tenet.errors import ConfigError

PROTOCOLS = ("meta-test", "fine-tuned", "episodes")
TRACKS = ("strict", "paper")
METRICS = ("voc07", "voc12", "coco")


@dataclass(frozen=True)
class EvaluationSettings:
    """One evaluation: every class against every test picture, for each number of shots and each seed."""

    novel: tuple[str, ...] = ()
    """Classes that the detector was not trained on, as the test set spells them."""
    base: tuple[str, ...] = ()
    """Classes that it was trained on. Base and novel classes are looked for together, reported apart."""
    trained_on: tuple[str, ...] = ()
    """Classes that the detector saw in training; none of them may be novel. Empty where it saw none."""
    shots: tuple[int, ...] = (1, 3, 5, 10)
    """Shots of each class, one column of the table each."""
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    """Draws of the shots, over which mean and standard deviation are taken."""
    base_shots: int = 0
    """Least shots of a base class, which training had in plenty: novel classes are few-shot, the base ones
    that compete with them need not be. 0: as many as of a novel one."""
    metrics: tuple[str, ...] = ("voc07", "coco")
    """`voc07`, `voc12` (both at `iou`) and `coco`."""
    iou: float = 0.5
    """Overlap from which a box is right, for VOC's metrics and for the examples of the report."""
    query_size: tuple[int, int] | None = None
    """Shorter side of a test picture and the most of its longer side, in pixels; None: the model's own."""
    support_size: int | None = None
    """Side of a support crop in pixels; None: the model's own."""
    context: float = 16
    """Pixels of surroundings on each side of a shot, before scaling."""
    min_shot_side: float = 0
    """Boxes with a side below this many pixels are not drawn as shots."""
    limit: int = 0
    """Test only this many pictures, drawn by a fixed seed; 0 takes all."""
    threshold: float = 0.001
    """Detections below this score go. Low, because average precision wants the whole curve."""
    objectness: bool = True
    """Fit closed-form objectness from each draw's shots in their own pictures, where the model has it
    (`rpn.closed_form`); False leaves it out, to measure what it does."""
    protocol: str = "meta-test"
    """`meta-test`: the shots are only shown. `fine-tuned`: the detector first learns from each draw.
    `episodes`: they are only shown, and a few classes are looked for in a few pictures at a time."""
    ways: int = 5
    """episodes: classes of an episode."""
    episodes: int = 500
    """episodes: how many for each number of shots."""
    queries: int = 10
    """episodes: test pictures for each class of an episode."""
    adaptation: str = ""
    """How it learns, in a line, for `fine-tuned`: part of what makes two evaluations the same."""
    track: str = "strict"
    """`strict`: encoder weights have not seen the novel classes as boxes (ImageNet). `paper`: as the
    paper's ancestors, whose weights may have."""

    def __post_init__(self) -> None:
        if not self.classes:
            raise ConfigError("classes: expected at least one to look for, got none")
        if len(set(self.classes)) != len(self.classes):
            twice = sorted({name for name in self.classes if self.classes.count(name) > 1})
            raise ConfigError(f"classes: expected each once, base or novel; got {', '.join(twice)} twice")
        for name, values, least in (("shots", self.shots, 1), ("seeds", self.seeds, 0)):
            if not values or min(values) < least or len(set(values)) != len(values):
                raise ConfigError(
                    f"{name}: expected different whole numbers of at least {least}, got {values}"
                )
        if self.base_shots < 0 or (self.base_shots and (not self.base or self.protocol != "meta-test")):
            raise ConfigError(
                "base_shots: expected at least 0, base classes and the protocol meta-test; "
                f"got {self.base_shots}, {len(self.base)} base classes and {self.protocol}"
            )
        unknown = [name for name in self.metrics if name not in METRICS]
        if not self.metrics or unknown:
            raise ConfigError(f"metrics: expected some of {', '.join(METRICS)}; got {self.metrics}")
        for name, value, allowed in (
            ("protocol", self.protocol, PROTOCOLS),
            ("track", self.track, TRACKS),
        ):
            if value not in allowed:
                raise ConfigError(f"{name}: expected one of {', '.join(allowed)}; got {value!r}")
        if self.protocol == "episodes":
            self._check_episodes()
        if self.limit < 0 or not 0 <= self.threshold < 1 or not 0 < self.iou <= 1:
            raise ConfigError(
                "expected limit >= 0, 0 <= threshold < 1 and 0 < iou <= 1, "
                f"got {self.limit}, {self.threshold} and {self.iou}"
            )

    def _check_episodes(self) -> None:
        if self.ways < 1 or self.episodes < 1 or self.queries < 1:
            raise ConfigError(
                "episodes: expected ways, episodes and queries of at least 1, "
                f"got {self.ways}, {self.episodes} and {self.queries}"
            )
        if self.ways > len(self.classes):
            raise ConfigError(
                f"ways: expected at most the {len(self.classes)} classes there are, got {self.ways}; "
                "ask for fewer ways"
            )
        if len(self.seeds) != 1:
            raise ConfigError(
                f"seeds: expected one for all episodes, got {self.seeds}; ask for more episodes instead"
            )

    @property
    def classes(self) -> tuple[str, ...]:
        """All classes that are looked for: base, then novel."""
        return (*self.base, *self.novel)

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """Base and novel classes, whichever there are."""
        return {side: names for side, names in (("base", self.base), ("novel", self.novel)) if names}

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def decisive(self) -> dict[str, Any]:
        """What detections depend on: all but the metrics, which can be computed again from them."""
        return {k: v for k, v in self.to_json().items() if k not in ("metrics", "iou", "track")}

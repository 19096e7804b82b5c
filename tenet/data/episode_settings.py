"""How episodes are drawn: every setting of `[episodes]` in a recipe, with its meaning (spec 9)."""

from dataclasses import dataclass

from tenet.errors import ConfigError

SAMPLING = ("balanced", "frequency")
OTHERS = ("absent", "any")


@dataclass(frozen=True)
class EpisodeSettings:
    """How episodes are drawn. Defaults are the ancestor's (spec 9)."""

    ways: int = 2
    """K, classes in an episode."""
    shots: int = 5
    """Z, shots of each class."""
    min_shots: int = 0
    """With 1 to Z here, each way draws its number of shots from this to Z (uneven shots); 0 takes Z."""
    others: str = "absent"
    """The ways after the first: `absent` from the query (contrastive), or `any` other class."""
    sampling: str = "balanced"
    """`balanced`: each class equally often. `frequency`: as often as pictures show it."""
    query_sizes: tuple[int, ...] = (600,)
    """Shorter side of the query in pixels; of several one is drawn (multi-scale training)."""
    query_longer: int = 1000
    """The most that the query's longer side may have, in pixels."""
    support_size: int = 320
    """S, side of a support crop in pixels."""
    context: float = 16
    """Pixels of surroundings on each side of a shot, before scaling."""
    min_shot_side: float = 16
    """Boxes with a side below this many pixels are not used as shots."""
    flip: float = 0.5
    """How often the query is mirrored, and, on its own, each shot."""
    aspect: tuple[float, float] = (1.0, 1.0)
    """The query's aspect is multiplied by a number drawn between these; (3/4, 4/3) for squashed sets."""
    support_aspect: tuple[float, float] = (1.0, 1.0)
    """The same for each shot."""
    zoom: tuple[float, float] = (1.0, 1.0)
    """The query is a cut-out around one of its objects; its sides are this share of the picture's."""
    mosaic: float = 0.0
    """How often the query is four pictures side by side, each at half the size: for small objects."""
    turn: float = 0.0
    """How often the query is turned by one to three right angles: seen from above, things lie any way."""
    recolour: float = 0.0
    """How often the query's colours are changed: grey, negative, exchanged, pale."""

    def __post_init__(self) -> None:
        if self.ways < 1 or self.shots < 1 or not 0 <= self.min_shots <= self.shots:
            raise ConfigError(
                "episodes: expected ways and shots of at least 1 and min_shots from 0 to shots, "
                f"got {self.ways}, {self.shots} and {self.min_shots}"
            )
        for name, value, allowed in (("others", self.others, OTHERS), ("sampling", self.sampling, SAMPLING)):
            if value not in allowed:
                raise ConfigError(f"episodes.{name}: expected one of {', '.join(allowed)}; got {value!r}")
        if not self.query_sizes or min(self.query_sizes) < 1 or max(self.query_sizes) > self.query_longer:
            raise ConfigError(
                f"episodes.query_sizes: expected sizes from 1 to query_longer ({self.query_longer}), "
                f"got {self.query_sizes}"
            )
        if self.support_size < 8 or self.context < 0 or not 0 <= self.flip <= 1:
            raise ConfigError("episodes: expected support_size >= 8, context >= 0 and 0 <= flip <= 1")
        for name in ("aspect", "support_aspect", "zoom"):
            low, high = getattr(self, name)
            if not 0 < low <= high:
                raise ConfigError(f"episodes.{name}: expected 0 < low <= high, got {(low, high)}")
        if self.zoom[1] > 1:
            raise ConfigError(f"episodes.zoom: expected at most 1, got {self.zoom}")
        for name in ("mosaic", "turn", "recolour"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"episodes.{name}: expected from 0 to 1, got {getattr(self, name)}")

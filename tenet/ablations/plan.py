"""What an ablation consists of: a run for each variant and each seed, on equal ground. Loads no torch.

The ground is a recipe: data, episodes, optimiser, evaluation, and the base that the variants change. A
seed is that of the parameters' start, the episodes and the draws of shots, the same for all variants.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tenet.config import ModelConfig
from tenet.errors import ConfigError, DataError
from tenet.presets import ABLATION_TABLES, ablations
from tenet.recipe import Recipe
from tenet.records.record import Record, read_record
from tenet.settings import Table, differences

ALIASES = {"zshot_spatial": "table3b_heads"}
"""Other names of a table."""
INDIFFERENT = ("name", "about", "finetune")
"""Sections that change no figure, and below the settings of [train]."""
INDIFFERENT_TRAIN = ("save_every", "keep", "log_every", "picture_every")


@dataclass(frozen=True)
class Budget:
    """What every variant gets. 0 and () keep what the recipe says."""

    iterations: int = 0
    """Steps of training."""
    seeds: tuple[int, ...] = (0,)
    """Trainings of each variant."""
    shots: tuple[int, ...] = ()
    """Numbers of shots that are tested."""
    limit: int = 0
    """Test pictures."""
    draws: int = 1
    """Draws of shots that each training is tested with: seed s takes draws s·draws, …, the same for all
    variants."""


@dataclass(frozen=True)
class Run:
    """One variant and one seed; `recipe` has everything that its figures depend on."""

    ablation: str
    variant: str
    place: int
    reference: bool
    seed: int
    recipe: Recipe

    @property
    def name(self) -> str:
        """Of its files."""
        return f"{slug(self.variant)}_seed{self.seed}"

    @property
    def key(self) -> str:
        """The same for two runs that must give the same figures, whatever the commit."""
        text = json.dumps(_as_floats(decisive(self.recipe.to_dict())), sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    def path(self, results: Path) -> Path:
        return results / self.ablation / f"{self.name}.json"

    def config(self) -> dict[str, Any]:
        """What the run's record says of it."""
        return {
            "ablation": self.ablation,
            "variant": self.variant,
            "place": self.place,
            "reference": self.reference,
            "seed": self.seed,
            "key": self.key,
            "recipe": self.recipe.to_dict(),
        }


def ablation_name(name: str) -> str:
    """The table's own name; an unknown one is an error that lists them."""
    known = ALIASES.get(name, name)
    if known not in ABLATION_TABLES:
        raise ConfigError(
            f"ablation: expected one of {', '.join((*ABLATION_TABLES, *ALIASES))}; got {name!r}"
        )
    return known


def plan_runs(name: str, ground: Recipe, budget: Budget, variants: Sequence[str] = ()) -> list[Run]:
    """The runs of an ablation, seed by seed, so that a part of them already compares all variants.

    variants  only these rows; all of them by default
    """
    table = ablation_name(name)
    rows = ablations(ground.model)[table]
    unknown = [row for row in variants if row not in rows]
    if unknown:
        raise ConfigError(f"--variants: expected some of {'; '.join(rows)}; got {unknown[0]!r}")
    if len({slug(row) for row in rows}) != len(rows):
        raise ConfigError(f"{table}: expected rows whose names make different files, got {'; '.join(rows)}")
    if budget.draws < 1 or not budget.seeds or len(set(budget.seeds)) != len(budget.seeds):
        raise ConfigError(f"budget: expected different seeds and at least one draw, got {budget}")
    return [
        Run(table, row, place, model == ground.model, seed, _recipe(ground, table, row, model, seed, budget))
        for seed in budget.seeds
        for place, (row, model) in enumerate(rows.items())
        if not variants or row in variants
    ]


def _recipe(ground: Recipe, table: str, row: str, model: ModelConfig, seed: int, budget: Budget) -> Recipe:
    train, evaluate = ground.train, ground.evaluate
    iterations = budget.iterations or train.iterations
    # A short run must not be all warm-up.
    warmup = min(train.warmup, iterations // 10)
    return replace(
        ground,
        name=f"{table}: {row}, seed {seed}",
        seed=seed,
        model=model,
        train=replace(train, iterations=iterations, warmup=warmup, keep=1),
        evaluate=replace(
            evaluate,
            shots=budget.shots or evaluate.shots,
            seeds=tuple(range(seed * budget.draws, (seed + 1) * budget.draws)),
            limit=budget.limit or evaluate.limit,
        ),
    )


def slug(variant: str) -> str:
    """A variant's name as a file's: `eta'=200` → `eta_prime=200`, `r=2,3,4 5:2:1` → `r=2,3,4_5-2-1`."""
    text = variant.replace("'", "_prime").replace(":", "-")
    return re.sub(r"[^A-Za-z0-9.,=+-]+", "_", text).strip("_.")


def decisive(table: Table) -> Table:
    """A recipe's settings that its figures depend on, as JSON has them."""
    kept = {key: value for key, value in table.items() if key not in INDIFFERENT}
    kept["train"] = {key: value for key, value in table["train"].items() if key not in INDIFFERENT_TRAIN}
    found: Table = json.loads(json.dumps(kept))
    return found


def _as_floats(value: Any) -> Any:
    """16 and 16.0 are one setting, however they were spelled: in code, in TOML or in JSON."""
    if isinstance(value, dict):
        return {key: _as_floats(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_floats(inner) for inner in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def finished(run: Run, results: Path) -> Record | None:
    """The record of a run that was made before. One of other settings is refused, for a table must not
    mix them, and nothing that was measured is written over."""
    path = run.path(results)
    if not path.is_file():
        return None
    record = read_record(path)
    theirs = _recorded(record)
    if record.config.get("key") == run.key or theirs == decisive(run.recipe.to_dict()):
        return record
    found = differences(theirs, decisive(run.recipe.to_dict())) or ["it is no ablation's"]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    raise DataError(
        f"{path}: expected a record of this ablation's settings, but {found[0]}{more}; give another --out, "
        "or the settings of that one"
    )


def _recorded(record: Record) -> Table:
    """A record's settings, with those that came later at what they are by default."""
    try:
        return decisive(Recipe.from_dict(record.config["recipe"]).to_dict())
    except (KeyError, TypeError, ConfigError):
        return decisive(record.config["recipe"]) if "train" in record.config.get("recipe", {}) else {}


def measured_elsewhere(run: Run, results: Path, start: str = "") -> Record | None:
    """The same run in another table of this folder, from the same start, as this table's own: the base is a
    row of every table, and one training of it is enough."""
    for path in sorted(results.glob(f"*/*_seed{run.seed}.json")):
        record = read_record(path)
        same = record.kind == "ablation" and record.config.get("key") == run.key
        if same and record.notes.get("start", start) == start:
            return replace(
                record,
                model={**record.model, "name": run.variant},
                config=run.config(),
                notes={**record.notes, "measured_as": f"{path.parent.name}/{path.name}"},
            )
    return None

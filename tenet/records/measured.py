"""From the JSON of an evaluation or a trial to the figures of a record."""

from collections.abc import Mapping
from typing import Any

from tenet.records.record import Figure, Values


def evaluation_figures(document: Mapping[str, Any]) -> tuple[Figure, ...]:
    """A figure for each metric, number of shots and seed of an evaluation's JSON (`results.json`)."""
    if document["protocol"] == "episodes":
        return tuple(_episodes(document, result) for result in document["results"])
    return tuple(
        Figure(
            document["data"]["test"],
            document["data"]["pictures"],
            document["protocol"],
            result["metric"],
            result["shots"],
            int(seed),
            own["groups"],
            own["classes"],
        )
        for result in document["results"]
        for seed, own in result["seeds"].items()
    )


def _episodes(document: Mapping[str, Any], result: Mapping[str, Any]) -> Figure:
    """Means over the episodes; their confidence intervals are in the evaluation's own JSON."""
    means: Values = {name: result[name]["mean"] for name in ("AP", "AP50", "AP75")}
    return Figure(
        document["data"]["test"],
        document["data"]["pictures"],
        "episodes",
        "coco",
        result["shots"],
        document["settings"]["seeds"][0],
        {"all": means},
        {name: {"AP": own["mean"]} for name, own in result["classes"].items()},
    )


def trial_figures(document: Mapping[str, Any], way: str = "trial") -> tuple[Figure, ...]:
    """A figure for each set, number of shots and seed of a trial's JSON (`trial.json`); `way` is how it was
    tested."""
    return tuple(
        Figure(
            trial["set"],
            trial["pictures"],
            way,
            "voc12",
            trial["shots"],
            trial["seed"],
            {"all": {"AP": trial["AP50"]}},
            {name: {"AP": value} for name, value in trial["classes"].items()},
        )
        for trial in document["trials"]
    )

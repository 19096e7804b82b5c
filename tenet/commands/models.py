"""List the models that come with the package and the configurations, or print one with its size.

examples:
  tenet models                     the names
  tenet models tenet_lite0         settings, parameters and what each part weighs
  tenet models --ablations         the rows of the paper's tables
  tenet models table3a --ablations those of one table
"""

import argparse
from dataclasses import fields, is_dataclass
from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", nargs="?", help="a configuration, or a table with --ablations; without it, all are listed"
    )
    parser.add_argument(
        "--ablations", action="store_true", help="list the rows of the paper's tables instead"
    )


def run(args: argparse.Namespace) -> int:
    from tenet.errors import ConfigError
    from tenet.presets import ABLATION_TABLES, PRESETS, ablations, preset
    from tenet.recipe import Recipe

    if args.ablations:
        tables = ablations()
        if args.name is not None and args.name not in tables:
            raise ConfigError(f"--ablations: expected one of {', '.join(tables)}; got {args.name!r}")
        for title, rows in tables.items() if args.name is None else [(args.name, tables[args.name])]:
            print(f"{title}: {ABLATION_TABLES[title]}")
            print(*(f"  {row}" for row in rows), sep="\n")
        return 0
    shipped = _shipped()
    if args.name is None:
        print("models with weights, for Tenet.load and --model")
        print(*(f"  {name:<14} {_about(name, document)}" for name, document in shipped.items()), sep="\n")
        print("configurations, for recipes")
        print(*(f"  {name}" for name in PRESETS), sep="\n")
        return 0
    for name in shipped.get(args.name, {}).get("members", []):
        print(f"{name}: see `tenet models {name}`")
    if "members" in shipped.get(args.name, {}):
        return 0
    weighed = args.name in shipped and args.name not in PRESETS
    config = Recipe.from_dict(shipped[args.name]["recipe"]).model if weighed else preset(args.name)
    _print_settings(config, 0)
    _print_size(config)
    return 0


def _shipped() -> dict[str, Any]:
    """What the package says of its models, by name; their tensors are not read."""
    from tenet.data.files import read_json
    from tenet.runtime.shipped import SHIPPED, shipped_models

    return {name: read_json(SHIPPED / f"{name}.json") for name in shipped_models()}


def _about(name: str, document: dict[str, Any]) -> str:
    from tenet.runtime.calibration import Calibration
    from tenet.runtime.shipped import DEFAULT

    novel = document.get("split", {}).get("novel")
    told = f"threshold {Calibration.from_json(document.get('calibration')).threshold:.2f}"
    if "members" in document:
        told += f", {' and '.join(document['members'])} together"
    if novel:
        told += f", for research: {', '.join(novel)} are new to it"
    return told + (", the default" if name == DEFAULT else "")


def _print_settings(part: object, depth: int) -> None:
    assert is_dataclass(part)
    for item in fields(part):
        value = getattr(part, item.name)
        if is_dataclass(value):
            print(f"{'  ' * depth}{item.name}")
            _print_settings(value, depth + 1)
        else:
            print(f"{'  ' * depth}{item.name} = {value}")


def _print_size(config: object) -> None:
    from tenet.config import ModelConfig
    from tenet.models.build import build_detector

    assert isinstance(config, ModelConfig)
    detector = build_detector(config)
    print("\nparameters (learning)")
    for name, part in detector.named_children():
        count = sum(p.numel() for p in part.parameters())
        learning = sum(p.numel() for p in part.parameters() if p.requires_grad)
        if count:
            print(f"  {name:<14} {count:>12,} ({learning:,})")
    print(f"  {'all':<14} {sum(p.numel() for p in detector.parameters()):>12,}")

"""List the configurations, or print one with its size.

examples:
  tenet models                     the names
  tenet models tenet_lite0         settings, parameters and what each part weighs
  tenet models --ablations         the rows of the paper's tables
  tenet models table3a --ablations those of one table
"""

import argparse
from dataclasses import fields, is_dataclass


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

    if args.ablations:
        tables = ablations()
        if args.name is not None and args.name not in tables:
            raise ConfigError(f"--ablations: expected one of {', '.join(tables)}; got {args.name!r}")
        for title, rows in tables.items() if args.name is None else [(args.name, tables[args.name])]:
            print(f"{title}: {ABLATION_TABLES[title]}")
            print(*(f"  {row}" for row in rows), sep="\n")
        return 0
    if args.name is None:
        print(*PRESETS, sep="\n")
        return 0
    config = preset(args.name)
    _print_settings(config, 0)
    _print_size(config)
    return 0


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

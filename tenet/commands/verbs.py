"""Commands and their verbs from a table: name → (module, one line of help).

A module has `add_arguments(parser)` and `run(args) -> int`, or in the place of `run` verbs of its own.
"""

import argparse
from collections.abc import Container, Mapping
from importlib import import_module


def add_verbs(
    parser: argparse.ArgumentParser,
    table: Mapping[str, tuple[str, str]],
    dest: str,
    load: Container[str] | None = None,
) -> None:
    """Add every name of the table to the parser, with its arguments; where `load` names some, only their
    modules are imported, and the others are there for help to list."""
    verbs = parser.add_subparsers(dest=dest, metavar=dest.upper(), required=True)
    for name, (module, summary) in table.items():
        if load is not None and name not in load:
            verbs.add_parser(name, help=summary)
            continue
        implementation = import_module(module)
        verb = verbs.add_parser(
            name,
            help=summary,
            description=implementation.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        implementation.add_arguments(verb)
        if hasattr(implementation, "run"):
            verb.set_defaults(run=implementation.run)

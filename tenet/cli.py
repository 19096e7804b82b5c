"""`tenet COMMAND …`: a table from command to the module that carries it out.

A command module has `add_arguments(parser)` and `run(args) -> int`. It is imported only when its
command is called, and imports torch only inside `run`, so `tenet --help` answers at once.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence

from tenet.commands.verbs import add_verbs
from tenet.errors import TenetError
from tenet.version import __version__

# command: (module, one line of help)
COMMANDS: dict[str, tuple[str, str]] = {
    "ablate": ("tenet.commands.ablate", "measure variants of a detector on equal ground"),
    "bench": ("tenet.commands.bench", "measure speed and memory, as ratios within one run"),
    "cache": ("tenet.commands.cache", "compute the frozen encoder's maps once, for training"),
    "classes": ("tenet.commands.classes", "list the classes of a bank; remove, rename, merge, rebuild"),
    "data": ("tenet.commands.data", "check, repair, convert, split and make sets of annotated pictures"),
    "demo": ("tenet.commands.demo", "see the detector at work on a photograph"),
    "descriptors": ("tenet.commands.descriptors", "what descriptors tell apart before anything is trained"),
    "detect": ("tenet.commands.detect", "find the classes of a bank in pictures, folders and videos"),
    "evaluate": ("tenet.commands.evaluate", "measure a detector: shots × seeds, base and novel"),
    "explain": ("tenet.commands.explain", "show why something was found in a picture"),
    "finetune": ("tenet.commands.finetune", "fine-tune a detector on a few shots, of your own set too"),
    "models": ("tenet.commands.models", "list the configurations, or print one with its size"),
    "pack": ("tenet.commands.pack", "make a run's checkpoint into a small model file"),
    "register": ("tenet.commands.register", "show the detector a class, into a bank file"),
    "results": ("tenet.commands.results", "make tables from records of measurements"),
    "score": ("tenet.commands.score", "score detections against ground truth"),
    "serve": ("tenet.commands.serve", "a page to teach and find, and an HTTP service"),
    "trial": ("tenet.commands.trial", "try a model as a user would, on annotated sets; calibrate its scores"),
    "train": ("tenet.commands.train", "meta-train a detector by a recipe"),
}

EXIT_OK, EXIT_ERROR, EXIT_USAGE, EXIT_INTERRUPTED = 0, 1, 2, 130


def build_parser(command: str | None) -> argparse.ArgumentParser:
    """The parser; only `command`'s own module, if any, is imported to add its arguments."""
    parser = argparse.ArgumentParser(
        prog="tenet",
        description="Few-shot object detection: a few pictures of a new thing in, boxes out.",
        epilog="examples:\n  tenet demo\n"
        "  tenet register forest.bank pinecone path.jpg:412,96,60,84 yard.jpg:20,31,118,140\n"
        "  tenet detect forest.bank photos --out found\n"
        "  tenet train recipes/track_v1.toml --dry-run\n\n"
        "`tenet COMMAND --help` explains a command with examples.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tenet {__version__}")
    add_verbs(parser, COMMANDS, "command", load=(command,) if command else ())
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Errors that a user can cause are one line on stderr and exit code 1."""
    argv = list(sys.argv[1:] if argv is None else argv)
    command = next((word for word in argv if not word.startswith("-")), None)
    args = build_parser(command).parse_args(argv)
    args.command_line = shlex.join(["tenet", *argv])  # records say how they were made
    try:
        return int(args.run(args))
    except TenetError as error:
        print(f"tenet {args.command}: {error}", file=sys.stderr)
        return EXIT_ERROR
    except KeyboardInterrupt:
        print(f"tenet {args.command}: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (`tenet … | head`): no more output, and no traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK


if __name__ == "__main__":
    sys.exit(main())

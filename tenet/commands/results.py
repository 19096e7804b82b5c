"""Tables from records: what `--results` of evaluate and trial wrote, the ablations and the descriptors.

For each model, set and metric a table of protocols by numbers of shots, mean ± std over seeds, in Markdown;
then the table of each ablation, and of descriptors without learning. Nothing is in it that has no record.

examples:
  tenet results results
  tenet results results --out docs/tables.md
"""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="where the records are, at any depth")
    parser.add_argument("--out", type=Path, metavar="FILE.md", help="write the tables there")


def run(args: argparse.Namespace) -> int:
    from tenet.ablations.descriptor_report import descriptor_table
    from tenet.ablations.report import read_outcome, table
    from tenet.commands.console import check_out
    from tenet.data.files import write_text
    from tenet.errors import DataError
    from tenet.records.record import find_records
    from tenet.records.tables import tables

    if args.out is not None:
        check_out(args.out, (".md",))
    records = find_records(args.folder)
    if not records:
        raise DataError(f"{args.folder}: expected records of tenet, found none; measure with --results FILE")
    plain = {path: record for path, record in records.items() if record.kind in ("evaluation", "trial")}
    folders = dict.fromkeys(path.parent for path, record in records.items() if record.kind == "ablation")
    parts = [tables(plain)] if plain else []
    parts += [table(read_outcome(folder.parent, folder.name)).strip() for folder in folders]
    parts += [descriptor_table(one).strip() for one in records.values() if one.kind == "descriptors"]
    text = "\n\n".join(parts) + "\n"
    if args.out is not None:
        write_text(args.out, text)
    else:
        print(text, end="")
    return 0

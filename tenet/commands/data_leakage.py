"""Whether a training set holds a picture or a class of a test set. The exit code is 1 where it does.

With --split, the classes that may not be trained on are the split's novel ones; without, all classes of the
test set. --near also finds pictures that look the same in other files, sizes or encodings.

examples:
  tenet data leakage base1/annotations.json voc2012_val.json --split voc1
  tenet data leakage fsod_train.json fsod_test.json
  tenet data leakage voc2007_trainval.json voc2012_val.json --pictures-only --near
"""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("train", type=Path, metavar="TRAIN", help="what is trained on")
    parser.add_argument("test", type=Path, metavar="TEST", help="what is tested on")
    parser.add_argument(
        "--split", choices=("voc1", "voc2", "voc3", "coco"), help="whose novel classes to protect"
    )
    parser.add_argument("--pictures-only", action="store_true", help="classes may be shared, pictures not")
    parser.add_argument("--near", action="store_true", help="decode all pictures and compare what they show")
    parser.add_argument("--limit", type=int, default=20, help="leaks to spell out (default 20)")


def run(args: argparse.Namespace) -> int:
    from tenet.data.formats import read_dataset
    from tenet.data.splits import SPLITS, find_leaks

    train, test = read_dataset(args.train), read_dataset(args.test)
    leaks = find_leaks(train, test, SPLITS.get(args.split or ""), args.near)
    if args.pictures_only:
        leaks = [leak for leak in leaks if leak.startswith("picture ")]
    for leak in leaks[: args.limit]:
        print(leak)
    more = f" ({len(leaks) - args.limit} not shown)" if len(leaks) > args.limit else ""
    count = "1 leak" if len(leaks) == 1 else f"{len(leaks)} leaks"
    print(f"{count}{more}" if leaks else "no leak")
    return 1 if leaks else 0

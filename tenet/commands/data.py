"""Look at, repair, convert, split and make sets of annotated pictures.

Sets are COCO JSON, FSOD JSON, VOC devkits or YOLO folders; the format is detected.

examples:
  tenet data check voc2007_trainval.json
  tenet data convert VOCdevkit/VOC2007 out --to coco --set trainval
  tenet data shots voc2007_trainval.json --shots 5 --seed 0 --min-side 32 --out shots.json
  tenet data synthetic demo --images 200 --classes 20
  tenet data paste coco/train.json things --pictures 2400 --classes 60
"""

import argparse

from tenet.commands.verbs import add_verbs

# sub-verb: (module, one line of help)
VERBS: dict[str, tuple[str, str]] = {
    "check": ("tenet.commands.data_check", "what is in a set, and everything that is wrong with it"),
    "convert": ("tenet.commands.data_convert", "write a set in another format"),
    "shots": ("tenet.commands.data_shots", "draw the shots that teach each class, by seed or from a list"),
    "split": ("tenet.commands.data_split", "write the base or the novel side of a set"),
    "leakage": ("tenet.commands.data_leakage", "whether a training set holds anything of a test set"),
    "paste": ("tenet.commands.data_paste", "make a set of unknown things on the pictures of another"),
    "synthetic": ("tenet.commands.data_synthetic", "make a set of drawn objects with exact boxes"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_verbs(parser, VERBS, "verb")

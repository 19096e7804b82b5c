"""What it means for two sets to be the same."""

import numpy as np

from tenet.data.dataset import Dataset


def same_sets(copy: Dataset, original: Dataset, flags: bool) -> None:
    """Same pictures in the same order, same boxes within a thousandth of a pixel, same class names."""
    assert len(copy) == len(original)
    for one, two in zip(copy.records, original.records, strict=True):
        assert (one.width, one.height) == (two.width, two.height)
        assert one.target.boxes.shape == two.target.boxes.shape
        assert np.abs(one.target.boxes - two.target.boxes).max(initial=0) < 1e-3
        names = [
            [dataset.classes[label] for label in record.target.labels]
            for dataset, record in ((copy, one), (original, two))
        ]
        assert names[0] == names[1]
        if flags:
            assert np.array_equal(one.target.ignore, two.target.ignore)
            assert np.array_equal(one.target.truncated, two.target.truncated)

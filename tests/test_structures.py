"""Results check themselves."""

import numpy as np
import pytest

from tenet.errors import InputError
from tenet.structures import ClassFeatures, Detections


def test_detections_refuse_wrong_shapes() -> None:
    none = np.zeros(0, np.int64)
    with pytest.raises(InputError, match=r"boxes: expected an array of shape \(n, 4\), got \(2, 5\)"):
        Detections(np.zeros((2, 5), np.float32), np.zeros(2, np.float32), none, none)
    with pytest.raises(InputError, match="scores"):
        Detections(np.zeros((2, 4), np.float32), np.zeros(3, np.float32), none, none)


def test_detections_refuse_nan() -> None:
    one = np.zeros(1, np.int64)
    with pytest.raises(InputError, match="finite"):
        Detections(np.full((1, 4), np.nan, np.float32), np.zeros(1, np.float32), one, one)


def test_empty_detections() -> None:
    assert len(Detections.empty()) == 0


def test_class_features_need_a_shot() -> None:
    vectors = np.zeros((0, 8), np.float32)
    with pytest.raises(InputError, match="at least one shot"):
        ClassFeatures(vectors, vectors, np.zeros((0, 16, 7, 7), np.float32), vectors)


def test_class_features_agree_on_the_number_of_shots() -> None:
    with pytest.raises(InputError, match="psi"):
        ClassFeatures(
            np.zeros((2, 8), np.float32),
            np.zeros((3, 8), np.float32),
            np.zeros((2, 16, 7, 7), np.float32),
            np.zeros((2, 0), np.float32),
        )

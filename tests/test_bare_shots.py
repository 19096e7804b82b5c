"""Bare crops: the thing on an even ground, whatever its shape, teaches objectness and nothing else."""

import numpy as np
import pytest
import torch
from test_torch_runtime import make_runtime, make_shots

from tenet.models.objectness import Background
from tenet.runtime.bare_shots import MARGIN, SIDE, on_ground
from tenet.structures import Shot


@pytest.mark.parametrize("box", [(0, 0, 64, 64), (10, 20, 50, 30), (0, 31, 64, 32), (30.2, 5.5, 30.9, 60)])
def test_the_thing_is_whole_and_in_the_middle(box: tuple[float, ...]) -> None:
    crop = np.full((64, 64, 3), 250, np.uint8)
    picture, boxes = on_ground(Shot(crop, np.array(box, np.float32)))
    assert picture.shape == (SIDE, SIDE, 3)
    x1, y1, x2, y2 = boxes[0].astype(int)
    assert 0 <= x1 < x2 <= SIDE
    assert 0 <= y1 < y2 <= SIDE
    assert max(x2 - x1, y2 - y1) <= SIDE - 2 * MARGIN
    assert (picture[y1:y2, x1:x2] == 250).all()
    outside = np.ones((SIDE, SIDE), np.bool_)
    outside[y1:y2, x1:x2] = False
    assert (picture[outside] == picture[0, 0]).all()
    assert abs((x1 + x2) - SIDE) <= 1


def test_bare_crops_teach_objectness_where_there_is_a_background() -> None:
    runtime = make_runtime()
    rpn = runtime.detector.rpn
    assert runtime.encode_shots(make_shots(False)).closed_form is None
    q = rpn.cell_features
    rpn.set_background(Background(torch.full((q,), 0.1), torch.eye(q)))
    bare = runtime.encode_shots(make_shots(False))
    assert bare.closed_form is not None
    assert bare.closed_form.shape == (q + 1,)
    assert np.isfinite(bare.closed_form).all()
    # Beside a class with pictures, in one bank.
    pictured = runtime.encode_shots(make_shots(True))
    image = runtime.encode_images([np.zeros((96, 128, 3), np.uint8)])
    assert runtime.match(image, [bare, pictured])[0].boxes.shape[1] == 4

"""Attention maps as colours: equal steps look equal, and the hottest place is where the map says."""

import numpy as np
import pytest

from tenet.drawing.colours import heat_colours, oklab
from tenet.drawing.heatmaps import enlarged, normalised, overlay
from tenet.errors import InputError

GREY = np.full((90, 120, 3), 128, np.uint8)


def test_equal_steps_look_equal() -> None:
    lightness = oklab(heat_colours())[:, 0]
    assert np.abs(lightness - np.linspace(lightness[0], lightness[-1], 256)).max() < 0.005
    assert (np.diff(lightness) > 0).all()


def test_a_map_is_stretched_to_its_own_range() -> None:
    values = np.random.default_rng(0).normal(size=(7, 7)).astype(np.float32)
    stretched = normalised(values)
    assert stretched.min() == 0
    assert stretched.max() == 1
    assert (overlay(GREY, values) == overlay(GREY, values * 1000 - 3)).mean() > 0.99
    assert (normalised(values) == normalised(values.astype(np.float64))).all()


@pytest.mark.parametrize("value", [0.0, 0.1, -5.0, 1e30])
def test_a_flat_map_is_flat(value: float) -> None:
    flat = np.full((5, 5), value, np.float32)
    assert (normalised(flat) == 0).all()
    assert len(np.unique(overlay(GREY, flat).reshape(-1, 3), axis=0)) == 1


@pytest.mark.parametrize("place", [(0, 0), (2, 4), (6, 6), (3, 3)])
def test_the_hottest_place_is_where_the_map_says(place: tuple[int, int]) -> None:
    values = np.zeros((7, 7), np.float32)
    values[place] = 1
    light = oklab(overlay(GREY, values))[..., 0]
    row, column = np.unravel_index(int(light.argmax()), light.shape)
    assert int(row * 7 / 90) == place[0]
    assert int(column * 7 / 120) == place[1]


def test_enlarging_keeps_to_the_range() -> None:
    values = np.random.default_rng(0).integers(0, 2, (6, 6)).astype(np.float32)
    large = enlarged(values, 100, 80)
    assert large.shape == (80, 100)
    assert large.min() >= 0
    assert large.max() <= 1


def test_the_picture_shows_through_and_stays_as_it_is() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (40, 40, 3), np.uint8)
    before = picture.copy()
    covered = overlay(picture, np.eye(5, dtype=np.float32))
    assert (picture == before).all()
    assert covered.std() > 10
    plain = overlay(picture, np.eye(5, dtype=np.float32), strength=0)
    assert (plain == plain[..., :1]).all()  # in grey, and nothing over it


@pytest.mark.parametrize("size", [(1, 1), (1, 50), (300, 2)])
def test_any_size(size: tuple[int, int]) -> None:
    picture = np.zeros((*size, 3), np.uint8)
    assert overlay(picture, np.ones((1, 1), np.float32)).shape == picture.shape
    assert overlay(picture, np.eye(9, dtype=np.float32)).shape == picture.shape


def test_what_is_no_map_is_refused() -> None:
    for values, says in (
        (np.zeros((2, 2, 2), np.float32), "shape"),
        (np.zeros((0, 3), np.float32), "shape"),
        (np.array([[np.nan]], np.float32), "finite"),
    ):
        with pytest.raises(InputError, match=says):
            overlay(GREY, values)
    with pytest.raises(InputError, match="strength"):
        overlay(GREY, np.eye(3, dtype=np.float32), strength=2)
    with pytest.raises(InputError, match="uint8"):
        overlay(GREY.astype(np.float32), np.eye(3, dtype=np.float32))

"""Boxes and labels that can be read on any picture, and that survive anything a user calls a class."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tenet.drawing.colours import (
    BLACK,
    CLASS_COLOURS,
    SHOT_COLOUR,
    WHITE,
    class_colour,
    contrast,
    linear_light,
    oklab,
    text_colour,
)
from tenet.drawing.lettering import font_of, shortened, width_of, wrapped, writable
from tenet.drawing.marks import Mark, draw_marks, look_for, placed_labels
from tenet.errors import InputError
from tenet.structures import Detections
from tenet.visualize import contact_sheet, draw_detections, draw_shots

# What light becomes for people without one kind of cone (Machado, Oliveira and Fernandes, 2009).
EYES = {
    "all cones": np.eye(3).ravel(),
    "no red cones": [
        *(0.152286, 1.052583, -0.204868),
        *(0.114503, 0.786281, 0.099216),
        *(-0.003882, -0.048116, 1.051998),
    ],
    "no green cones": [
        *(0.367322, 0.860646, -0.227968),
        *(0.280085, 0.672501, 0.047413),
        *(-0.011820, 0.042940, 0.968881),
    ],
    "no blue cones": [
        *(1.255528, -0.076749, -0.178779),
        *(-0.078411, 0.930809, 0.147602),
        *(0.004733, 0.691367, 0.303900),
    ],
}
GROUNDS = {
    "white": np.full((200, 300, 3), 255, np.uint8),
    "black": np.zeros((200, 300, 3), np.uint8),
    "grey": np.full((200, 300, 3), 127, np.uint8),
    **{str(colour): np.full((200, 300, 3), colour, np.uint8) for colour in CLASS_COLOURS},
}
HOSTILE = [
    "",
    " ",
    "x" * 5000,
    "猫",
    "👩‍👩‍👧",
    "\u202eabc",
    "a\nb\tc\x00d",
    "\ud800",
    "<script>",
    "Straße café",
]


def found(boxes: object, scores: object = None, names: tuple[str, ...] = ("thing",)) -> Detections:
    rows = np.array(boxes, np.float32).reshape(-1, 4)
    sure = np.linspace(0.9, 0.1, len(rows)) if scores is None else scores
    labels = np.arange(len(rows)) % len(names)
    return Detections(rows, np.asarray(sure, np.float32), labels, np.zeros(len(rows), np.int64), names)


@pytest.mark.parametrize("colour", [*CLASS_COLOURS, SHOT_COLOUR])
def test_text_on_its_plate_can_be_read(colour: tuple[int, int, int]) -> None:
    assert contrast(text_colour(colour), colour) >= 4.5


@given(st.tuples(*[st.integers(0, 255)] * 3))
def test_black_or_white_can_be_read_on_any_colour(colour: tuple[int, int, int]) -> None:
    assert contrast(text_colour(colour), colour) >= 4.5


def test_contrast_has_its_known_ends() -> None:
    assert contrast(BLACK, WHITE) == pytest.approx(21)
    assert contrast(WHITE, WHITE) == pytest.approx(1)


@pytest.mark.parametrize("eyes", EYES)
def test_colours_stay_apart_for_every_kind_of_eye(eyes: str) -> None:
    light = np.clip(linear_light(CLASS_COLOURS) @ np.reshape(EYES[eyes], (3, 3)).T, 0, 1)
    shown = np.where(light <= 0.0031308, light * 12.92, 1.055 * light ** (1 / 2.4) - 0.055) * 255
    lab = oklab(shown)
    distance = np.linalg.norm(lab[:, None] - lab[None], axis=2) + np.eye(len(lab))
    assert distance.min() > 0.13


def test_a_class_keeps_its_colour() -> None:
    assert class_colour("cat") == (240, 45, 0)
    assert class_colour("\ud800") in CLASS_COLOURS
    assert {class_colour(f"class {number}") for number in range(200)} == set(CLASS_COLOURS)


@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("colour", CLASS_COLOURS)
def test_a_box_is_seen_on_any_ground(ground: str, colour: tuple[int, int, int]) -> None:
    picture = GROUNDS[ground]
    drawn = draw_marks(picture, [Mark((60, 50, 240, 150), colour)])
    ratios = np.array([contrast(shown, picture[0, 0]) for shown in (*CLASS_COLOURS, BLACK, WHITE)])
    palette = np.array([*CLASS_COLOURS, BLACK, WHITE])
    # Across each of the four lines, at each place along it, one pixel at least stands out.
    for line, across in (
        (drawn[70:130, 50:70], 1),
        (drawn[70:130, 230:250], 1),
        (drawn[40:60, 80:220], 0),
        (drawn[140:160, 80:220], 0),
    ):
        known = (line[:, :, None] == palette).all(3)
        assert (np.where(known, ratios, 1).max(2).max(across) >= 4.5).all()


def test_a_box_is_seen_on_noise() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (200, 300, 3), np.uint8)
    drawn = draw_marks(noise, [Mark((60, 50, 240, 150), (255, 150, 0))])
    change = np.abs(drawn[70:130, 50:70].astype(int) - noise[70:130, 50:70]).max((1, 2))
    assert (change >= 100).all()


def test_only_the_surroundings_of_a_box_change() -> None:
    ground = GROUNDS["grey"]
    drawn = draw_detections(ground, found([[20, 40, 80, 90]]))
    changed = np.argwhere((drawn != ground).any(2))
    assert len(changed)
    assert changed.min(0)[0] >= 10
    assert changed.max(0)[0] <= 95
    assert changed.max(0)[1] <= 110
    assert (drawn[55:75, 40:60] == ground[55:75, 40:60]).all()  # the thing itself stays visible


def test_the_surest_is_on_top() -> None:
    first, second = CLASS_COLOURS[:2]
    drawn = draw_marks(GROUNDS["grey"], [Mark((50, 20, 150, 180), first), Mark((20, 60, 280, 140), second)])
    crossing = drawn[55:66, 49:52].reshape(-1, 3).tolist()
    assert list(first) in crossing
    assert list(second) not in drawn[58:62, 50:51].reshape(-1, 3).tolist()


def test_inputs_stay_as_they_are() -> None:
    picture = GROUNDS["grey"].copy()
    picture.setflags(write=False)
    detections = found([[20, 40, 80, 90], [30, 50, 90, 100]])
    before = detections.boxes.copy()
    draw_detections(picture, detections)
    draw_shots(picture, detections.boxes)
    contact_sheet([picture], ["one"])
    assert (picture == GROUNDS["grey"]).all()
    assert (detections.boxes == before).all()


def test_nothing_found_leaves_the_picture() -> None:
    drawn = draw_detections(GROUNDS["white"], Detections.empty(("a",)))
    assert (drawn == GROUNDS["white"]).all()
    assert drawn is not GROUNDS["white"]


def test_the_order_of_detections_does_not_matter() -> None:
    detections = found(_scattered(12))
    shuffled = detections.select(np.random.default_rng(1).permutation(12))
    ground = GROUNDS["grey"]
    assert (draw_detections(ground, detections) == draw_detections(ground, shuffled)).all()


def _scattered(count: int, width: int = 300, height: int = 200) -> NDArray[np.float64]:
    rng = np.random.default_rng(count)
    corner = rng.random((count, 2)) * [width * 0.8, height * 0.8]
    return np.concatenate([corner, corner + 5 + rng.random((count, 2)) * 60], 1)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 80), st.integers(1, 700), st.integers(1, 500), st.integers(0, 30))
def test_labels_stay_inside_and_apart(count: int, width: int, height: int, letters: int) -> None:
    marks = [
        Mark((x1, y1, x2, y2), (0, 0, 255), "n" * letters, "0.50")
        for x1, y1, x2, y2 in _scattered(count, width, height).tolist()
    ]
    labels = placed_labels(marks, width, height, font_of(look_for(width, height).letters))
    covered = np.zeros((height, width), np.int64)
    for (left, top, right, bottom), text, _ in labels:
        assert 0 <= left <= right < width
        assert 0 <= top <= bottom < height
        assert text
        covered[top : bottom + 1, left : right + 1] += 1
    assert covered.max(initial=0) <= 1


def test_the_surest_is_labelled_where_space_is_short() -> None:
    marks = [Mark((0, 0, 60, 30), (0, 0, 255), f"n{number}", "") for number in range(50)]
    labels = placed_labels(marks, 60, 30, font_of(look_for(60, 30).letters))
    assert 1 <= len(labels) < 50
    assert labels[0][1] == "n0"


def test_a_long_name_keeps_its_score() -> None:
    [(_, text, _)] = placed_labels(
        [Mark((50, 50, 90, 90), (0, 0, 255), "x" * 200, "0.87")], 400, 300, font_of(11)
    )
    assert text.startswith("xxx")
    assert text.endswith("… 0.87")


def test_a_crowd_keeps_scores_when_names_do_not_fit() -> None:
    [(_, text, _)] = placed_labels(
        [Mark((0, 0, 40, 30), (0, 0, 255), "rhinoceros", "0.87")], 40, 40, font_of(11)
    )
    assert text.endswith("0.87")


@pytest.mark.parametrize("size", [(1, 1), (1, 400), (400, 1), (3, 3), (16, 9), (20, 6000)])
@pytest.mark.parametrize("name", HOSTILE)
def test_any_name_on_any_size(size: tuple[int, int], name: str) -> None:
    picture = np.full((*size, 3), 128, np.uint8)
    boxes = [[0, 0, 5, 5], [-50, -50, -10, -10], [1e9, 1e9, 2e9, 2e9], [30, 30, 10, 10], [2, 2, 2, 2]]
    drawn = draw_detections(picture, found(boxes, names=(name,)))
    assert drawn.shape == picture.shape
    assert drawn.dtype == np.uint8
    assert draw_shots(picture, boxes, [name] * len(boxes)).shape == picture.shape


def test_thousands_of_boxes() -> None:
    boxes = _scattered(5000)
    drawn = draw_detections(GROUNDS["grey"], found(boxes, np.linspace(1, 0, 5000)))
    assert (drawn != GROUNDS["grey"]).any()


def test_classes_without_names_are_told_by_number() -> None:
    bare = found([[20, 40, 80, 90]]).with_classes(())
    named = draw_detections(GROUNDS["grey"], bare, names=["class 0"])
    assert (draw_detections(GROUNDS["grey"], bare) == named).all()


@pytest.mark.parametrize(
    "picture", [np.zeros((5, 5), np.uint8), np.zeros((5, 5, 3)), np.zeros((0, 5, 3), np.uint8)]
)
def test_what_is_no_picture_is_refused(picture: np.ndarray) -> None:
    with pytest.raises(InputError, match=r"expected \(H, W, 3\) uint8"):
        draw_detections(picture, found([[0, 0, 2, 2]]))


def test_shots_are_checked() -> None:
    with pytest.raises(InputError, match="finite"):
        draw_shots(GROUNDS["grey"], [[0, 0, float("nan"), 5]])
    with pytest.raises(InputError, match="expected 1"):
        draw_shots(GROUNDS["grey"], [[0, 0, 5, 5]], ["a", "b"])
    assert (draw_shots(GROUNDS["grey"], []) == GROUNDS["grey"]).all()


@pytest.mark.parametrize(("count", "columns"), [(0, 4), (1, 4), (3, 2), (9, 4)])
def test_a_sheet_shows_every_picture(count: int, columns: int) -> None:
    pictures = [np.full((20 + 30 * i, 90, 3), (10 * i, 200, 50), np.uint8) for i in range(count)]
    sheet = contact_sheet(pictures, [f"picture {i}" for i in range(count)], columns, 100)
    seen = {tuple(colour) for colour in sheet.reshape(-1, 3).tolist()}
    assert {(10 * i, 200, 50) for i in range(count)} <= seen
    assert sheet.shape[1] <= columns * 105 + 5


def test_a_sheet_that_cannot_be_is_refused() -> None:
    picture = GROUNDS["grey"]
    for captions, columns, cell, says in (
        ([], 4, 320, "expected 1"),
        (["a"], 0, 320, "1 column"),
        (["a"], 4, 20_000, "million pixels"),
    ):
        with pytest.raises(InputError, match=says):
            contact_sheet([picture], captions, columns, cell)


def test_letters_that_the_font_lacks() -> None:
    assert writable("Straße café") == "Strasse cafe"
    assert writable("猫") == ""
    assert writable("猫 cat") == "? cat"
    assert writable("a\n\tb\x00c") == "a b c"
    assert len(writable("x" * 5000)) == 200


def test_a_font_of_the_users_own() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    dejavu = Path(matplotlib.get_data_path()) / "fonts/ttf/DejaVuSans.ttf"
    assert writable("кошка", dejavu) == "кошка"
    assert writable("кошка") == ""
    picture, named = GROUNDS["white"], found([[50, 50, 150, 150]], names=("кошка",))
    assert (draw_detections(picture, named, font=dejavu) != draw_detections(picture, named)).any()
    with pytest.raises(InputError, match="TrueType"):
        draw_detections(picture, named, font=Path("no such font.ttf"))


@given(st.text(max_size=60), st.integers(0, 300))
def test_shortened_text_fits(text: str, most: int) -> None:
    face = font_of(14)
    short = shortened(writable(text), face, most)
    assert not short or width_of(short, face) <= most
    assert all(width_of(line, face) <= most for line in wrapped(writable(text), face, most))

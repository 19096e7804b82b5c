"""RoIAlign against its definition, sample by sample, and against torchvision's where it loads."""

import importlib

import pytest
import torch
from torch import Tensor

from tenet.errors import InputError
from tenet.ops import nms, roi_align, roi_align_levels

try:
    from torchvision.ops import nms as their_nms
    from torchvision.ops import roi_align as their_roi_align

    TORCHVISION = ""
except (ImportError, RuntimeError, OSError, AttributeError) as error:
    TORCHVISION = f"torchvision's operators do not load: {type(error).__name__}"

WAYS = {"dense": 10**9, "bags": 0}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of computing it, forced."""
    module = importlib.import_module("tenet.ops.roi_align")
    monkeypatch.setattr(module, "DENSE_UP_TO", WAYS[request.param])
    return str(request.param)


def by_definition(
    feature: Tensor, box: list[float], size: int, scale: float, ratio: int, aligned: bool
) -> Tensor:
    """One region of one map (C, H, W), one sample at a time."""
    _, height, width = feature.shape
    x1, y1, x2, y2 = (value * scale - (0.5 if aligned else 0.0) for value in box)
    w, h = x2 - x1, y2 - y1
    if not aligned:
        w, h = max(w, 1.0), max(h, 1.0)
    out = torch.zeros(feature.shape[0], size, size, dtype=feature.dtype)
    for i in range(size):
        for j in range(size):
            for a in range(ratio):
                for b in range(ratio):
                    y = y1 + (i + (a + 0.5) / ratio) * h / size
                    x = x1 + (j + (b + 0.5) / ratio) * w / size
                    if y < -1 or y > height or x < -1 or x > width:
                        continue
                    y, x = min(max(y, 0.0), height - 1.0), min(max(x, 0.0), width - 1.0)
                    y0, x0 = int(y), int(x)
                    y3, x3 = min(y0 + 1, height - 1), min(x0 + 1, width - 1)
                    fy, fx = y - y0, x - x0
                    out[:, i, j] += (
                        feature[:, y0, x0] * (1 - fy) * (1 - fx)
                        + feature[:, y0, x3] * (1 - fy) * fx
                        + feature[:, y3, x0] * fy * (1 - fx)
                        + feature[:, y3, x3] * fy * fx
                    ) / ratio**2
    return out


BOXES = {
    "inside": [10.0, 20.0, 60.0, 70.0],
    "thin": [30.2, 10.0, 31.7, 90.0],
    "partly outside": [-20.0, -30.0, 40.0, 50.0],
    "past the border": [90.0, 60.0, 150.0, 120.0],
    "wholly outside": [300.0, 300.0, 400.0, 400.0],
    "the whole": [0.0, 0.0, 128.0, 96.0],
    "empty": [50.0, 50.0, 50.0, 50.0],
    "inverted": [60.0, 60.0, 40.0, 40.0],
}


@pytest.mark.parametrize("name", BOXES)
@pytest.mark.parametrize("aligned", [True, False])
def test_is_its_definition(name: str, aligned: bool, way: str) -> None:
    feature = torch.rand(1, 3, 6, 8, dtype=torch.float64)
    box = torch.tensor([BOXES[name]], dtype=torch.float64)
    ours = roi_align(feature, [box], 4, 1 / 16, 2, aligned)
    expected = by_definition(feature[0], BOXES[name], 4, 1 / 16, 2, aligned)
    assert torch.allclose(ours[0], expected, atol=1e-12)


def test_several_maps_in_any_order(way: str) -> None:
    features = torch.rand(3, 2, 5, 5)
    rows = torch.tensor([[2, 1, 1, 40, 40], [0, 5, 5, 60, 70], [2, 0, 0, 80, 80], [1, 10, 0, 30, 80.0]])
    together = roi_align(features, rows, 3, 1 / 16)
    for i, row in enumerate(rows):
        alone = roi_align(features[int(row[0])][None], [row[None, 1:]], 3, 1 / 16)
        assert torch.allclose(together[i], alone[0], atol=1e-6)


def test_a_list_is_the_same_as_rows(way: str) -> None:
    features = torch.rand(2, 2, 5, 5)
    lists = [torch.tensor([[1.0, 1, 40, 40], [0, 0, 80, 80]]), torch.tensor([[10.0, 0, 30, 80]])]
    rows = torch.cat([torch.cat([torch.full((len(b), 1), float(i)), b], 1) for i, b in enumerate(lists)])
    assert torch.equal(roi_align(features, lists, 7, 1 / 16), roi_align(features, rows, 7, 1 / 16))


def test_gradient(way: str) -> None:
    feature = torch.rand(2, 2, 4, 5, dtype=torch.float64, requires_grad=True)
    boxes = [torch.tensor(list(BOXES.values())[:4], dtype=torch.float64) / 2] * 2
    assert torch.autograd.gradcheck(lambda x: roi_align(x, boxes, 3, 1 / 16), feature)


def test_empty_lists_have_shape_and_gradient(way: str) -> None:
    feature = torch.rand(1, 3, 4, 4, requires_grad=True)
    out = roi_align(feature, [torch.zeros(0, 4)], 7, 1 / 16)
    assert out.shape == (0, 3, 7, 7)
    out.sum().backward()
    assert feature.grad is not None
    assert roi_align(torch.zeros(0, 3, 4, 4), [], (2, 3)).shape == (0, 3, 2, 3)


def test_a_map_of_one_cell(way: str) -> None:
    out = roi_align(torch.full((1, 1, 1, 1), 5.0), [torch.tensor([[0.0, 0, 16, 16]])], 2, 1 / 16)
    assert torch.allclose(out, torch.full((1, 1, 2, 2), 5.0))


@pytest.mark.parametrize(
    ("boxes", "words"),
    [
        (torch.zeros(2, 4), r"\(R, 5\)"),
        ([torch.zeros(2, 4)] * 2, "one for each map"),
        ([torch.zeros(2, 3)], r"\(n, 4\)"),
        (torch.tensor([[1.0, 0, 0, 5, 5]]), "from 0 to 0"),
        ([torch.tensor([[0.0, 0, float("nan"), 5]])], "finite"),
    ],
)
def test_bad_boxes(boxes: Tensor | list[Tensor], words: str) -> None:
    with pytest.raises(InputError, match=words):
        roi_align(torch.rand(1, 2, 4, 4), boxes, 7)


def test_bad_map_and_ratio() -> None:
    with pytest.raises(InputError, match=r"\(B, C, H, W\)"):
        roi_align(torch.rand(2, 4, 4), [torch.zeros(0, 4)], 7)
    with pytest.raises(InputError, match="sampling_ratio"):
        roi_align(torch.rand(1, 2, 4, 4), [torch.zeros(0, 4)], 7, sampling_ratio=0)


@pytest.mark.skipif(bool(TORCHVISION), reason=TORCHVISION)
def test_torchvision_agrees() -> None:
    feature = torch.rand(2, 3, 12, 16)
    corner = torch.rand(40, 2) * 200 - 20
    boxes = torch.cat([torch.randint(0, 2, (40, 1)).float(), corner, corner + torch.rand(40, 2) * 200], 1)
    theirs = their_roi_align(feature, boxes, 7, 1 / 16, 2, True)
    assert torch.allclose(roi_align(feature, boxes, 7, 1 / 16), theirs, atol=1e-5)
    scores = torch.rand(40)
    assert torch.equal(nms(boxes[:, 1:], scores, 0.5), their_nms(boxes[:, 1:], scores, 0.5))


def test_levels_at_once_are_the_levels_one_by_one() -> None:
    torch.manual_seed(0)
    shapes, strides = [(12, 16), (6, 8), (1, 3)], [8, 16, 32]
    maps = [torch.randn(1, 5, *shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    boxes = torch.rand(20, 4, dtype=torch.float64) * 60 - 10
    boxes[:, 2:] += boxes[:, :2].abs() + 5
    level = torch.arange(20) % 3
    table = torch.cat([grid[0].flatten(1) for grid in maps], 1).T
    found = roi_align_levels(table, shapes, [1 / s for s in strides], boxes, level, 4)
    wanted = torch.zeros_like(found)
    for i, grid in enumerate(maps):
        wanted[level == i] = roi_align(grid, [boxes[level == i]], 4, 1 / strides[i])
    assert torch.allclose(found, wanted)
    weight = torch.randn_like(found)
    own = torch.autograd.grad((found * weight).sum(), maps, retain_graph=True)
    other = torch.autograd.grad((wanted * weight).sum(), maps)
    for a, b in zip(own, other, strict=True):
        assert torch.allclose(a, b)


def test_levels_of_nothing_and_of_the_wrong_size() -> None:
    table, shapes, scales = torch.zeros(10, 3, requires_grad=True), [(2, 4), (1, 2)], [0.5, 0.25]
    none = roi_align_levels(table, shapes, scales, torch.zeros(0, 4), torch.zeros(0, dtype=torch.long), 2)
    assert none.shape == (0, 3, 2, 2)
    none.sum().backward()
    with pytest.raises(InputError, match="10 rows"):
        roi_align_levels(torch.zeros(9, 3), shapes, scales, torch.zeros(1, 4), torch.zeros(1).long(), 2)

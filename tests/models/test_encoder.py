"""Maps and region features."""

import pytest
import torch
from skimage import data
from tiny_detector import picture

from tenet.errors import ConfigError, InputError
from tenet.models.backbones import BACKBONES
from tenet.models.encoder import EncodingNetwork


def make(name: str = "tiny", d: int = 0, per_region: bool = False, keep_raw: bool = True) -> EncodingNetwork:
    return EncodingNetwork(BACKBONES[name](), d, per_region, keep_raw).eval()


@pytest.mark.parametrize(("name", "d"), [("tiny", 0), ("tiny", 24), ("lite0", 48)])
@pytest.mark.parametrize("per_region", [True, False])
def test_shapes_and_signs(name: str, d: int, per_region: bool) -> None:
    encoder = make(name, d, per_region)
    [maps] = encoder([picture(70, 100)])
    assert maps.size == (70, 100)
    assert maps.c4.shape == (1, encoder.d, 6, 8)  # padded to 96 x 128
    regions = encoder.regions(maps, torch.tensor([[0.0, 0, 50, 60], [10, 10, 99, 69]]))
    assert regions.phi.shape == (2, 2 * encoder.d, 7, 7)
    assert regions.local.shape == (2, encoder.d, 7, 7)
    assert regions.raw.shape == (2, encoder.backbone.channels[2])
    assert (maps.c4 >= 0).all()
    assert (regions.phi >= 0).all()


def test_mixed_sizes_give_what_single_pictures_give() -> None:
    encoder = make()
    pictures = [picture(64, 96, 1), picture(96, 64, 2), picture(64, 96, 3)]
    for i, maps in enumerate(encoder(pictures)):
        [alone] = encoder([pictures[i]])
        assert torch.allclose(maps.c4, alone.c4, atol=1e-5)
        assert maps.size == alone.size


def test_no_boxes() -> None:
    for per_region in (True, False):
        encoder = make(per_region=per_region)
        [maps] = encoder([picture()])
        assert encoder.regions(maps, torch.zeros(0, 4)).phi.shape == (0, 2 * encoder.d, 7, 7)


def test_a_stage_of_maps_can_be_kept_and_adapted_later() -> None:
    """What a feature cache relies on."""
    encoder, image = make("lite0", 32), picture(64, 64)
    [direct] = encoder([image])
    later = encoder.adapt(encoder.stages(image[None]), (64, 64))
    assert torch.equal(direct.c4, later.c4)


def test_the_region_of_an_object_follows_the_object() -> None:
    """A spot on a photograph is found in the middle of a region that has it in its middle, within 3 px."""
    encoder = make("lite0", 32)
    encoder.backbone.load_imagenet()  # type: ignore[operator]
    photograph = torch.from_numpy(data.chelsea()[:256, 100:356].copy()).permute(2, 0, 1).float()
    off = []
    with torch.no_grad():
        for plain in (photograph, photograph.flip(2), photograph.flip(1), photograph.flip(1).flip(2)):
            spotted = plain.clone()
            spotted[:, 120:136, 120:136] = 255 - spotted[:, 120:136, 120:136]
            box = torch.tensor([[72.0, 72, 184, 184]])
            a, b = (encoder.regions(maps, box) for maps in encoder([plain, spotted]))
            for before, after in ((a.local, b.local), (a.phi, b.phi)):
                change = (after - before).square().sum((0, 1))
                grid = (torch.arange(7) - 3.0) * 16  # a cell of this region is 16 px wide
                off += [float((change.sum(axis) * grid).sum() / change.sum()) for axis in (0, 1)]
    assert abs(sum(off) / len(off)) < 3


@pytest.mark.parametrize(
    "bad", [torch.zeros(96, 128, 3), torch.zeros(1, 3, 64, 64), torch.zeros(3, 0, 5), "a.jpg"]
)
def test_not_a_picture(bad: object) -> None:
    with pytest.raises(InputError, match=r"picture 0: expected an RGB tensor of shape \(3, H, W\)"):
        make()([bad])  # type: ignore[list-item]


def test_lite_needs_a_width() -> None:
    with pytest.raises(ConfigError, match=r"encoder\.channels"):
        make("lite0", 0)

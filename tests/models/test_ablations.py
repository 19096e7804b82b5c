"""Every row of the paper's tables builds and takes a training step; some at full size."""

from dataclasses import replace

import pytest
import torch
from tiny_detector import make_supports, make_target, picture, shrink

from tenet.config import EncoderConfig, ModelConfig
from tenet.models.build import build_detector
from tenet.presets import ABLATION_TABLES, PRESETS, ablations, preset

# Full-size encoders have a test of their own below.
ROWS = [(table, row) for table, rows in ablations().items() for row in rows if table != "supplement_encoder"]


def step(config: ModelConfig, height: int = 64, width: int = 96) -> None:
    torch.manual_seed(0)
    detector = build_detector(config).train()
    target = make_target([[8, 8, 50, 56]], [0])
    _, losses = detector([picture(height, width)], make_supports([[0, 1], [2]]), [target])
    total = torch.stack(list(losses.values())).sum()
    total.backward()
    assert torch.isfinite(total)
    optimizer = torch.optim.SGD([p for p in detector.parameters() if p.requires_grad], lr=0.002)
    optimizer.step()
    detector.eval()
    with torch.no_grad():
        [found], _ = detector([picture(height, width)], make_supports([[0, 1], [2]]))
    assert found.boxes.shape[1] == 4


def test_every_table_is_named() -> None:
    assert set(ablations()) == set(ABLATION_TABLES)


@pytest.mark.parametrize(("table", "row"), ROWS)
def test_row_takes_a_step(table: str, row: str) -> None:
    small = shrink(ablations()[table][row])
    step(replace(small, encoder=replace(small.encoder, channels=64)))  # 64: every number of heads divides it


@pytest.mark.parametrize("name", PRESETS)
def test_preset_takes_a_step(name: str) -> None:
    config = preset(name)
    if config.encoder.name.startswith("lite"):
        step(replace(shrink(config), encoder=config.encoder))
    else:
        step(shrink(config))


@pytest.mark.parametrize("encoder", ["resnet50", "resnet101", "swin_b_7", "swin_b_12"])
def test_full_size_encoder_takes_a_step(encoder: str) -> None:
    """The paper's own widths (d = 1024 or 512), on a small picture with few regions."""
    config = ModelConfig(encoder=EncoderConfig(name=encoder))
    few = replace(config.rpn, pre_nms=(50, 50), post_nms=(4, 4), batch=16)
    step(replace(config, rpn=few, head=replace(config.head, rois=4), score_threshold=0.0))


def test_the_supplements_table_varies_spatial_hop_alone() -> None:
    """Its column says "Z-shot (1,2,3,4)": that head keeps all orders."""
    config = shrink(ablations()["supplement_trh"]["Z-shot, 7x7, r=1"])
    head = build_detector(config).relation_head
    assert head.z_shot.w_p is not None  # type: ignore[union-attr]
    assert head.spatial_hop.w_g is None  # type: ignore[union-attr]


def test_the_prototype_has_the_same_proposals_and_a_frozen_encoder() -> None:
    floor, paper = preset("prototype"), preset("paper_voc")
    assert floor.rpn == paper.rpn
    assert floor.encoder.frozen


def test_the_papers_table_3a_speaks_of_widths() -> None:
    detector = build_detector(replace(ModelConfig(), encoder=EncoderConfig(name="tiny", channels=1024)))
    assert detector.head_hop.widths == (640, 256, 128)

"""Settings that make no sense are refused with the setting's name and what to do."""

from dataclasses import replace

import pytest

from tenet.config import AttentionConfig, EncoderConfig, HeadConfig, HOPConfig, ModelConfig, RPNConfig
from tenet.errors import ConfigError
from tenet.presets import PRESETS, preset


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: HOPConfig(orders=()), "hop.orders"),
        (lambda: HOPConfig(orders=(2, 3)), "hop.split"),
        (lambda: HOPConfig(eta=(7, 7)), "hop.eta"),
        (lambda: HOPConfig(eta=0), "hop.eta"),
        (lambda: HOPConfig(odd_power="cube"), "floor3"),
        (lambda: AttentionConfig(kind="linear"), "rbf"),
        (lambda: AttentionConfig(heads=0), "attention.heads"),
        (lambda: EncoderConfig(name="vgg"), "resnet50"),
        (lambda: EncoderConfig(channels=4), "encoder.channels"),
        (lambda: RPNConfig(iou=(0.7, 0.3)), "rpn.iou"),
        (lambda: RPNConfig(anchor_sizes=()), "anchor_sizes"),
        (lambda: HeadConfig(z_shot=False, spatial_hop=False), "head.kind = none"),
        (lambda: HeadConfig(spatial_orders="none"), "first, high, both"),
        (lambda: HeadConfig(kind="multi_relation", spatial_orders="high"), "first or both"),
        (lambda: HOPConfig(eta=7.5), "eta: expected int"),
        (lambda: HOPConfig(orders=2), "orders: expected tuple"),
        (lambda: HOPConfig(eta=10, odd_power="exact"), "no even power"),
        (lambda: HOPConfig(eta_prime=float("nan")), "eta_prime"),
        (lambda: AttentionConfig(blocks=1.5), "blocks: expected int"),
        (lambda: AttentionConfig(sigma="a"), "sigma: expected float"),
        (lambda: AttentionConfig(dropout=2.0), "attention.dropout"),
        (lambda: EncoderConfig(frozen_stages=-3), "frozen_stages"),
        (lambda: EncoderConfig(frozen="yes"), "frozen: expected bool"),
        (lambda: RPNConfig(anchor_ratios=()), "rpn.anchor_ratios"),
        (lambda: RPNConfig(channels=-1), "rpn.channels"),
        (lambda: RPNConfig(pre_nms=(1, 2, 3)), "pre_nms"),
        (lambda: HeadConfig(rois=0), "head.rois"),
        (lambda: HeadConfig(foreground_share=3.0), "foreground_share"),
        (lambda: ModelConfig(nms=7.0), "nms"),
        (lambda: HeadConfig(kind="none"), "head.cosine_prior"),
        (lambda: HeadConfig(competing=True), "head.regions = union"),
        (lambda: HeadConfig(spatial_size=6), "spatial_size"),
        (lambda: HeadConfig(hop=HOPConfig(orders=(1, 2), split=(1, 1))), "spatial_orders = first"),
        (lambda: ModelConfig(query_size=(8, 8)), "query_size"),
    ],
)
def test_refused(make: object, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make()  # type: ignore[operator]


def test_the_paper_is_the_default() -> None:
    config = ModelConfig()
    assert config == preset("paper_voc")
    assert (config.head.hop.orders, config.head.hop.split, config.head.hop.eta) == ((2, 3, 4), (5, 2, 1), 7)
    assert (config.head.attention.heads, config.head.attention.blocks, config.head.attention.sigma) == (
        4,
        2,
        0.5,
    )
    beyond = (config.neck, config.box_quality.enabled, config.head.cosine_prior, config.head.competing)
    assert not any(beyond)
    assert not config.rpn.closed_form


def test_coco_and_fsod_settings() -> None:
    coco, fsod = preset("paper_coco"), preset("paper_fsod")
    assert (coco.rpn.hop.eta, coco.rpn.hop.eta_prime) == (10, 400.0)
    assert (coco.head.attention.heads, coco.head.attention.blocks) == (8, 3)
    assert (fsod.head.hop.eta_prime, fsod.head.attention.heads, fsod.head.attention.blocks) == (300.0, 2, 2)


def test_unknown_preset_lists_the_known() -> None:
    with pytest.raises(ConfigError, match="tenet_lite0"):
        preset("tenet")


def test_presets_are_values() -> None:
    for name in PRESETS:
        assert preset(name) == preset(name)
    assert replace(preset("tenet_lite0"), neck=False) != preset("tenet_lite0")

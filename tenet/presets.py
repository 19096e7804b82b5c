"""Configurations by name: the paper's, its ablation rows, its ancestors, and those for a CPU.

`PRESETS` are whole detectors. `ablations(base)` are the rows of the paper's tables and the points of its
figures, each a small change to a base, `paper_voc` unless another is given: table → row → configuration.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from tenet.config import (
    AttentionConfig,
    BoxQualityConfig,
    EncoderConfig,
    HeadConfig,
    HOPConfig,
    ModelConfig,
    RPNConfig,
)
from tenet.errors import ConfigError

FIRST_ORDER = HOPConfig(orders=(1,), split=(1,))
SECOND_ORDER = HOPConfig(orders=(2,), split=(1,))


def with_hop(config: ModelConfig, hop: HOPConfig) -> ModelConfig:
    """The same detector with other descriptors in the RPN and in the head."""
    return replace(config, rpn=replace(config.rpn, hop=hop), head=replace(config.head, hop=hop))


def with_attention(config: ModelConfig, attention: AttentionConfig) -> ModelConfig:
    """The same detector with other attention in the RPN and in the head."""
    rpn, head = replace(config.rpn, attention=attention), replace(config.head, attention=attention)
    return replace(config, rpn=rpn, head=head)


def changed_hop(config: ModelConfig, **changes: Any) -> ModelConfig:
    """Single settings of the descriptors changed, in the RPN and in the head; each keeps its others."""
    rpn = replace(config.rpn, hop=replace(config.rpn.hop, **changes))
    return replace(config, rpn=rpn, head=replace(config.head, hop=replace(config.head.hop, **changes)))


def changed_attention(config: ModelConfig, **changes: Any) -> ModelConfig:
    """Single settings of the attention changed, in the RPN and in the head; each keeps its others."""
    rpn = replace(config.rpn, attention=replace(config.rpn.attention, **changes))
    head = replace(config.head, attention=replace(config.head.attention, **changes))
    return replace(config, rpn=rpn, head=head)


# The paper ------------------------------------------------------------------------------------------


def paper_voc() -> ModelConfig:
    """TENET for PASCAL VOC: ResNet-50, r = 2,3,4 at 5:2:1, η = 7, η' = 200, σ = 0.5, TA = 4, TB = 2."""
    return ModelConfig()


def paper_coco() -> ModelConfig:
    """TENET for MS COCO: η = 10, η' = 400, TA = 8, TB = 3."""
    attention = AttentionConfig(heads=8, blocks=3)
    return with_attention(with_hop(ModelConfig(), HOPConfig(eta=10, eta_prime=400.0)), attention)


def paper_fsod() -> ModelConfig:
    """TENET for FSOD: η' = 300, TA = 2, TB = 2."""
    return with_attention(with_hop(ModelConfig(), HOPConfig(eta_prime=300.0)), AttentionConfig(heads=2))


# The ancestors, on equal ground ---------------------------------------------------------------------


def first_order(base: ModelConfig) -> ModelConfig:
    """Average-pooled descriptors everywhere (table 3b, row a)."""
    return replace(
        base,
        rpn=replace(base.rpn, hop=FIRST_ORDER),
        head=replace(base.head, z_shot_orders="first", spatial_orders="first"),
    )


def so_hot(base: ModelConfig) -> ModelConfig:
    """High-order descriptors without TSO (η = 1)."""
    return with_hop(base, replace(base.head.hop, eta=1))


def fsod_arpn(base: ModelConfig) -> ModelConfig:
    """FSOD: one mean prototype, depth-wise correlation in the RPN, multi-relation head."""
    return replace(
        base,
        rpn=replace(base.rpn, conditioning="depthwise", hop=FIRST_ORDER),
        head=replace(base.head, kind="multi_relation", spatial_orders="first"),
    )


def pnsd(base: ModelConfig) -> ModelConfig:
    """PNSD: FSOD with second-order descriptors in the RPN and in the head."""
    return replace(
        base,
        rpn=replace(base.rpn, conditioning="depthwise", hop=SECOND_ORDER),
        head=replace(base.head, kind="multi_relation", spatial_orders="both", hop=SECOND_ORDER),
    )


def qsam(base: ModelConfig) -> ModelConfig:
    """QSAM: every sample is attended to by itself, first order, softmax attention."""
    attention = replace(base.rpn.attention, kind="softmax")
    return replace(
        base,
        rpn=replace(base.rpn, hop=FIRST_ORDER, attention=attention),
        head=replace(base.head, spatial_hop=False, z_shot_orders="first", attention=attention),
    )


def prototype(base: ModelConfig) -> ModelConfig:
    """The floor: the same proposals, cosine to class means of frozen features, no relation head."""
    return replace(
        base,
        encoder=replace(base.encoder, frozen=True),
        head=replace(base.head, kind="none", cosine_prior=True, objectness_power=0.5),
    )


ANCESTORS: dict[str, Callable[[ModelConfig], ModelConfig]] = {
    "first_order": first_order,
    "so_hot": so_hot,
    "fsod_arpn": fsod_arpn,
    "pnsd": pnsd,
    "qsam": qsam,
    "prototype": prototype,
}


# For a CPU ------------------------------------------------------------------------------------------


def lite_paper(encoder: str) -> ModelConfig:
    """The paper's detector at a CPU's size: EfficientNet-Lite, frozen, shared regions, one map."""
    return ModelConfig(
        encoder=EncoderConfig(name=encoder, weights="imagenet", channels=160, regions="shared", frozen=True),
        rpn=RPNConfig(anchor_sizes=(16, 32, 64, 128, 256), pre_nms=(2000, 1000), post_nms=(300, 100)),
        head=HeadConfig(rois=64),
        query_size=(320, 480),
        support_size=224,
    )


def tenet_lite(encoder: str) -> ModelConfig:
    """The configuration that ships: the paper's parts and the ones that the prototypes showed to matter."""
    base = lite_paper(encoder)
    return replace(
        base,
        encoder=replace(base.encoder, region_size=5),
        neck=True,
        rpn=replace(
            base.rpn,
            conv="before",
            separable=True,
            anchor_sizes=(4.0,),
            anchor_ratios=(1.0,),
            iou=(0.3, 0.5),  # one square anchor for each cell: few overlap an object by more
            attention=AttentionConfig(blocks=1, mlp_ratio=0.5, dropout=0.0),
            negative_branch=True,
            loss="focal",
            closed_form=True,
            common=True,
            judged=1000,
            pre_nms=(1000, 1000),
            post_nms=(200, 100),
            crowd=400,
        ),
        box_quality=BoxQualityConfig(enabled=True, fitted=True),
        head=replace(
            base.head,
            attention=AttentionConfig(blocks=1, dropout=0.0),
            attention_score=True,
            cosine_prior=True,
            competing=True,
            in_place=0.7,
            earlier_maps=True,
            regions="union",
            spatial_size=5,
            described=64,
            relation_weight=0.5,
            objectness_power=0.25,
            quality_power=2.0,
        ),
        query_size=(480, 480),
        score_threshold=0.001,
        max_detections=300,
    )


def tenet_resnet50() -> ModelConfig:
    """The same on the paper's encoder, for its pictures: C4 and C5 narrowed to 256 and 512 channels, so that
    what follows the encoder costs little beside it. It wants weights: `encoder.weights`."""
    base = tenet_lite("resnet50")
    return replace(
        base,
        encoder=replace(base.encoder, weights="none", channels=256, frozen=False),
        query_size=(600, 1000),
        support_size=320,
    )


def _on_paper(change: Callable[[ModelConfig], ModelConfig]) -> ModelConfig:
    return change(paper_voc())


PRESETS: dict[str, Callable[[], ModelConfig]] = {
    "paper_voc": paper_voc,
    "paper_coco": paper_coco,
    "paper_fsod": paper_fsod,
    **{name: partial(_on_paper, change) for name, change in ANCESTORS.items()},
    "lite0_paper": lambda: lite_paper("lite0"),
    "lite2_paper": lambda: lite_paper("lite2"),
    "tenet_lite0": lambda: tenet_lite("lite0"),
    "tenet_lite2": lambda: tenet_lite("lite2"),
    "tenet_resnet50": tenet_resnet50,
}


def preset(name: str) -> ModelConfig:
    """A configuration by name; a wrong name says which there are."""
    if name not in PRESETS:
        raise ConfigError(f"preset: expected one of {', '.join(PRESETS)}; got {name!r}")
    return PRESETS[name]()


# The paper's tables and figures, row by row ---------------------------------------------------------

Rows = dict[str, ModelConfig]
ABLATION_TABLES = {
    "table3a": "orders r and splits of the channels",
    "table3b_orders": "orders in the RPN and in the TRH",
    "table3b_heads": "Z-shot and Spatial-HOP",
    "fig3a_eta": "η of TSO",
    "fig3b_sigma": "σ of the RBF kernel",
    "table4a_heads": "TA, heads of attention",
    "table4b_blocks": "TB, transformer blocks",
    "supplement_trh": "Z-shot, spatial size and orders of the TRH",
    "supplement_encoder": "encoding network",
    "supplement_eta_prime": "η' of SigmE",
    "attention_kind": "RBF against softmax attention",
    "ancestors": "TENET and its ancestors on equal ground",
}
SPLITS = ((6, 1, 1), (5, 2, 1), (5, 1, 2), (4, 2, 2), (4, 3, 1), (4, 1, 3))
ETA_GROUPS = {
    "2": ((2,), (1,)),
    "3": ((3,), (1,)),
    "4": ((4,), (1,)),
    "2,3": ((2, 3), (3, 1)),
    "2,4": ((2, 4), (3, 1)),
    "3,4": ((3, 4), (2, 2)),
    "2,3,4": ((2, 3, 4), (5, 2, 1)),
}
ETAS = (1, 3, 5, 7, 9, 10)
ORDERS_USED = {"1": "first", "2,3,4": "high", "1,2,3,4": "both"}
PAPER_ENCODERS = {
    "ResNet-50": "resnet50",
    "ResNet-101": "resnet101",
    "Swin-B 7": "swin_b_7",
    "Swin-B 12": "swin_b_12",
}
LITE_ENCODERS = {"Lite0": "lite0", "Lite1": "lite1", "Lite2": "lite2"}


def _head(base: ModelConfig, **changes: Any) -> ModelConfig:
    return replace(base, head=replace(base.head, **changes))


def _orders_rows(base: ModelConfig) -> Rows:
    groups = {f"r={orders}": group for orders, group in ETA_GROUPS.items() if orders != "2,3,4"}
    groups |= {f"r=2,3,4 {':'.join(map(str, split))}": ((2, 3, 4), split) for split in SPLITS}
    return {row: changed_hop(base, orders=orders, split=split) for row, (orders, split) in groups.items()}


def _places_rows(base: ModelConfig) -> Rows:
    """Which orders the RPN and the relation head have."""
    all_orders = replace(base.rpn.hop, orders=(1, 2, 3, 4), split=(4, 2, 1, 1))
    rows = {
        "a: RPN 1, TRH 1": (FIRST_ORDER, "first"),
        "b: RPN 2,3,4, TRH 1": (base.rpn.hop, "first"),
        "c: RPN 2,3,4, TRH 2,3,4": (base.rpn.hop, "high"),
        "d: RPN 2,3,4, TRH 1,2,3,4": (base.rpn.hop, "both"),
        "supplement: RPN 1, TRH 2,3,4": (FIRST_ORDER, "high"),
        "RPN 1,2,3,4, TRH 1,2,3,4": (all_orders, "both"),
    }
    return {
        row: replace(_head(base, z_shot_orders=orders, spatial_orders=orders), rpn=replace(base.rpn, hop=hop))
        for row, (hop, orders) in rows.items()
    }


def _trh_rows(base: ModelConfig) -> Rows:
    """A map cannot be larger than a region's own."""
    sizes = [size for size in (7, 5, 3, 1) if size <= base.encoder.region_size]
    return {
        f"{'Z-shot, ' if z_shot else ''}{size}x{size}, r={orders}": _head(
            base, z_shot=z_shot, spatial_size=size, spatial_orders=used
        )
        for z_shot in (True, False)
        for size in sizes
        for orders, used in ORDERS_USED.items()
    }


def _encoder_rows(base: ModelConfig) -> Rows:
    """The paper's encoders; of a base with EfficientNet-Lite that family, whose weights are packages."""
    family = LITE_ENCODERS if base.encoder.name in LITE_ENCODERS.values() else PAPER_ENCODERS
    return {
        row: replace(base, encoder=replace(base.encoder, name=encoder)) for row, encoder in family.items()
    }


def ablations(base: ModelConfig | None = None) -> dict[str, Rows]:
    """Every row of every ablation table, and every point of every curve, as a change to `base`, the paper's
    detector by default: table → row → configuration. Rows that the base's sizes do not allow are left out."""
    base = paper_voc() if base is None else base
    width = base.encoder.channels
    heads = [count for count in (1, 2, 4, 8, 16, 32, 64) if width % count == 0]
    return {
        "table3a": _orders_rows(base),
        "table3b_orders": _places_rows(base),
        "table3b_heads": {
            "Z-shot": _head(base, spatial_hop=False),
            "Spatial-HOP": _head(base, z_shot=False),
            "both": base,
        },
        "fig3a_eta": {
            f"r={orders} eta={eta}": changed_hop(base, orders=group[0], split=group[1], eta=eta)
            for orders, group in ETA_GROUPS.items()
            for eta in ETAS
        },
        "fig3b_sigma": {
            f"sigma={sigma}": changed_attention(base, sigma=sigma) for sigma in (0.3, 0.5, 0.7, 1.0, 2.0, 3.0)
        },
        "table4a_heads": {f"TA={count}": changed_attention(base, heads=count) for count in heads},
        "table4b_blocks": {
            f"TB={blocks}": changed_attention(base, blocks=blocks) for blocks in (1, 2, 3, 4, 5)
        },
        "supplement_trh": _trh_rows(base),
        "supplement_encoder": _encoder_rows(base),
        "supplement_eta_prime": {
            f"eta'={value}": changed_hop(base, eta_prime=float(value))
            for value in (50, 100, 200, 300, 400, 500)
        },
        "attention_kind": {kind: changed_attention(base, kind=kind) for kind in ("rbf", "softmax")},
        "ancestors": {"tenet": base, **{name: change(base) for name, change in ANCESTORS.items()}},
    }

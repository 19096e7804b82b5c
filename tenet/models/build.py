"""From a configuration to a detector: the only place where the two meet."""

from torch import nn

from tenet.config import HOPConfig, ModelConfig
from tenet.errors import ConfigError, WeightsError
from tenet.models.backbones import BACKBONES, Backbone
from tenet.models.backbones.efficientnet_lite import EfficientNetLite
from tenet.models.box_quality import BoxQualityHead
from tenet.models.cosine_prior import CosinePrior
from tenet.models.detector import TENET, Parts
from tenet.models.encoder import EncodingNetwork
from tenet.models.hop import HOP
from tenet.models.multi_relation import MultiRelationHead
from tenet.models.neck import PyramidNeck, SingleLevel
from tenet.models.relation_head import TransformerRelationHead
from tenet.models.rpn import TenetRPN


def build_detector(config: ModelConfig) -> TENET:
    """The detector that `config` describes, with its encoder's weights loaded."""
    if not isinstance(config, ModelConfig):
        raise ConfigError(
            f"expected a ModelConfig, got {config!r}; take one by name with tenet.presets.preset(name)"
        )
    encoder = _encoder(config)
    d, backbone = encoder.d, encoder.backbone
    neck: SingleLevel | PyramidNeck = SingleLevel(backbone.shifts)
    if config.neck:
        neck = PyramidNeck(backbone.channels[0], d, backbone.shifts)
    parts = Parts(
        encoder=encoder,
        neck=neck,
        rpn_hop=build_hop(d, config.rpn.hop),
        head_hop=build_hop(d, config.head.hop),
        rpn=_rpn(config, d, neck),
        box_quality=_box_quality(config, d, neck),
        relation_head=_relation_head(config, d),
        cosine_prior=CosinePrior(encoder.raw_channels) if config.head.cosine_prior else None,
    )
    # `train` also puts frozen normalisation to rest, which a new module is not.
    return TENET(parts, config).train()


def _encoder(config: ModelConfig) -> EncodingNetwork:
    settings = config.encoder
    backbone = BACKBONES[settings.name]()
    _load_weights(backbone, settings.weights)
    backbone.drop_classifier()
    backbone.freeze(None if settings.frozen else settings.frozen_stages)
    per_region = settings.regions == "per_region"
    return EncodingNetwork(
        backbone, settings.channels, per_region, config.head.cosine_prior, settings.region_size
    )


def _load_weights(backbone: Backbone, weights: str) -> None:
    if weights == "none":
        return
    if weights == "imagenet":
        if not isinstance(backbone, EfficientNetLite):
            raise WeightsError(
                "encoder.weights = imagenet comes with lite0, lite1 and lite2; give another encoder a file"
            )
        backbone.load_imagenet()
        return
    backbone.load(weights)


def build_hop(d: int, config: HOPConfig) -> HOP:
    """HOP of d channels."""
    return HOP(
        d,
        config.orders,
        config.split,
        config.per_order("eta"),
        config.per_order("eta_prime"),
        config.odd_power,
    )


def _rpn(config: ModelConfig, d: int, neck: SingleLevel | PyramidNeck) -> TenetRPN:
    rpn = config.rpn
    if rpn.conv == "before" and rpn.channels not in (0, d):
        raise ConfigError(f"rpn.channels: with rpn.conv = before expected 0 or d = {d}, got {rpn.channels}")
    return TenetRPN(
        d,
        neck.levels,
        conditioning=rpn.conditioning,
        attention=rpn.attention,
        conv=rpn.conv,
        separable=rpn.separable,
        channels=rpn.channels,
        anchor_sizes=rpn.anchor_sizes,
        anchor_ratios=rpn.anchor_ratios,
        closed_form=rpn.closed_form,
        common=rpn.common,
        judged=rpn.judged,
        rare=rpn.loss == "focal",
    )


def _box_quality(config: ModelConfig, d: int, neck: SingleLevel | PyramidNeck) -> BoxQualityHead | None:
    settings = config.box_quality
    if not settings.enabled:
        return None
    return BoxQualityHead(
        d,
        neck.levels,
        passes=settings.passes,
        context=settings.context,
        channels=settings.channels,
        hidden=settings.hidden,
    )


def _relation_head(config: ModelConfig, d: int) -> TransformerRelationHead | MultiRelationHead | None:
    head = config.head
    if head.kind == "none":
        return None
    built: TransformerRelationHead | MultiRelationHead
    if head.kind == "multi_relation":
        built = MultiRelationHead(d, high_order=head.spatial_orders == "both")
    else:
        built = TransformerRelationHead(
            d,
            z_shot=head.z_shot,
            spatial_hop=head.spatial_hop,
            z_shot_orders=head.z_shot_orders,
            spatial_orders=head.spatial_orders,
            attention=head.attention,
            spatial_size=head.spatial_size,
            attention_score=head.attention_score,
        )
    for layer in built.outputs():
        nn.init.normal_(layer.weight, std=0.0 if head.cosine_prior else 0.01)
        nn.init.zeros_(layer.bias)
    return built

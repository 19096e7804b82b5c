"""The detector's settings: typed, checked, each field with its meaning in the string under it.

Defaults are the paper's own configuration for PASCAL VOC. `tenet.presets` names the others: the
paper's ablation rows, the ancestors, and the configurations for a CPU.
"""

from dataclasses import dataclass, field

from tenet.config_checks import at_least, between, check_types, one_of
from tenet.errors import ConfigError

ENCODERS = ("resnet50", "resnet101", "swin_b_7", "swin_b_12", "lite0", "lite1", "lite2", "tiny")
ORDERS = ("first", "high", "both")
"""Which descriptors a head compares: FO ("r = 1"), HO ("r = 2,3,4"), or both."""


@dataclass(frozen=True)
class HOPConfig:
    """The HOP unit (Sec. 4.3): channel groups, one tensor order each, shrunk and power-normalised."""

    orders: tuple[int, ...] = (2, 3, 4)
    """Tensor orders, one channel group each. Order 1 is the average-pooled feature."""
    split: tuple[int, ...] = (5, 2, 1)
    """Ratio of the groups' widths; parts that do not divide d are rounded so that they sum to d."""
    eta: int | tuple[int, ...] = 7
    """TSO's η, for all orders or one each. 1 switches TSO off (So-HoT)."""
    eta_prime: float | tuple[float, ...] = 200.0
    """SigmE's η' at d = 1024, for all orders or one each; scaled by d/1024, because the entries of a
    trace-normalised descriptor shrink as 1/d."""
    odd_power: str = "floor3"
    """How odd orders read η: `floor3` is Algorithm 1 (7 acts as 3), `exact` takes any odd η."""

    def __post_init__(self) -> None:
        check_types(self)
        if not self.orders or min(self.orders) < 1:
            raise ConfigError(
                f"hop.orders: expected orders of at least 1, such as (2, 3, 4); got {self.orders}"
            )
        if len(self.split) != len(self.orders) or min(self.split) <= 0:
            raise ConfigError(
                f"hop.split: expected one positive part for each order of {self.orders}, got {self.split}"
            )
        one_of("hop.odd_power", self.odd_power, ("floor3", "exact"))
        for name in ("eta", "eta_prime"):
            if len(self.per_order(name)) != len(self.orders):
                raise ConfigError(
                    f"hop.{name}: expected one number or one for each of the orders {self.orders}, "
                    f"got {getattr(self, name)}"
                )
        for order, eta in zip(self.orders, self.per_order("eta"), strict=True):
            at_least("hop.eta", eta, 1)
            if self.odd_power == "exact" and order % 2 and order > 1 and eta % 2 == 0:
                raise ConfigError(
                    f"hop.eta: order {order} has no even power with odd_power = exact, got {eta}"
                )
        for value in self.per_order("eta_prime"):
            at_least("hop.eta_prime", value, 1e-6)

    def per_order(self, name: str) -> tuple:
        """`eta` or `eta_prime` spelled out, one for each order."""
        value = getattr(self, name)
        return tuple(value) if isinstance(value, (tuple, list)) else (value,) * len(self.orders)


@dataclass(frozen=True)
class AttentionConfig:
    """Attention and transformer block (Sec. 3, Eq. 6–9)."""

    kind: str = "rbf"
    """`rbf`: SoftMax-free, Eq. 8. `softmax`: scaled dot product, Eq. 7."""
    sigma: float = 0.5
    """σ of the RBF kernel."""
    heads: int = 4
    """TA, heads that split the channels."""
    blocks: int = 2
    """TB, transformer blocks in a row."""
    mlp_ratio: float = 1.0
    """Hidden width of a block's MLP, as a multiple of its channels."""
    dropout: float = 0.1
    """Dropout in a block's MLP."""

    def __post_init__(self) -> None:
        check_types(self)
        one_of("attention.kind", self.kind, ("rbf", "softmax"))
        at_least("attention.sigma", self.sigma, 1e-3)
        at_least("attention.heads", self.heads, 1)
        at_least("attention.blocks", self.blocks, 1)
        at_least("attention.mlp_ratio", self.mlp_ratio, 0)
        between("attention.dropout", self.dropout, 0, 0.99)


@dataclass(frozen=True)
class EncoderConfig:
    """The Encoding Network (EN)."""

    name: str = "resnet50"
    """Backbone; see `tenet.models.backbones.BACKBONES`."""
    weights: str = "none"
    """`imagenet` (lite0, lite1 and lite2: from their packages), a .safetensors or .pth file with the
    model's usual names, or `none`: random at first, or, in a packed model whose encoder learned,
    with the model's own tensors."""
    channels: int = 0
    """d, channels of the C4 map, by a 1×1 adapter; 0 keeps the backbone's own."""
    regions: str = "per_region"
    """`per_region`: RoIAlign on C4, then the C5 stage for each region (the paper's ancestor).
    `shared`: the C5 stage once over the picture, RoIAlign from it; far cheaper."""
    region_size: int = 7
    """Side S of a region's map: N = S² positions for the tensors and the relation head."""
    frozen: bool = False
    """Keep the whole backbone as it is; adapters and heads still learn."""
    frozen_stages: int = 2
    """Without `frozen`: the stem and this many stages stay as they are. BatchNorm always does."""

    def __post_init__(self) -> None:
        check_types(self)
        one_of("encoder.name", self.name, ENCODERS)
        one_of("encoder.regions", self.regions, ("per_region", "shared"))
        if self.channels and self.channels < 8:
            raise ConfigError(f"encoder.channels: expected 0 or at least 8, got {self.channels}")
        at_least("encoder.frozen_stages", self.frozen_stages, 0)
        between("encoder.region_size", self.region_size, 2, 14)


@dataclass(frozen=True)
class RPNConfig:
    """The TENET-RPN (Sec. 4.1)."""

    conditioning: str = "attention"
    """How the supports steer the query's map. `attention`: cross-attention to {ψ_z} (the paper).
    `depthwise`: channel-wise product with the mean ψ (FSOD's A-RPN). `none`: an ordinary RPN."""
    hop: HOPConfig = field(default_factory=HOPConfig)
    """The descriptors ψ_z that steer the RPN."""
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    """Cross-attention blocks of `conditioning = attention`."""
    conv: str = "after"
    """`after`: the 3×3 convolution sees the conditioned map, once for each class (the paper).
    `before`: it runs once for each picture, and only what follows is repeated for each class."""
    separable: bool = False
    """Make the 3×3 convolution separable: a ninth of the cost, for a CPU."""
    channels: int = 0
    """Channels of the 3×3 convolution; 0 takes d."""
    common: bool = False
    """Read the boxes, and the part of objectness that all classes have in common, from the cells before they
    meet a class, and learn both from every object of a picture (`tenet.models.common_objectness`)."""
    judged: int = 0
    """With `common`: how many cells of a picture, the best without the classes, meet them; 0 lets all."""
    anchor_sizes: tuple[float, ...] = (32, 64, 128, 256, 512)
    """Sides of square anchors in pixels: all of them on the one map, or with the neck on every level,
    as multiples of its stride."""
    anchor_ratios: tuple[float, ...] = (0.5, 1.0, 2.0)
    """Height over width of the anchors."""
    pre_nms: tuple[int, int] = (12000, 6000)
    """Boxes kept before NMS, in training and in test."""
    post_nms: tuple[int, int] = (2000, 300)
    """Boxes kept after NMS, in training and in test, for each class; with head.regions = union for one
    class, and twice as many for all classes together."""
    crowd: int = 0
    """At test time up to this many boxes stay where those beyond `post_nms`, and beyond `head.described`, are
    still good (`tenet.models.proposals`): a crowd. 0: never."""
    nms: float = 0.7
    """IoU above which the weaker of two proposals goes."""
    min_size: float = 1.0
    """Proposals with a side below this many pixels go."""
    batch: int = 256
    """Anchors sampled for the loss, for each picture and class."""
    positive_share: float = 0.5
    """Most of them that may be positive."""
    iou: tuple[float, float] = (0.3, 0.7)
    """An anchor is negative below the first and positive from the second."""
    negative_branch: bool = False
    """Train the RPN to stay silent for classes that are absent from the picture as well."""
    loss: str = "sampled"
    """`sampled`: cross-entropy on `batch` anchors drawn at random (the ancestor). `focal`: beyond the paper,
    half of them are the hardest negatives, easy ones count little, and the sum is divided by the
    positives: with one anchor on a cell positives are rare, and a mean would only learn how rare."""
    closed_form: bool = False
    """Add the closed-form objectness of the shots to the logit (`tenet.models.objectness`)."""

    def __post_init__(self) -> None:
        check_types(self)
        one_of("rpn.conditioning", self.conditioning, ("attention", "depthwise", "none"))
        one_of("rpn.conv", self.conv, ("after", "before"))
        one_of("rpn.loss", self.loss, ("sampled", "focal"))
        for name in ("anchor_sizes", "anchor_ratios"):
            if not getattr(self, name) or min(getattr(self, name)) <= 0:
                raise ConfigError(
                    f"rpn.{name}: expected one or more positive numbers, got {getattr(self, name)}"
                )
        if not 0 <= self.iou[0] <= self.iou[1] <= 1:
            raise ConfigError(f"rpn.iou: expected 0 <= negative <= positive <= 1, got {self.iou}")
        for name in ("pre_nms", "post_nms"):
            at_least(f"rpn.{name}", min(getattr(self, name)), 1)
        for name, least in (("channels", 0), ("judged", 0), ("batch", 1), ("min_size", 0), ("crowd", 0)):
            at_least(f"rpn.{name}", getattr(self, name), least)
        if self.common and (
            self.conv != "before" or self.anchor_ratios != (1.0,) or len(self.anchor_sizes) != 1
        ):
            raise ConfigError(
                "rpn.common reads one box on a cell before its classes: expected conv = before, one anchor "
                f"size and the ratio 1, got {self.conv}, {self.anchor_sizes} and {self.anchor_ratios}"
            )
        between("rpn.nms", self.nms, 0, 1)
        between("rpn.positive_share", self.positive_share, 0, 1)


@dataclass(frozen=True)
class BoxQualityConfig:
    """Beyond the paper: how well a box fits its object, whatever the object is."""

    enabled: bool = False
    """Refine each proposal and predict its IoU before the relation head."""
    passes: int = 2
    """How many times the box is refined and pooled again."""
    fitted: bool = False
    """One pass more, which each class corrects as its shots taught it, in closed form
    (`tenet.models.box_fit`); its boxes take the place of the relation head's."""
    context: float = 1.5
    """The box is enlarged by this factor before pooling, to see its surroundings."""
    jittered: int = 64
    """In training, boxes of a picture that are its objects', moved and scaled at random: proposals near an
    object are rare at first, and these teach from the first step what a wrong extent is."""
    channels: int = 64
    """Channels after the first 1×1 convolution."""
    hidden: int = 256
    """Width of the two fully connected layers."""

    def __post_init__(self) -> None:
        check_types(self)
        at_least("box_quality.passes", self.passes, 1)
        at_least("box_quality.jittered", self.jittered, 0)
        at_least("box_quality.context", self.context, 1.0)


@dataclass(frozen=True)
class HeadConfig:
    """The Transformer Relation Head (Sec. 4.2 and supplement B), and what stands in its place."""

    kind: str = "transformer"
    """`transformer`: the paper. `multi_relation`: FSOD's global, local and patch relations.
    `none`: no learned relation; needs `cosine_prior`."""
    z_shot: bool = True
    """The Z-shot head."""
    spatial_hop: bool = True
    """The Spatial-HOP head."""
    z_shot_orders: str = "both"
    """What the Z-shot head compares: `first` (φ̄), `high` (ψ) or `both`."""
    spatial_orders: str = "both"
    """What joins the positions in the Spatial-HOP head: `first` (FO), `high` (HO) or `both`. For
    `multi_relation`: `first`, or `both` with the second-order score."""
    hop: HOPConfig = field(default_factory=HOPConfig)
    """The descriptors ψ that the head compares."""
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    """Attention of both heads."""
    spatial_size: int = 7
    """Side of the spatial map in the Spatial-HOP head; below 7 it is resampled bilinearly."""
    attention_score: bool = False
    """Beyond the paper: the Z-shot head's mean attention is a term of the score, so that its own
    magnitude reaches it."""
    cosine_prior: bool = False
    """Beyond the paper: the cosine of the frozen encoder's means is a term of the logit, and the
    learned part starts at zero beside it."""
    competing: bool = False
    """Beyond the paper: a softmax over the classes and a background, instead of one score each."""
    in_place: float = 0.0
    """Beyond the paper: between competing classes the cosine of shots in their own pictures counts this much,
    that of the cut-out shots the rest (`tenet.models.rivals`)."""
    earlier_maps: bool = False
    """With `in_place`: the encoder's earlier maps tell classes apart too, where the shots show that they
    can."""
    regions: str = "per_class"
    """`per_class`: each class is compared with its own proposals. `union`: with all of them, which
    are then encoded once."""
    relation_weight: float = 1.0
    """What the relation head's log-odds count beside the cosine prior when pictures are looked at; training
    takes them whole."""
    objectness_power: float = 0.0
    """The RPN's probability to this power multiplies the score."""
    described: int = 0
    """At test time at most this many regions of a picture, of several classes twice as many, are compared
    with the classes (in a crowd more, see `rpn.crowd`): the best by objectness and box quality, after NMS at
    `rpn.nms` on the refined boxes. 0 compares all."""
    quality_power: float = 1.0
    """The box-quality head's value to this power multiplies the score."""
    rois: int = 128
    """Regions sampled for the loss, for each picture and class."""
    foreground_share: float = 0.5
    """Most of them that may be foreground."""
    foreground_iou: float = 0.5
    """A region is foreground from this IoU."""
    hard_ratio: tuple[int, int, int] = (1, 2, 1)
    """Foreground of the right class : background of the right class : anything of a wrong class; the
    hardest are taken."""

    def __post_init__(self) -> None:
        check_types(self)
        one_of("head.kind", self.kind, ("transformer", "multi_relation", "none"))
        one_of("head.regions", self.regions, ("per_class", "union"))
        one_of("head.spatial_size", self.spatial_size, (7, 5, 3, 1))
        if self.kind == "transformer" and not (self.z_shot or self.spatial_hop):
            raise ConfigError(
                "head: expected z_shot, spatial_hop or both; to do without, set head.kind = none"
            )
        one_of("head.z_shot_orders", self.z_shot_orders, ORDERS)
        one_of("head.spatial_orders", self.spatial_orders, ORDERS)
        if self.kind == "multi_relation" and self.spatial_orders == "high":
            raise ConfigError(
                "head.spatial_orders: multi_relation always has the first order; set first or both"
            )
        if self.kind == "none" and not self.cosine_prior:
            raise ConfigError("head.kind = none leaves nothing to score with; set head.cosine_prior = true")
        between("head.relation_weight", self.relation_weight, 0, 1)
        between("head.in_place", self.in_place, 0, 1)
        if self.earlier_maps and not self.in_place:
            raise ConfigError("head.earlier_maps is a part of the comparison in place; set head.in_place too")
        if self.competing and self.regions != "union":
            raise ConfigError(
                "head.competing compares every region with every class; set head.regions = union"
            )
        if 1 in self.hop.orders:
            raise ConfigError(
                "head.hop.orders starts at 2; order 1 of the head is head.spatial_orders = first"
            )
        at_least("head.rois", self.rois, 1)
        at_least("head.described", self.described, 0)
        between("head.foreground_share", self.foreground_share, 0, 1)
        between("head.foreground_iou", self.foreground_iou, 0, 1)
        at_least("head.hard_ratio", min(self.hard_ratio), 0)
        for name in ("objectness_power", "quality_power"):
            at_least(f"head.{name}", getattr(self, name), 0)


@dataclass(frozen=True)
class ModelConfig:
    """A whole detector."""

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    neck: bool = False
    """Beyond the paper: a feature pyramid of strides 8 to 64 between encoder and RPN."""
    rpn: RPNConfig = field(default_factory=RPNConfig)
    box_quality: BoxQualityConfig = field(default_factory=BoxQualityConfig)
    head: HeadConfig = field(default_factory=HeadConfig)
    query_size: tuple[int, int] = (600, 1000)
    """Shorter side of a query picture, and the most that its longer side may have, in pixels."""
    support_size: int = 320
    """Side of the square to which a support crop is scaled and padded, in pixels."""
    score_threshold: float = 0.05
    """Detections below this score go."""
    nms: float = 0.5
    """IoU above which the weaker of two detections of one class goes."""
    max_detections: int = 100
    """Detections kept in a picture."""

    def __post_init__(self) -> None:
        check_types(self)
        at_least("query_size", min(self.query_size), 32)
        at_least("support_size", self.support_size, 32)
        at_least("max_detections", self.max_detections, 1)
        between("nms", self.nms, 0, 1)
        between("score_threshold", self.score_threshold, 0, 1)

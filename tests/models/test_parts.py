"""Box quality, cosine prior, relation heads: each by itself."""

import pytest
import torch
from tiny_detector import make_target

from tenet.config import AttentionConfig
from tenet.models.box_quality import BoxQualityHead, quality
from tenet.models.cosine_prior import CosinePrior
from tenet.models.losses import quality_loss
from tenet.models.multi_relation import MultiRelationHead
from tenet.models.neck import Level
from tenet.models.relation_head import (
    Described,
    SpatialHOPHead,
    TransformerRelationHead,
    ZShotHead,
    average_shots,
)
from tenet.models.supports import masked_mean

D = 16
ATTENTION = AttentionConfig(heads=2, blocks=2, dropout=0.0)
LEVELS = (Level(8, 0.0), Level(16, 0.0), Level(32, 0.0), Level(64, 0.0))


def described(*lead: int) -> Described:
    return Described(torch.rand(*lead, 2 * D, 7, 7), torch.rand(*lead, D))


def pyramid() -> list[torch.Tensor]:
    return [torch.rand(1, D, 128 // level.stride, 128 // level.stride) for level in LEVELS]


def quality_head(passes: int = 2) -> BoxQualityHead:
    return BoxQualityHead(D, LEVELS, passes=passes, context=1.5, channels=8, hidden=32)


def test_box_quality_moves_and_judges_every_box() -> None:
    boxes = torch.tensor([[4.0, 4, 12, 12], [10, 20, 90, 110], [0, 0, 128, 128]])
    passes = quality_head()(pyramid(), boxes, (128, 128))
    assert len(passes) == 2
    assert torch.equal(passes[1].given, passes[0].boxes)
    value = quality(passes[-1])
    assert value.shape == (3,)
    assert ((value >= 0) & (value <= 1)).all()


def test_box_quality_of_no_boxes() -> None:
    assert quality(quality_head()(pyramid(), torch.zeros(0, 4), (128, 128))[-1]).shape == (0,)


def test_box_quality_batch_is_single() -> None:
    head, maps = quality_head(), pyramid()
    boxes = torch.tensor([[4.0, 4, 12, 12], [10, 20, 90, 110], [30, 30, 60, 64]])
    together = head(maps, boxes, (128, 128))[-1].iou_logits
    for i in range(3):
        assert torch.allclose(
            together[i], head(maps, boxes[i : i + 1], (128, 128))[-1].iou_logits[0], atol=1e-5
        )


def test_box_quality_learns_to_move() -> None:
    head, maps = quality_head(1), pyramid()
    target = make_target([[20, 20, 80, 80]], [0])
    boxes = torch.tensor([[26.0, 14, 90, 74], [12, 26, 70, 88], [22, 24, 76, 84], [90, 90, 120, 120]])
    optimizer = torch.optim.Adam(head.parameters(), 3e-3)
    for _ in range(60):
        passes = head(maps, boxes, (128, 128))
        loss = sum(quality_loss(passes, target).values())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[union-attr]
        optimizer.step()
    moved = head(maps, boxes, (128, 128))[-1]
    assert (moved.boxes[:3] - target.boxes).abs().max() < 6
    value = quality(moved)
    assert value[:3].min() > value[3]


def test_masked_mean_ignores_padding() -> None:
    x, mask = torch.rand(2, 3, 4), torch.tensor([[True, True, False], [True, False, False]])
    assert torch.allclose(masked_mean(x, mask)[0], x[0, :2].mean(0))
    assert torch.allclose(masked_mean(x, mask)[1], x[1, 0])


def test_cosine_prior_is_the_cosine_to_the_class_mean() -> None:
    prior = CosinePrior(5)
    regions, shots = torch.randn(1, 1, 4, 5), torch.randn(1, 2, 3, 5)
    mask = torch.tensor([[[True, True, True], [True, False, False]]])
    logits = prior(regions, shots, mask)
    assert logits.shape == (1, 2, 4)
    mean = shots[0, 0].mean(0)
    cosine = torch.nn.functional.cosine_similarity(regions[0, 0], mean.expand(4, 5))
    assert torch.allclose(logits[0, 0], (cosine - 0.2) * 10, atol=1e-4)
    assert torch.allclose(prior(regions, shots * 7, mask), logits, atol=1e-4)


@pytest.mark.parametrize("kind", ["both", "z_shot", "spatial_hop", "multi"])
@pytest.mark.parametrize("orders", ["first", "high", "both"])
def test_shapes_of_every_head(kind: str, orders: str) -> None:
    head = make_head(kind, orders)
    regions, shots = described(2, 1, 5), described(1, 3, 4)
    relation = head(regions, shots, torch.ones(1, 3, 4, dtype=torch.bool))
    assert relation.logits.shape == (2, 3, 5)
    assert relation.deltas.shape == (2, 3, 5, 4)


def make_head(kind: str, orders: str = "both", size: int = 7) -> torch.nn.Module:
    if kind == "multi":
        return MultiRelationHead(D, high_order=orders != "first").eval()
    return TransformerRelationHead(
        D,
        z_shot=kind != "spatial_hop",
        spatial_hop=kind != "z_shot",
        z_shot_orders=orders,
        spatial_orders=orders,
        attention=ATTENTION,
        spatial_size=size,
        attention_score=True,
    ).eval()


@pytest.mark.parametrize("kind", ["both", "z_shot", "spatial_hop", "multi"])
def test_regions_shared_by_classes_are_the_same_as_regions_of_each(kind: str) -> None:
    head = make_head(kind)
    regions, shots, mask = described(1, 1, 5), described(1, 3, 4), torch.rand(1, 3, 4) > 0.3
    mask[..., 0] = True
    shared = head(regions, shots, mask)
    repeated = head(Described(*(x.expand(1, 3, *x.shape[2:]) for x in regions)), shots, mask)
    assert torch.allclose(shared.logits, repeated.logits, atol=1e-5)
    assert torch.allclose(shared.deltas, repeated.deltas, atol=1e-5)


@pytest.mark.parametrize("size", [7, 5, 3, 1])
def test_spatial_sizes(size: int) -> None:
    head = make_head("spatial_hop", size=size)
    tokens = head.spatial_hop.tokens(described(2, 3))
    assert tokens.shape == (2, 3, size**2 + 2, D)


def test_tokens_are_equation_15() -> None:
    head = SpatialHOPHead(D, size=7, orders="both", attention=ATTENTION)
    x = described(2)
    tokens = head.tokens(x)
    assert torch.equal(tokens[1, :49].T, x.phi[1, :D].flatten(1))
    assert torch.allclose(tokens[1, 49], x.phi[1, D:].mean((-1, -2)), atol=1e-6)
    assert torch.allclose(tokens[1, 50], head.w_g(x.psi[1]), atol=1e-6)


def test_relation_is_the_supplements() -> None:
    """The folded layers give what the literal [support − region; Repeat(W FO·HO)] through one layer gives."""
    head = SpatialHOPHead(D, size=7, orders="both", attention=ATTENTION).eval()
    region, support = described(1, 1, 2), described(1, 1, 1)
    a, b = head.blocks(head.tokens(region)), head.blocks(head.tokens(support))
    spatial = b[..., :49, :] - a[..., :49, :]
    orderless = head.w_u(torch.cat([a[..., 49, :] * b[..., 49, :], a[..., 50, :] * b[..., 50, :]], -1))
    relation = torch.cat([spatial, orderless.unsqueeze(-2).expand_as(spatial)], -1)  # (…, N, 2d)
    weight = torch.cat([head.reduce_spatial.weight, head.reduce_orderless.weight], 1)
    hidden = torch.relu(relation @ weight.T + head.reduce_orderless.bias).flatten(-2)
    expected = head.classify(head.body(hidden)).squeeze(-1)
    assert torch.allclose(head(head.embed(region), head.embed(support)).logits, expected, atol=1e-5)


def test_z_shot_queries_are_equation_14() -> None:
    head = ZShotHead(D, orders="both", attention=ATTENTION, attention_score=False, regress=True)
    x = described(3)
    expected = head.fc(x.phi.mean((-1, -2)) + x.psi @ head.w_p.weight.T)
    assert torch.allclose(head.embed(x), expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["both", "z_shot", "spatial_hop", "multi"])
def test_order_of_shots_does_not_matter(kind: str) -> None:
    head = make_head(kind)
    regions, shots = described(1, 1, 5), described(1, 2, 4)
    mask = torch.tensor([[[True, True, True, False], [True, True, False, False]]])
    turn = torch.tensor([2, 0, 3, 1])
    turned = Described(shots.phi[:, :, turn], shots.psi[:, :, turn])
    same = head(regions, turned, mask[..., turn])
    assert torch.allclose(same.logits, head(regions, shots, mask).logits, atol=1e-5)


@pytest.mark.parametrize("kind", ["both", "z_shot", "spatial_hop", "multi"])
def test_one_shot_still_discriminates(kind: str) -> None:
    head = make_head(kind)
    regions, mask = described(1, 1, 5), torch.ones(1, 2, 1, dtype=torch.bool)
    relation = head(regions, described(1, 2, 1), mask)
    assert (relation.logits[0, 0] - relation.logits[0, 1]).abs().max() > 1e-5
    assert relation.logits[0, 0].std() > 1e-5


def test_average_of_shots() -> None:
    shots, mask = described(1, 1, 3), torch.tensor([[[True, False, True]]])
    average = average_shots(shots, mask)
    assert torch.allclose(average.phi[0, 0, 0], shots.phi[0, 0, [0, 2]].mean(0), atol=1e-6)
    assert average.psi.shape == (1, 1, 1, D)


def test_attention_maps_of_the_supplement() -> None:
    head = make_head("spatial_hop")
    maps = head.spatial_hop.attention_maps(described(2))
    assert set(maps) == {"spatial", "fo", "ho", "fo_ho"}
    assert all(m.shape == (2, 7, 7) for m in maps.values())
    assert all(((m > 0) & (m <= 1)).all() for m in maps.values())
    assert torch.allclose(maps["fo_ho"], (maps["fo"] + maps["ho"]) / 2)
    only_ho = make_head("spatial_hop", "high").spatial_hop.attention_maps(described(2))
    assert set(only_ho) == {"spatial", "ho"}

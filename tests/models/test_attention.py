"""Attention and its block: Eq. 6–9."""

import math

import pytest
import torch
import torch.nn.functional as F

from tenet.config import AttentionConfig
from tenet.errors import ConfigError
from tenet.models.attention import (
    MultiHeadAttention,
    TransformerBlocks,
    rbf_weights,
    softmax_weights,
)


def test_rbf_is_equation_8() -> None:
    q, k = torch.randn(4, 6), torch.randn(3, 6)
    a, b = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
    expected = torch.exp(-(torch.cdist(a, b) ** 2) / (2 * 0.5**2))
    assert torch.allclose(rbf_weights(q, k, None, 0.5), expected, atol=1e-5)


def test_softmax_is_equation_7() -> None:
    q, k = torch.randn(4, 6), torch.randn(3, 6)
    assert torch.allclose(softmax_weights(q, k, None, 0.5), (q @ k.T / math.sqrt(6)).softmax(-1))


@pytest.mark.parametrize("kind", ["rbf", "softmax"])
def test_masked_keys_do_not_count(kind: str) -> None:
    attention = MultiHeadAttention(8, 2, kind, 0.5)
    x, keys = torch.randn(5, 8), torch.randn(4, 8)
    mask = torch.tensor([True, True, False, True])
    everything = attention(x, keys, mask)
    assert torch.allclose(everything, attention(x, keys[mask], torch.ones(3, dtype=torch.bool)), atol=1e-6)
    nothing = attention(x, keys, torch.zeros(4, dtype=torch.bool))
    assert torch.equal(nothing, torch.zeros_like(nothing))


def test_repeated_shots_do_not_change_the_scale() -> None:
    """Divided by the number of keys: the same shot five times says what it says once."""
    attention = MultiHeadAttention(8, 2, "rbf", 0.5)
    x, key = torch.randn(5, 8), torch.randn(1, 8)
    once = attention(x, key, torch.ones(1, dtype=torch.bool))
    five = attention(x, key.repeat(5, 1), torch.ones(5, dtype=torch.bool))
    assert torch.allclose(once, five, atol=1e-6)


def test_one_shot_still_discriminates() -> None:
    """RBF attention to a single key depends on the query; a softmax is constant."""
    x, key, mask = torch.randn(5, 8), torch.randn(1, 8), torch.ones(1, dtype=torch.bool)
    assert MultiHeadAttention(8, 2, "rbf", 0.5)(x, key, mask).std(0).max() > 1e-3
    assert MultiHeadAttention(8, 2, "softmax", 0.5)(x, key, mask).std(0).max() < 1e-6


def test_heads_are_independent_groups_of_channels() -> None:
    attention = MultiHeadAttention(8, 2, "rbf", 0.5)
    x, keys = torch.randn(5, 8), torch.randn(3, 8)
    q, k, v = attention.q(x), attention.k(keys), attention.v(keys)
    parts = [rbf_weights(q[:, s], k[:, s], None, 0.5) @ v[:, s] for s in (slice(0, 4), slice(4, 8))]
    assert torch.allclose(attention(x, keys), torch.cat(parts, -1), atol=1e-6)


def test_leading_axes_broadcast() -> None:
    blocks = TransformerBlocks(8, AttentionConfig(heads=2, dropout=0.0)).eval()
    x, keys, mask = torch.randn(2, 1, 6, 8), torch.randn(1, 3, 4, 8), torch.rand(1, 3, 4) > 0.3
    together = blocks(x, keys, mask)
    assert together.shape == (2, 3, 6, 8)
    assert torch.allclose(together[1, 2], blocks(x[1, 0], keys[0, 2], mask[0, 2]), atol=1e-5)


def test_block_ends_in_layer_norm() -> None:
    out = TransformerBlocks(8, AttentionConfig(heads=2)).eval()(torch.randn(6, 8))
    assert torch.allclose(out.mean(-1), torch.zeros(6), atol=1e-5)


def test_heads_must_divide_the_channels() -> None:
    with pytest.raises(ConfigError, match="divisor of the 10 channels"):
        MultiHeadAttention(10, 4, "rbf", 0.5)

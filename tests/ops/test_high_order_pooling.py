"""Eq. 1–2 as laws."""

import pytest
import torch

from tenet.errors import InputError
from tenet.ops import hotd, superdiagonal, tau


def random_features(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_linearises_the_polynomial_kernel(order: int) -> None:
    """Eq. 1: ⟨M(Φ), M(Φ')⟩ = 1/NM Σ w^r w'^r ⟨φ − μ, φ' − μ'⟩^r."""
    phi, other = random_features(4, 6), random_features(4, 3)
    w, w_other = torch.rand(6, dtype=torch.float64), torch.rand(3, dtype=torch.float64)
    mu, mu_other = phi.mean(1), other.mean(1)
    left = (hotd(phi, order, w, mu) * hotd(other, order, w_other, mu_other)).sum()
    kernel = ((phi - mu[:, None]).T @ (other - mu_other[:, None])) ** order
    right = (w[:, None] ** order * w_other**order * kernel).mean()
    assert torch.allclose(left, right, rtol=1e-12)


@pytest.mark.parametrize("order", [2, 3, 4])
def test_is_symmetric_and_batched(order: int) -> None:
    phi = random_features(2, 3, 4, 5)
    m = hotd(phi, order)
    assert m.shape == (2, 3, *(4,) * order)
    assert torch.allclose(m, m.transpose(-1, -2))
    assert torch.allclose(m[1, 2], hotd(phi[1, 2], order))


def test_second_order_is_the_autocorrelation() -> None:
    phi = random_features(5, 9)
    assert torch.allclose(hotd(phi, 2), phi @ phi.T / 9)


@pytest.mark.parametrize("order", [2, 4])
def test_tau_is_the_trace_of_the_square_unfolding(order: int) -> None:
    phi = random_features(4, 7)
    side = 4 ** (order // 2)
    assert torch.allclose(hotd(phi, order).reshape(side, side).trace(), tau(phi, order))


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_superdiagonal(order: int) -> None:
    m = random_features(2, *(3,) * order)
    expected = torch.stack([torch.stack([m[b][(i,) * order] for i in range(3)]) for b in range(2)])
    assert torch.equal(superdiagonal(m, order), expected)


@pytest.mark.parametrize(
    ("phi", "order", "words"),
    [
        (torch.ones(3), 2, r"\(…, d, N\)"),
        (torch.ones(3, 0), 2, "N >= 1"),
        (torch.ones(3, 2, dtype=torch.long), 2, "floating"),
        (torch.ones(3, 2), 1, "at least 2"),
        (torch.ones(3, 2), 2.0, "whole number"),
        ([[1.0]], 2, "list"),
    ],
)
def test_bad_input(phi: object, order: int, words: str) -> None:
    with pytest.raises(InputError, match=words):
        hotd(phi, order)  # type: ignore[arg-type]


def test_bad_weights_and_mean() -> None:
    phi = torch.ones(3, 2)
    with pytest.raises(InputError, match="weights"):
        hotd(phi, 2, weights=torch.ones(3))
    with pytest.raises(InputError, match="mean"):
        hotd(phi, 2, mean=torch.ones(2))

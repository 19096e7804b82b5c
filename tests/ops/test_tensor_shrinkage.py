"""The fast form is the dense Algorithm 1; Theorems 1 and 2 hold; nothing is ever infinite."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tenet.errors import InputError
from tenet.ops import (
    dense_tso,
    effective_eta,
    hotd,
    maxexp,
    maxexp_spectrum,
    superdiagonal,
    tau,
    tensor_shrinkage,
    tso_superdiagonal,
)
from tenet.ops.high_order_pooling import EPSILON


def dense(phi: Tensor, order: int, eta: int, odd_power: str = "floor3") -> Tensor:
    """ψ̂ by the book."""
    return superdiagonal(dense_tso(hotd(phi, order) / (EPSILON + tau(phi, order)), eta, odd_power))


def features(d: int, n: int, seed: int = 0, signed: bool = False) -> Tensor:
    values = torch.rand(d, n, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return values - 0.5 if signed else values


def gap(a: Tensor, b: Tensor) -> float:
    return float(((a - b).abs() / (1 + b.abs())).max())


@pytest.mark.parametrize("order", [2, 3, 4, 5])
@pytest.mark.parametrize("shape", [(4, 7), (4, 4), (5, 2), (3, 1), (1, 4)])
def test_fast_is_dense(order: int, shape: tuple[int, int]) -> None:
    for eta in range(1, 11):
        for signed in (False, True):
            phi = features(*shape, signed=signed)
            assert gap(tso_superdiagonal(phi, order, eta), dense(phi, order, eta)) < 1e-10


@pytest.mark.parametrize("order", [2, 3, 4, 5])
@pytest.mark.parametrize("shape", [(3, 5), (5, 3)])
@pytest.mark.parametrize("eta", [31, 33, 64, 81])
def test_fast_is_dense_for_large_eta(order: int, shape: tuple[int, int], eta: int) -> None:
    phi = features(*shape)
    assert gap(tso_superdiagonal(phi, order, eta), dense(phi, order, eta)) < 1e-10


@pytest.mark.parametrize("order", [3, 4, 5])
def test_stepping_is_squaring(order: int, monkeypatch: pytest.MonkeyPatch) -> None:
    phi = features(6, 4)
    for eta in (2, 3, 9, 10, 27):
        monkeypatch.setattr(tensor_shrinkage, "AFFINE_FROM", 1000)
        stepped = tso_superdiagonal(phi, order, eta)
        monkeypatch.setattr(tensor_shrinkage, "AFFINE_FROM", 1)
        assert gap(tso_superdiagonal(phi, order, eta), stepped) < 1e-12


@pytest.mark.parametrize("order", [3, 5])
@pytest.mark.parametrize("shape", [(3, 5), (5, 3)])
def test_exact_odd_power(order: int, shape: tuple[int, int]) -> None:
    phi = features(*shape)
    for eta in (1, 3, 5, 7, 9):
        assert gap(tso_superdiagonal(phi, order, eta, "exact"), dense(phi, order, eta, "exact")) < 1e-10


@settings(max_examples=60, deadline=None)
@given(
    order=st.integers(2, 5),
    d=st.integers(1, 4),
    n=st.integers(1, 6),
    eta=st.integers(1, 10),
    scale=st.floats(1e-2, 1e3),
    seed=st.integers(0, 2**31),
)
def test_fast_is_dense_anywhere(order: int, d: int, n: int, eta: int, scale: float, seed: int) -> None:
    phi = features(d, n, seed) * scale
    assert gap(tso_superdiagonal(phi, order, eta), dense(phi, order, eta)) < 1e-10


@settings(max_examples=40, deadline=None)
@given(
    order=st.sampled_from([2, 4, 6]),
    d=st.integers(1, 5),
    n=st.integers(1, 8),
    eta=st.integers(1, 40),
    seed=st.integers(0, 2**31),
)
def test_even_orders_stay_within_zero_and_one(order: int, d: int, n: int, eta: int, seed: int) -> None:
    psi = tso_superdiagonal(features(d, n, seed), order, eta)
    assert (psi >= -1e-12).all()
    assert (psi <= 1 + 1e-12).all()


@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_eta_one_is_the_plain_descriptor(order: int) -> None:
    phi = features(4, 6)
    plain = superdiagonal(hotd(phi, order)) / (EPSILON + tau(phi, order))
    assert gap(tso_superdiagonal(phi, order, 1), plain) < 1e-14


@pytest.mark.parametrize(
    ("eta", "acts_as"), [(1, 1), (2, 1), (3, 3), (7, 3), (8, 3), (9, 9), (10, 9), (27, 27)]
)
def test_odd_orders_read_eta_as_algorithm_1(eta: int, acts_as: int) -> None:
    assert effective_eta(3, eta) == acts_as
    assert effective_eta(4, eta) == eta


@pytest.mark.parametrize("order", [2, 3, 4, 5])
@pytest.mark.parametrize("shape", [(4, 6), (6, 4)])
def test_batch_is_single(order: int, shape: tuple[int, int]) -> None:
    phi = torch.stack([features(*shape, seed=i) for i in range(6)]).reshape(2, 3, *shape)
    batch = tso_superdiagonal(phi, order, 7)
    assert batch.shape == (2, 3, shape[0])
    for i in range(2):
        for j in range(3):
            assert gap(batch[i, j], tso_superdiagonal(phi[i, j], order, 7)) < 1e-12


@pytest.mark.parametrize("order", [2, 3, 4, 5])
@pytest.mark.parametrize("eta", [1, 2, 7, 40])
@pytest.mark.parametrize("shape", [(3, 4), (4, 3)])
def test_gradients(order: int, eta: int, shape: tuple[int, int]) -> None:
    phi = features(*shape).unsqueeze(0).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: tso_superdiagonal(x, order, eta), phi)


@pytest.mark.parametrize("order", [2, 3, 4, 5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "phi",
    [
        torch.zeros(4, 6),
        torch.zeros(6, 4),
        torch.ones(4, 6),
        torch.ones(6, 4) * 3.5,
        torch.ones(5, 1),
        torch.zeros(5, 1),
        torch.cat([torch.ones(4, 3), torch.zeros(4, 5)], 1),
        torch.full((4, 6), 1e-12),
        torch.full((4, 6), 1e8),
    ],
    ids=["zero", "zero wide", "one", "constant", "single", "single zero", "half zero", "small", "large"],
)
def test_finite_values_and_gradients(order: int, dtype: torch.dtype, phi: Tensor) -> None:
    for eta in (1, 7, 50):
        x = phi.to(dtype).clone().requires_grad_()
        psi = tso_superdiagonal(x, order, eta)
        psi.sum().backward()
        assert psi.dtype == dtype
        assert torch.isfinite(psi).all()
        assert x.grad is not None
        assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize("order", [2, 3, 4])
def test_float32_is_close_to_float64(order: int) -> None:
    phi = torch.rand(8, 64, 49)
    difference = tso_superdiagonal(phi, order, 7) - tso_superdiagonal(phi.double(), order, 7)
    assert difference.abs().max() < 1e-5


def test_an_empty_batch() -> None:
    assert tso_superdiagonal(torch.zeros(0, 5, 7), 3, 7).shape == (0, 5)


def test_masked_positions_change_nothing() -> None:
    """Zero columns (padding) carry no weight: the normalisation takes N out."""
    phi = features(4, 3)
    padded = torch.cat([phi, torch.zeros(4, 5, dtype=torch.float64)], 1)
    for order in (2, 3, 4):
        assert gap(tso_superdiagonal(padded, order, 7), tso_superdiagonal(phi, order, 7)) < 1e-5


def test_second_order_is_maxexp() -> None:
    phi = features(5, 8)
    expected = maxexp(hotd(phi, 2), 7).diagonal()
    assert gap(tso_superdiagonal(phi, 2, 7), expected) < 1e-12


@pytest.mark.parametrize("eta", [2, 3, 5, 7, 10])
def test_theorem_1_tso_is_a_shrinkage_operator(eta: int) -> None:
    """The gradient of KL(λ°‖λ°') + δ·Tsallis_α(λ°') vanishes at λ' = 1 − (1 − λ)^η."""
    d = 6
    spectrum = torch.rand(d, dtype=torch.float64)
    spectrum = spectrum / spectrum.sum()
    shrunk = maxexp_spectrum(spectrum, eta)
    s, t, alpha = d - 1, float(d - shrunk.sum()), 1 / eta
    delta = eta * t ** (1 / eta) / s * (1 - 1 / eta)
    candidate = shrunk.clone().requires_grad_()
    complement, other = (1 - spectrum) / s, (1 - candidate) / t
    divergence = (complement * (complement.log() - other.log())).sum()
    tsallis = (1 - other.pow(alpha).sum()) / (alpha - 1)
    (gradient,) = torch.autograd.grad(divergence + delta * tsallis, candidate)
    assert gradient.abs().max() < 1e-12
    moved = (shrunk * 0.9).requires_grad_()
    other = (1 - moved) / t
    value = -(complement * other.log()).sum() + delta * (1 - other.pow(alpha).sum()) / (alpha - 1)
    (elsewhere,) = torch.autograd.grad(value, moved)
    assert elsewhere.abs().max() > 1e-6  # the law distinguishes its solution from a neighbour


def test_theorem_2_the_target_of_shrinkage_is_the_identity() -> None:
    phi = features(4, 40)
    assert gap(dense_tso(hotd(phi, 2) / tau(phi, 2), 10**6), torch.eye(4, dtype=torch.float64)) < 1e-6
    for order in (2, 4):
        psi = tso_superdiagonal(features(3, 30), order, 10**5)
        assert gap(psi, torch.ones(3, dtype=torch.float64)) < 1e-3


def test_theorem_2_only_on_the_span() -> None:
    """A channel that no feature has stays at 0, however large η is."""
    phi = features(4, 6)
    phi[2] = 0
    assert tso_superdiagonal(phi, 2, 10**6)[2] == 0


def test_larger_eta_shrinks_more() -> None:
    phi = features(6, 10)
    values = [tso_superdiagonal(phi, 2, eta) for eta in (1, 3, 7, 20)]
    assert all((b >= a - 1e-12).all() for a, b in pairwise(values))


def test_signed_features_grow_for_odd_orders() -> None:
    """Why the encoder ends in a ReLU: exact all the same, but no longer bounded."""
    phi = features(3, 8, signed=True)
    assert gap(tso_superdiagonal(phi, 3, 27), dense(phi, 3, 27)) < 1e-8


@pytest.mark.parametrize("eta", [0, -1, 2.5, "7", True])
def test_bad_eta(eta: object) -> None:
    with pytest.raises(InputError, match="eta"):
        tso_superdiagonal(torch.ones(2, 2), 2, eta)  # type: ignore[arg-type]


def test_bad_odd_power() -> None:
    with pytest.raises(InputError, match="floor3"):
        tso_superdiagonal(torch.ones(2, 2), 3, 3, "cube")
    with pytest.raises(InputError, match="odd order"):
        tso_superdiagonal(torch.ones(2, 2), 3, 4, "exact")


def test_bad_tensor() -> None:
    with pytest.raises(InputError, match="equal axes"):
        dense_tso(torch.ones(2, 3), 2)


def test_dense_takes_a_batch_when_told_the_order() -> None:
    phi = torch.stack([features(3, 5, seed=i) for i in range(4)])
    m = hotd(phi, 3) / (EPSILON + tau(phi, 3))[:, None, None, None]
    batch = dense_tso(m, 3, order=3)
    assert torch.allclose(batch[2], dense_tso(m[2], 3))

"""High-order tensor descriptors (Sec. 3, Eq. 1–2).

    M^(r)(Φ; w, μ) = 1/N Σ_n w_n^r (φ_n − μ)^{⊗r}

Shapes: Φ is (…, d, N), N feature vectors of d channels; M^(r) is (…, d, …, d) with r axes.

Deviation: the paper normalises for r = 2 only, by the trace. We divide every order by ε + τ_r with
τ_r = 1/N Σ_n ‖φ_n‖^r. For even r that is the trace of the square unfolding, so r = 2 is the paper's
rule and the spectrum stays in [0, 1] for every even order.
"""

from torch import Tensor

from tenet.errors import InputError
from tenet.ops.checks import check_tensor, check_whole

EPSILON = 1e-6
"""ε of the paper's trace normalisation."""


def check_features(phi: Tensor, order: int) -> None:
    """Refuse what is not (…, d, N) floating features with d, N ≥ 1, or an order below 2."""
    check_tensor("phi", phi, "(…, d, N)", least_ndim=2)
    if 0 in phi.shape[-2:]:
        raise InputError(f"phi: expected (…, d, N) with d, N >= 1, got {tuple(phi.shape)}")
    check_whole("order", order, 2)


def centred(phi: Tensor, weights: Tensor | None, mean: Tensor | None) -> Tensor:
    """w_n (φ_n − μ), whose plain descriptor is M^(r)(Φ; w, μ): the weight enters to the power r."""
    batch, (d, n) = phi.shape[:-2], phi.shape[-2:]
    if mean is not None:
        _check_beside("mean", mean, batch, d, "d")
        phi = phi - mean.unsqueeze(-1)
    if weights is not None:
        _check_beside("weights", weights, batch, n, "N")
        if (weights < 0).any():
            raise InputError(f"weights: expected non-negative numbers, got {weights.min().item()}")
        phi = phi * weights.unsqueeze(-2)
    return phi


def _check_beside(name: str, x: Tensor, batch: tuple[int, ...], size: int, letter: str) -> None:
    """Refuse what is not (…, size) with the features' batch, or without one."""
    check_tensor(name, x, f"(…, {letter})", least_ndim=1)
    if x.shape[-1] != size or x.shape[:-1] not in (batch, ()):
        raise InputError(
            f"{name}: expected batch {tuple(batch)} and {letter} = {size} at the end, got {tuple(x.shape)}"
        )


def hotd(phi: Tensor, order: int, weights: Tensor | None = None, mean: Tensor | None = None) -> Tensor:
    """M^(r)(Φ; w, μ) of Eq. 2, not normalised: (…, d, N) → (…, d, …, d) with `order` axes.

    `weights` (…, N) are non-negative, `mean` is (…, d); left out they are 1 and 0, as in the paper.
    Memory grows as d^r: this is the reference for small d, `tso_superdiagonal` is what runs.
    """
    check_features(phi, order)
    x = centred(phi, weights, mean)
    batch, (d, n) = x.shape[:-2], x.shape[-2:]
    # M unfolded is F_p F_qᵀ / N with the columns φ_n^{⊗p}: N never multiplies the d^r entries.
    low = _outer_power(x, order // 2)
    high = _outer_power(x, order - order // 2)
    return (low @ high.mT / n).reshape(*batch, *(d,) * order)


def _outer_power(x: Tensor, exponent: int) -> Tensor:
    """Columns φ_n^{⊗exponent}: (…, d, N) → (…, d^exponent, N)."""
    power = x
    for _ in range(exponent - 1):
        power = (power.unsqueeze(-2) * x.unsqueeze(-3)).flatten(-3, -2)
    return power


def tau(phi: Tensor, order: int) -> Tensor:
    """τ_r = 1/N Σ_n ‖φ_n‖^r: (…, d, N) → (…). Divide M^(r) by ε + τ_r before TSO."""
    check_features(phi, order)
    return phi.square().sum(-2).pow(order / 2).mean(-1)


def superdiagonal(m: Tensor, order: int | None = None) -> Tensor:
    """Entries (i, …, i) of the last `order` axes (default: all axes): (…, d, …, d) → (…, d)."""
    order = m.ndim if order is None else order
    step = sum(m.shape[-1] ** k for k in range(order))  # from (i, …, i) to (i + 1, …, i + 1), laid out flat
    return m.flatten(-order)[..., ::step]

"""High-order tensor descriptors (Sec. 3, Eq. 1–2).

    M^(r)(Φ; w, μ) = 1/N Σ_n w_n^r (φ_n − μ)^{⊗r}

Shapes: Φ is (…, d, N), N feature vectors of d channels; M^(r) is (…, d, …, d) with r axes.

Deviation: the paper normalises for r = 2 only, by the trace. We divide every order by ε + τ_r with
τ_r = 1/N Σ_n ‖φ_n‖^r. For even r that is the trace of the square unfolding, so r = 2 is the paper's
rule and the spectrum stays in [0, 1] for every even order.
"""

from torch import Tensor

from tenet.errors import InputError

EPSILON = 1e-6
"""ε of the paper's trace normalisation."""


def check_features(phi: Tensor, order: int) -> None:
    """Refuse what is not (…, d, N) floating features with d, N ≥ 1, or an order below 2."""
    if not isinstance(phi, Tensor) or phi.ndim < 2 or 0 in phi.shape[-2:]:
        came = f"shape {tuple(phi.shape)}" if isinstance(phi, Tensor) else type(phi).__name__
        raise InputError(f"phi: expected a tensor of shape (…, d, N) with d, N >= 1, got {came}")
    if not phi.is_floating_point():
        raise InputError(f"phi: expected floating-point features, got {phi.dtype}; call phi.float() first")
    if isinstance(order, bool) or not isinstance(order, int) or order < 2:
        raise InputError(f"order: expected a whole number of at least 2, got {order!r}")


def centred(phi: Tensor, weights: Tensor | None, mean: Tensor | None) -> Tensor:
    """w_n (φ_n − μ), whose plain descriptor is M^(r)(Φ; w, μ): the weight enters to the power r."""
    if mean is not None:
        if mean.shape[-1] != phi.shape[-2]:
            raise InputError(f"mean: expected (…, d) with d = {phi.shape[-2]}, got {tuple(mean.shape)}")
        phi = phi - mean.unsqueeze(-1)
    if weights is not None:
        if weights.shape[-1] != phi.shape[-1]:
            raise InputError(f"weights: expected (…, N) with N = {phi.shape[-1]}, got {tuple(weights.shape)}")
        phi = phi * weights.unsqueeze(-2)
    return phi


def hotd(phi: Tensor, order: int, weights: Tensor | None = None, mean: Tensor | None = None) -> Tensor:
    """M^(r)(Φ; w, μ) of Eq. 2, not normalised: (…, d, N) → (…, d, …, d) with `order` axes.

    `weights` (…, N) are non-negative, `mean` is (…, d); left out they are 1 and 0, as in the paper.
    Memory grows as d^r: this is the reference for small d, `tso_superdiagonal` is what runs.
    """
    check_features(phi, order)
    x = centred(phi, weights, mean)
    batch, (d, n) = x.shape[:-2], x.shape[-2:]
    products = x  # (…, d^k, N), one axis of size d folded in at a time
    for _ in range(order - 1):
        products = (products.unsqueeze(-2) * x.unsqueeze(-3)).reshape(*batch, -1, n)
    return products.mean(-1).reshape(*batch, *(d,) * order)


def tau(phi: Tensor, order: int) -> Tensor:
    """τ_r = 1/N Σ_n ‖φ_n‖^r: (…, d, N) → (…). Divide M^(r) by ε + τ_r before TSO."""
    check_features(phi, order)
    return phi.square().sum(-2).pow(order / 2).mean(-1)


def superdiagonal(m: Tensor, order: int | None = None) -> Tensor:
    """Entries (i, …, i) of the last `order` axes (default: all axes): (…, d, …, d) → (…, d)."""
    order = m.ndim if order is None else order
    step = sum(m.shape[-1] ** k for k in range(order))  # from (i, …, i) to (i + 1, …, i + 1), laid out flat
    return m.flatten(-order)[..., ::step]

"""Tensor Shrinkage Operator (Sec. 4.1, Eq. 11–12, Algorithm 1): dense reference and exact fast form.

    TSO(M; η) = I_r − (I_r − M)^η,     ψ̂ = superdiag TSO(M; η)

I_r is the super-diagonal identity: for r = 4 it is not the d²×d² identity.

Why a fast form. Unfolded, I_r − M is d^p × d^q with p = ⌊r/2⌋, q = ⌈r/2⌉: at the paper's own size
(r = 4, d = 128) that is 1 GB for each region. But it is a sum of few rank-one terms,

    I_r − M = E_p E_qᵀ − c F_p F_qᵀ,   E_p = [e_i^{⊗p}],  F_p = [φ_n^{⊗p}],  c = 1/(N (ε + τ_r)),

so every power applied to E_p stays in the span of E and F, where it has coordinates (x, y):

    E_p x + F_p y   ↦   E_q (x + C_p y) − c F_q (C_pᵀ x + K_p y),
    C_p = E_pᵀ F_p = Φ^{∘p},   K_p = F_pᵀ F_p = (ΦᵀΦ)^{∘p}   (element-wise powers).

η steps from x = I, y = 0 (p and q in turn; even orders have p = q) and the reading x + C y give the
super-diagonal of the power. We keep x − I rather than x, so nothing is ever subtracted from 1.
Two sets of coordinates, chosen by size; both are exact:
  * few positions (N ≤ d): x − I = C W Cᵀ and y = V Cᵀ with N-sized W and V;
  * few channels (d < N): x − I (d×d) and y (N×d) as they stand.
For r = 2 the step commutes with itself and log η products are enough; for the other orders it is an
affine map, squared the same way once η is large enough to pay for its greater width.

Deviation: M is divided by ε + τ_r for every order (see `high_order_pooling`). Odd orders follow
Algorithm 1, which divides η by 3 until nothing is left, so that η = 7 acts as 3 (`odd_power =
"floor3"`); `"exact"` takes any odd η. With signed features the unfolding of an odd order has singular
values above 1 and its power grows: feed non-negative features (the paper's come out of a ReLU).
"""

import torch
from torch import Tensor

from tenet.errors import InputError
from tenet.ops.checks import check_tensor, check_whole
from tenet.ops.high_order_pooling import EPSILON, check_features

AFFINE_FROM = 32
"""Powers from which squaring the (k+1)·N-wide affine map is cheaper than stepping."""


NUMBERS_AT_ONCE = 2**20
"""Features worked on at a time: what comes in between then stays in the processor's cache."""


def effective_eta(order: int, eta: int, odd_power: str = "floor3") -> int:
    """The power that Algorithm 1 raises to: η for even orders; for odd ones 3^⌊log₃ η⌋, or η itself."""
    check_whole("eta", eta, 1)
    if odd_power not in ("floor3", "exact"):
        raise InputError(f"odd_power: expected 'floor3' or 'exact', got {odd_power!r}")
    if order % 2 == 0:
        return eta
    if odd_power == "exact":
        if eta % 2 == 0:
            raise InputError(
                f"eta: an odd order ({order}) has no even power, got {eta}; use 'floor3' or an odd eta"
            )
        return eta
    power = 1
    while power * 3 <= eta:
        power *= 3
    return power


def dense_tso(m: Tensor, eta: int, odd_power: str = "floor3", order: int | None = None) -> Tensor:
    """Algorithm 1 to the letter, on normalised M of shape (…, d, …, d): the reference for small d.

    `order` is r, the number of trailing axes; left out, all axes count and there is no batch.
    """
    check_tensor("m", m, "(…, d, …, d)", least_ndim=2)
    order = m.ndim if order is None else order
    if order < 2 or m.ndim < order or len(set(m.shape[m.ndim - order :])) != 1:
        raise InputError(f"m: expected (…, d, …, d) with {max(order, 2)} equal axes, got {tuple(m.shape)}")
    d, batch = m.shape[-1], m.shape[: m.ndim - order]
    identity = torch.zeros((d,) * order, dtype=m.dtype, device=m.device)
    identity[(torch.arange(d, device=m.device),) * order] = 1
    x = (identity - m).reshape(*batch, d ** (order // 2), d ** (order - order // 2))
    n = effective_eta(order, eta, odd_power)
    if order % 2 == 0:
        power = _power_by_squaring(x, n)
    elif odd_power == "floor3":
        power = x
        while n > 1:
            power, n = power @ power.mT @ power, n // 3
    else:
        power = x if n == 1 else x @ _power_by_squaring(x.mT @ x, (n - 1) // 2)
    return identity - power.reshape(*batch, *(d,) * order)


def _power_by_squaring(x: Tensor, n: int) -> Tensor:
    """xⁿ for n ≥ 1 (left column of Algorithm 1)."""
    result: Tensor | None = None
    while n:
        if n & 1:
            result = x if result is None else result @ x
        n >>= 1
        if n:
            x = x @ x
    if result is None:
        raise InputError(f"power: expected at least 1, got {n}")
    return result


def tso_superdiagonal(phi: Tensor, order: int, eta: int, odd_power: str = "floor3") -> Tensor:
    """ψ̂_r = superdiag TSO(M^(r)(Φ) / (ε + τ_r); η), Eq. 12, exactly and without forming M.

    phi (…, d, N) → (…, d). Differentiable; any batch; float32 or float64; finite for zero features, and
    for any others whose squares are.
    """
    check_features(phi, order)
    power = effective_eta(order, eta, odd_power)
    if phi.numel() == 0:  # a batch without items
        return phi.sum(-1)
    flat = phi.reshape(-1, *phi.shape[-2:])
    parts = flat.split(max(1, NUMBERS_AT_ONCE // flat[0].numel()))
    done = [_superdiagonal(part, order, power) for part in parts]
    return (done[0] if len(done) == 1 else torch.cat(done)).reshape(phi.shape[:-1])


def _superdiagonal(phi: Tensor, order: int, power: int) -> Tensor:
    """The same for one batch axis: (B, d, N) → (B, d), whichever way is the shortest."""
    if order == 2:
        return _second_order(phi, power)
    gram = phi.mT @ phi  # every way needs it, and ‖φ_n‖² is its diagonal
    squares = gram.diagonal(dim1=-2, dim2=-1)  # (B, N)
    # φ/s with ε/s^r in place of ε is the same number for every s, so s takes no gradient; it keeps
    # φ^r within the range of float32.
    scale = squares.detach().amax(-1, keepdim=True).clamp(min=torch.finfo(phi.dtype).tiny)  # s², (B, 1)
    norm = (squares / scale).pow(order / 2).sum(-1, keepdim=True)  # N τ_r
    c = (norm + phi.shape[-1] * EPSILON * scale.pow(-order / 2)).reciprocal().unsqueeze(-1)  # (B, 1, 1)
    scale = scale.unsqueeze(-1)
    phi, gram = phi * scale.rsqrt(), gram / scale
    if power == 1:
        return c.squeeze(-1) * phi.pow(order).sum(-1)
    if phi.shape[-1] > phi.shape[-2]:
        return _few_channels(phi, gram, c, order, power)
    if (order, power) == (3, 3):
        return _third_order_cubed(phi, gram, c)
    return _few_positions(phi, gram, c, order, power)


def _second_order(phi: Tensor, power: int) -> Tensor:
    """r = 2: I − (I − M)^η = M Σ_{j<η} (I − M)^j, on the smaller of M (d×d) and cΦᵀΦ (N×N)."""
    few_channels = phi.shape[-2] < phi.shape[-1]
    gram = phi @ phi.mT if few_channels else phi.mT @ phi
    c = 1 / (phi.shape[-1] * EPSILON + gram.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None])
    series = _geometric_sum(c * gram, power)
    if few_channels:
        return (c * gram * series).sum(-1)
    return ((phi @ (c * series)) * phi).sum(-1)


def _geometric_sum(m: Tensor, terms: int) -> Tensor:
    """Σ_{j<terms} (I − m)^j by doubling: S_{2k} = S_k + q^k S_k, S_{k+1} = I + q S_k."""
    identity = torch.eye(m.shape[-1], dtype=m.dtype, device=m.device)
    q = identity - m
    total, q_power = identity.expand_as(m), q  # S_1 and q^1
    for bit in bin(terms)[3:]:
        total = total + q_power @ total
        q_power = q_power @ q_power
        if bit == "1":
            total = identity + q @ total
            q_power = q_power @ q
    return total


def _third_order_cubed(phi: Tensor, gram: Tensor, c: Tensor) -> Tensor:
    """r = 3 at the paper's η (7, which acts as 3), multiplied out: half the work of the steps below.

    With A = Φ^{∘2}, G = ΦᵀΦ, K = G^{∘2}: ψ̂ = diag of 3c AΦᵀ − c² (ΦKΦᵀ + A G Aᵀ + Φ AᵀΦ Aᵀ) + c³ ΦKGAᵀ.
    """
    A = phi.square()
    K = gram.square()
    mixed = A @ gram + phi @ (A.mT @ phi - c * (K @ gram))
    return (c * (3 * A * phi - c * (phi * (phi @ K) + A * mixed))).sum(-1)


def _few_channels(phi: Tensor, gram: Tensor, c: Tensor, order: int, power: int) -> Tensor:
    """d < N: step [x − I; y] (B, d + N, d) itself, one product a step."""
    d = phi.shape[1]
    identity = torch.eye(d, dtype=phi.dtype, device=phi.device).expand(len(phi), d, d)
    maps = []  # for p and q: C, and the step [x; y] ↦ A [x; y] + b
    for exponent in {order // 2: None, order - order // 2: None}:
        C = phi.pow(exponent)
        lift = -c * C.mT
        A = torch.cat([torch.cat([identity, C], -1), torch.cat([lift, -c * gram.pow(exponent)], -1)], -2)
        maps.append((C, A, torch.cat([torch.zeros_like(identity), lift], -2)))
    state = maps[0][2]  # after the first step
    for step in range(1, power):
        _, A, b = maps[step % len(maps)]
        state = torch.baddbmm(b, A, state)
    x, y = state[:, :d], state[:, d:]
    C, _, _ = maps[power % len(maps)]
    return -(x.diagonal(dim1=-2, dim2=-1) + (C * y.mT).sum(-1))


def _few_positions(phi: Tensor, gram: Tensor, c: Tensor, order: int, power: int) -> Tensor:
    """N ≤ d: x − I = C W Cᵀ, y = V Cᵀ with C = [C_p, C_q] (even orders: C_p alone), k blocks of N."""
    n = phi.shape[-1]
    exponents = (order // 2,) if order % 2 == 0 else (order // 2, order - order // 2)
    k = len(exponents)
    C = torch.cat([phi.pow(p) for p in exponents], -1)  # (B, d, kN)
    L = C.mT @ C  # (B, kN, kN)
    identity = torch.eye(k * n, dtype=phi.dtype, device=phi.device)
    steps = []  # for p and q: V ↦ lift + map_v [W; V]
    for i, exponent in enumerate(exponents):
        rows = slice(i * n, (i + 1) * n)
        steps.append((-c * identity[rows], -c * torch.cat([L[:, rows], gram.pow(exponent)], -1)))
    if power >= AFFINE_FROM:
        W = _affine_power(steps, power)
    else:
        W, V = torch.zeros_like(L), steps[0][0]  # after the first step
        for step in range(1, power):
            lift, map_v = steps[step % k]
            W, V = _add_rows(W, V, step % k, k), torch.baddbmm(lift, map_v, torch.cat([W, V], -2))
        W = _add_rows(W, V, power % k, k)
    return -((C @ W) * C).sum(-1)


def _add_rows(W: Tensor, V: Tensor, block: int, blocks: int) -> Tensor:
    """W with V added to its `block`-th block of rows: x + C_block y in coordinates."""
    if blocks == 1:
        return W + V
    zero = torch.zeros_like(V)
    return W + torch.cat([V if i == block else zero for i in range(blocks)], -2)


def _affine_power(steps: list[tuple[Tensor, Tensor]], power: int) -> Tensor:
    """The same W after `power` steps and the reading, by squaring the affine map [W; V] ↦ A [W; V] + b."""
    k = len(steps)
    batch, n, wide = steps[0][1].shape
    identity = torch.eye(wide, dtype=steps[0][1].dtype, device=steps[0][1].device)
    maps = []
    for i, (lift, map_v) in enumerate(steps):
        top = identity[: k * n] + _add_rows(torch.zeros_like(identity[: k * n]), identity[k * n :], i, k)
        A = torch.cat([top.expand(batch, -1, -1), map_v], -2)
        maps.append((A, torch.cat([lift.new_zeros(batch, k * n, k * n), lift], -2)))
    total = maps[0]
    if power > 1:
        both = maps[0] if k == 1 else _compose(maps[0], maps[1])  # q, then p: what follows the first step
        total = _compose(_affine_repeat(both, (power - 1) // k), total)
    state = total[1]  # started from W = V = 0
    return _add_rows(state[:, : k * n], state[:, k * n :], power % k, k)


def _compose(after: tuple[Tensor, Tensor], before: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """The affine map `after ∘ before`."""
    return after[0] @ before[0], after[0] @ before[1] + after[1]


def _affine_repeat(step: tuple[Tensor, Tensor], times: int) -> tuple[Tensor, Tensor]:
    """`step` applied `times` ≥ 1 times, in log `times` compositions."""
    total: tuple[Tensor, Tensor] | None = None
    while times:
        if times & 1:
            total = step if total is None else _compose(step, total)
        times >>= 1
        if times:
            step = _compose(step, step)
    if total is None:
        raise InputError("power: expected at least 1 step")
    return total

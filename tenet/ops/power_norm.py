"""Power normalisation (Sec. 3, Eq. 3–5)."""

import torch
from torch import Tensor

from tenet.errors import InputError
from tenet.ops.checks import check_tensor, check_whole
from tenet.ops.high_order_pooling import EPSILON


def sigme(p: Tensor, eta_prime: float | Tensor) -> Tensor:
    """SigmE, Eq. 5, element-wise: 2 / (1 + e^{−η' p}) − 1, as tanh(η' p / 2), which cannot overflow."""
    check_tensor("p", p, "(…)")
    return torch.tanh(p * eta_prime / 2)


def maxexp_spectrum(spectrum: Tensor, eta: int) -> Tensor:
    """g(λ; η) = 1 − (1 − λ)^η of Eq. 3, on an ℓ1-normalised spectrum."""
    return 1 - (1 - spectrum).pow(eta)


def maxexp(m: Tensor, eta: int) -> Tensor:
    """MaxExp(F), Eq. 4: I − (I − M)^η on (…, d, d) symmetric matrices, trace-normalised here."""
    check_tensor("m", m, "(…, d, d)", least_ndim=2)
    if m.shape[-1] != m.shape[-2]:
        raise InputError(f"m: expected square matrices of shape (…, d, d), got {tuple(m.shape)}")
    check_whole("eta", eta, 1)
    trace = m.diagonal(dim1=-2, dim2=-1).sum(-1)
    identity = torch.eye(m.shape[-1], dtype=m.dtype, device=m.device)
    complement = identity - m / (EPSILON + trace)[..., None, None]
    return identity - torch.linalg.matrix_power(complement, eta)

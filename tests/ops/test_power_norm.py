"""Eq. 3–5."""

import pytest
import torch

from tenet.errors import InputError
from tenet.ops import maxexp, maxexp_spectrum, sigme
from tenet.ops.high_order_pooling import EPSILON


def test_sigme_is_equation_5() -> None:
    p = torch.linspace(-1, 1, 41, dtype=torch.float64)
    assert torch.allclose(sigme(p, 20.0), 2 / (1 + torch.exp(-20.0 * p)) - 1, atol=1e-14)


def test_sigme_cannot_overflow() -> None:
    p = torch.tensor([-1e30, 0.0, 1e30], requires_grad=True)
    out = sigme(p, 400.0)
    out.sum().backward()
    assert torch.equal(out.detach(), torch.tensor([-1.0, 0.0, 1.0]))
    assert p.grad is not None
    assert torch.isfinite(p.grad).all()


@pytest.mark.parametrize("eta", [1, 2, 7, 20])
def test_maxexp_is_its_spectral_form(eta: int) -> None:
    root = torch.randn(5, 5, dtype=torch.float64)
    m = root @ root.T
    values, vectors = torch.linalg.eigh(m)
    spectrum = values / (EPSILON + values.sum())
    expected = vectors @ torch.diag(maxexp_spectrum(spectrum, eta)) @ vectors.T
    assert torch.allclose(maxexp(m, eta), expected, atol=1e-12)


def test_sqrtm_is_the_papers_approximation() -> None:
    """Footnote 1: Diag(Sqrtm(M)) orders channels as MaxExp does."""
    phi = torch.rand(8, 30, dtype=torch.float64) * torch.linspace(0.1, 1, 8, dtype=torch.float64)[:, None]
    m = phi @ phi.T / 30
    m = m / m.trace()
    values, vectors = torch.linalg.eigh(m)
    root = (vectors @ torch.diag(values.clamp(min=0).sqrt()) @ vectors.T).diagonal()
    both = torch.stack([root, maxexp(m, 7).diagonal()])
    assert torch.corrcoef(both)[0, 1] > 0.95


def test_bad_input() -> None:
    with pytest.raises(InputError, match="square"):
        maxexp(torch.ones(2, 3), 2)
    with pytest.raises(InputError, match="eta"):
        maxexp(torch.eye(2), 0)

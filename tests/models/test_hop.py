"""The HOP unit: every split of the paper, and what it must not depend on."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tenet.errors import ConfigError
from tenet.models.hop import HOP, split_channels
from tenet.ops import sigme, tso_superdiagonal
from tenet.presets import SPLITS


def make(d: int, orders: tuple[int, ...] = (2, 3, 4), split: tuple[int, ...] = (5, 2, 1)) -> HOP:
    return HOP(d, orders, split, (7,) * len(orders), (200.0,) * len(orders))


def test_the_papers_split() -> None:
    assert split_channels(1024, (5, 2, 1)) == (640, 256, 128)
    assert split_channels(1024, (3, 1)) == (768, 256)


@given(st.integers(4, 200), st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_any_split_sums_to_d(d: int, split: list[int]) -> None:
    widths = split_channels(d, tuple(split))
    assert sum(widths) == d
    assert min(widths) >= 1
    assert all(abs(w - d * part / sum(split)) <= len(split) for w, part in zip(widths, split, strict=True))


def test_too_few_channels() -> None:
    with pytest.raises(ConfigError, match="3 groups"):
        split_channels(2, (1, 1, 1))


@pytest.mark.parametrize("split", SPLITS)
def test_groups_are_independent_tso_and_sigme(split: tuple[int, int, int]) -> None:
    hop, phi = make(48, split=split), torch.rand(2, 48, 9)
    groups = phi.split(hop.widths, 1)
    expected = [
        sigme(tso_superdiagonal(g, r, 7), 200 * 48 / 1024) for r, g in zip((2, 3, 4), groups, strict=True)
    ]
    assert torch.allclose(hop(phi), torch.cat(expected, 1), atol=1e-6)


def test_position_does_not_matter() -> None:
    hop, phi = make(32), torch.rand(3, 32, 49)
    assert torch.allclose(hop(phi), hop(phi[..., torch.randperm(49)]), atol=1e-5)


def test_order_one_is_the_average() -> None:
    phi = torch.rand(3, 16, 49)
    assert torch.allclose(make(16, (1,), (1,))(phi), phi.mean(-1))
    mixed = make(16, (1, 2), (1, 1))(phi)
    assert torch.allclose(mixed[:, :8], phi[:, :8].mean(-1))


def test_eta_prime_is_the_papers_at_its_own_width() -> None:
    assert make(1024).eta_prime == (200.0, 200.0, 200.0)
    assert make(128).eta_prime == (25.0, 25.0, 25.0)


def test_values_are_bounded_and_not_saturated() -> None:
    psi = make(128)(torch.rand(8, 128, 49).relu())
    assert ((psi >= 0) & (psi <= 1)).all()
    assert psi.std() > 0
    assert (psi > 0.99).float().mean() < 0.05

"""What every test shares: a fixed seed, and one thread."""

import pytest
import torch

# Tiny tensors gain nothing from a second thread, and two that wait for each other on a busy machine lose.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _fixed_seed() -> None:
    torch.manual_seed(0)

"""A small set made by code, on disk once for all tests of the engine."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tenet.data.synthetic import write_synthetic


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data root with `annotations.json`: 16 pictures, 4 classes."""
    folder = tmp_path_factory.mktemp("data") / "set"
    write_synthetic(folder, images=16, classes=4, size=(80, 60))
    return folder


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Sums of several threads differ in their last bits; runs are compared bit for bit here."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)

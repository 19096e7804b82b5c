"""Descriptors without learning: rows of tables, few-shot naming, and the command."""

import json
from pathlib import Path

import pytest
import torch
from ablation_parts import write_sets

from tenet.ablations.descriptors import (
    CHANNEL_DRAWS,
    MEAN,
    Crops,
    descriptor_rows,
    encode_crops,
    few_shot_accuracies,
    measure_descriptors,
)
from tenet.cli import main
from tenet.config import HOPConfig
from tenet.data.formats import read_dataset
from tenet.errors import ConfigError, InputError
from tenet.presets import ablations
from tenet.records.record import read_record


@pytest.fixture(scope="module")
def set_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sets(tmp_path_factory.mktemp("sets")) / "test" / "annotations.json"


def test_rows_are_those_of_the_tables_that_differ_in_hop() -> None:
    rows = descriptor_rows("fig3a_eta")
    assert list(rows) == [MEAN, *ablations()["fig3a_eta"]]
    assert rows["r=2 eta=3"] == HOPConfig(orders=(2,), split=(1,), eta=3)
    for other in ("fig3b_sigma", "ancestors", "table9"):
        with pytest.raises(ConfigError, match="table3a, fig3a_eta, supplement_eta_prime"):
            descriptor_rows(other)


def test_classes_that_differ_are_told_apart_and_noise_is_not() -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(4).repeat_interleave(12)
    noise = torch.randn(48, 32, generator=generator)
    centres = 10 * torch.randn(4, 32, generator=generator)
    assert few_shot_accuracies(noise + centres[labels], labels, 3, 20).mean() == 1
    assert few_shot_accuracies(noise, labels, 3, 200).mean() == pytest.approx(0.25, abs=0.05)


def test_what_was_shown_is_not_named() -> None:
    """Every descriptor is like itself alone: shown ones would be named rightly, others by chance."""
    labels = torch.arange(2).repeat_interleave(6)
    found = few_shot_accuracies(torch.eye(12), labels, 5, 200)
    assert found.mean() < 0.7


def test_every_class_has_the_same_weight() -> None:
    labels = torch.tensor([0] * 3 + [1] * 33)
    descriptors = torch.zeros(36, 2)
    descriptors[:, 0] = 1  # all alike, so the first class gets everything
    assert few_shot_accuracies(descriptors, labels, 1, 5).tolist() == [0.5] * 5


def test_few_channels_are_drawn_and_more_than_there_are_refused() -> None:
    generator = torch.Generator().manual_seed(0)
    phi = torch.rand(20, 8, 9, generator=generator).half()
    crops = Crops(("a", "b"), torch.arange(2).repeat_interleave(10), phi)
    rows = {MEAN: None, "r=2": HOPConfig(orders=(2,), split=(1,))}
    found = measure_descriptors(crops, rows, [1, 2], draws=8, channels=4)
    assert {shots: set(own) for shots, own in found.items()} == {1: set(rows), 2: set(rows)}
    again = measure_descriptors(crops, rows, [1, 2], draws=8, channels=4)
    assert found == again
    assert found != measure_descriptors(crops, rows, [1, 2], draws=8)
    assert CHANNEL_DRAWS > 1
    with pytest.raises(InputError, match="at most the encoder's 8"):
        measure_descriptors(crops, rows, [1], channels=9)


def test_crops_of_classes_that_have_enough(set_path: Path) -> None:
    dataset = read_dataset(set_path)
    crops = encode_crops(dataset, 0, per_class=3, least=2, min_side=4)
    assert len(crops.labels) == len(crops.phi) <= 3 * len(crops.classes)
    assert crops.phi.shape[1:] == (1280, 49)
    assert (crops.phi >= 0).all()
    assert set(crops.classes) <= set(dataset.classes)
    with pytest.raises(InputError, match="at least 2 classes with 1000 boxes"):
        encode_crops(dataset, 0, per_class=3, least=1000)


def test_the_command_writes_record_table_and_figure(
    set_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--encoder", "lite0", "--shots", "1,2", "--per-class", "4", "--min-side", "4", "--draws", "8"]
    for name in ("supplement_eta_prime", "table3a"):
        assert main(["descriptors", name, "--data", str(set_path), *words, "--out", str(tmp_path)]) == 0
        folder = tmp_path / name
        record = read_record(folder / "descriptors.json")
        assert [figure.shots for figure in record.figures] == [1, 2]
        assert list(record.figures[0].groups) == list(descriptor_rows(name))
        assert all(0 <= (v["accuracy"] or 0) <= 1 for v in record.figures[0].groups.values())
        assert (folder / "figure.png").read_bytes()[:4] == b"\x89PNG"
        assert (folder / "table.md").read_text().count("\n| ") == len(descriptor_rows(name)) + 2
    assert "**mean**" in capsys.readouterr().out
    assert main(["results", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("without learning") == 2
    assert json.loads((tmp_path / "table3a" / "descriptors.json").read_text())["kind"] == "descriptors"


def test_another_table_is_refused_in_a_line(set_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["descriptors", "fig3b_sigma", "--data", str(set_path)]) == 1
    assert capsys.readouterr().err.count("\n") == 1

"""Stored logits record the name of the split that they come from."""

from pathlib import Path

import pytest
import torch

from softmax_temperature.data.logits import Logits, read_logits, write_logits
from softmax_temperature.data.splits import LeakError
from softmax_temperature.runner.artifacts import new_artifact, open_artifact

VALUES, LABELS = torch.tensor([[1.0, 2.0], [4.0, 0.0]]), torch.tensor([0, 1])


def test_sets_are_read_back_with_their_splits(tmp_path: Path) -> None:
    sets = {
        "validation": Logits("validation", VALUES, LABELS.clone()),
        "test": Logits("test", -VALUES, LABELS.clone()),
        "shifted": Logits("test", 2 * VALUES, LABELS.clone()),
        "outliers": Logits("test", 3 * VALUES),
    }
    with new_artifact(tmp_path / "cell", kind="trainings", about={}) as folder:
        write_logits(folder / "logits.safetensors", sets)
    stored = read_logits(open_artifact(tmp_path / "cell"), "logits.safetensors")
    assert {name: logits.split for name, logits in stored.items()} == {
        name: logits.split for name, logits in sets.items()
    }
    for name, logits in sets.items():
        assert torch.equal(stored[name].values, logits.values)
    assert stored["outliers"].labels is None
    assert torch.equal(stored["shifted"].for_evaluation()[1], LABELS)


@pytest.mark.parametrize(
    ("name", "split"),
    [("validation", "test"), ("test", "validation"), ("shifted", "train")],
)
def test_logits_are_not_stored_under_the_name_of_another_split(
    name: str, split: str, tmp_path: Path
) -> None:
    with pytest.raises(
        ValueError, match=f"{split} split must not be stored as '{name}'"
    ):
        write_logits(tmp_path / "file", {name: Logits(split, VALUES, LABELS)})  # type: ignore[arg-type]


def test_test_logits_may_be_scaled_and_reported_but_not_fitted() -> None:
    test = Logits("test", VALUES, LABELS).divided_by(2.0).double()
    assert torch.equal(test.for_evaluation()[0], VALUES.double() / 2)
    with pytest.raises(LeakError, match="a fit must not use the test split"):
        test.for_fitting()
    with pytest.raises(
        ValueError, match="of an out-of-distribution set have no labels"
    ):
        Logits("validation", VALUES).for_fitting()

"""What is shipped is what is scored; inside the fitted range the heuristic leads, outside it the constant."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from softmax_temperature.dataset_statistics import STATISTICS, describe
from softmax_temperature.heuristic.ridge import RidgeHeuristic, fit_shipped, score_rules, shipped
from softmax_temperature.runner.errors import InputError
from softmax_temperature.tools.suggest import checked_rows, search_best, suggest_temperature
from softmax_temperature.tools.suggest_data import BackboneChoice, rows_of_files, rows_of_images


@pytest.fixture(scope="module")
def study(project_root: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    folder = project_root / "results" / "collection" / "classifier_temperature"
    return pd.read_csv(folder / "tables" / "pairs.csv"), pd.read_csv(folder / "runs.csv")


def clustered(rows: int = 120, dim: int = 16, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(rows) % 4
    centres = torch.randn(4, dim, generator=generator)
    return centres[labels] + torch.randn(rows, dim, generator=generator), labels


def test_the_shipped_heuristic_is_the_fit_of_the_committed_study(study: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    fitted, ours = fit_shipped(*study), shipped()
    assert (ours.penalty, ours.constant, ours.datasets) == (fitted.penalty, fitted.constant, fitted.datasets)
    for _, row in study[0].iterrows():
        statistics = row[list(STATISTICS)].astype(float).to_dict()
        assert ours.predict(statistics).predicted == pytest.approx(fitted.predict(statistics).predicted, rel=1e-9)
    for rule, lost in fitted.lost.items():
        assert ours.lost[rule] == pytest.approx(lost, abs=1e-9), rule


def test_the_heuristic_loses_less_than_every_other_rule_on_left_out_data_sets(
    study: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    lost = score_rules(*study).groupby("rule")["lost"].mean()
    assert lost["heuristic"] <= 0.0075
    assert lost.idxmin() == "heuristic"


def test_a_left_out_data_set_does_not_reach_its_own_prediction(study: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    pairs, accuracies = study
    some = pairs[pairs["dataset"].isin(["digits", "caltech101", "mnist", "dtd10"])].reset_index(drop=True)
    poisoned = some.copy()
    own = poisoned["dataset"] == "digits"
    poisoned.loc[own, "inverse_temperature"] = 250.0
    before, after = (score_rules(one, accuracies) for one in (some, poisoned))
    rows = (before["rule"] == "heuristic") & (before["dataset"] == "digits")
    assert rows.any()
    assert (before.loc[rows, "inverse_temperature"] == after.loc[rows, "inverse_temperature"]).all()


def test_inside_the_range_the_prediction_leads(study: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    row = study[0].iloc[0]
    estimate = shipped().predict(row[list(STATISTICS)].astype(float).to_dict())
    assert estimate.inside
    assert estimate.inverse_temperature == estimate.predicted


def test_outside_the_range_the_constant_leads() -> None:
    found = suggest_temperature(*clustered())
    assert not found.inside  # The study has no embeddings of 16 dimensions.
    assert "dim" in found.outside
    assert found.inverse_temperature == shipped().constant
    assert found.expected_loss == shipped().lost["best constant"][0]
    assert "outside the fitted range" in str(found).splitlines()[0]


def test_a_heuristic_survives_its_json() -> None:
    ours = shipped()
    assert RidgeHeuristic.model_validate_json(ours.model_dump_json()) == ours


def test_labels_of_any_numbers_are_classes() -> None:
    embeddings, labels = clustered()
    plain, odd = checked_rows(embeddings, labels), checked_rows(embeddings.numpy(), 10 * labels.numpy() + 3)
    assert torch.equal(plain[1], odd[1])
    assert describe(*plain) == describe(*odd)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ((torch.ones(4), torch.arange(4)), "floats of shape"),
        ((torch.zeros(4, 2), torch.tensor([0, 0, 1, 1])), "all zero"),
        ((torch.ones(4, 2), torch.zeros(4)), "1 classes in 4 rows"),
        ((torch.ones(4, 2), torch.arange(4)), "4 classes in 4 rows"),
        ((torch.ones(4, 2), torch.tensor([0.5, 0, 1, 1])), "whole numbers"),
    ],
)
def test_rows_that_say_nothing_are_refused(rows: tuple[torch.Tensor, torch.Tensor], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        suggest_temperature(*rows)


def test_a_search_trains_the_rules_beside_the_grid() -> None:
    rows = checked_rows(*clustered())
    found = search_best(rows, None, {"mine": 12.5}, epochs=3, lr=1.0, seed=0, device="cpu")
    assert found["test_rows"] == 32  # A quarter of the 30 rows of each class, rounded.
    assert found["rules"]["mine"]["accuracy_lost"] == found["best_accuracy"] - found["rules"]["mine"]["accuracy"]


def test_files_may_bring_their_own_test_rows(tmp_path: Path) -> None:
    (embeddings, labels), (held, held_labels) = clustered(), clustered(20, seed=1)
    arrays = {"embeddings": embeddings, "labels": labels, "test_embeddings": held, "test_labels": held_labels}
    np.savez(tmp_path / "e.npz", **{name: one.numpy() for name, one in arrays.items()})
    train, test = rows_of_files(tmp_path / "e.npz")
    assert test is not None
    assert (len(train[1]), len(test[1])) == (120, 20)
    with pytest.raises(InputError, match="test_embeddings of its own"):
        rows_of_files(tmp_path / "e.npz", test=tmp_path / "e.npz")


def test_a_folder_of_images_goes_through_the_backbone(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (tmp_path / "pets" / name).mkdir(parents=True)
        for number in range(3):
            pixels = generator.integers(0, 255, (40, 40, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "pets" / name / f"{number}.png")
    params = tmp_path / "params.yaml"
    choice = BackboneChoice("timm/resnet10t", None, False, params)
    with pytest.raises(InputError, match=r"model\.safetensors"):  # Its weights are not on this machine.
        rows_of_images(tmp_path / "pets", choice, limit=None, seed=0, device="cpu")
    with pytest.raises(InputError, match="unknown network"):
        rows_of_images(
            tmp_path / "pets", BackboneChoice("resnett", None, False, params), limit=None, seed=0, device="cpu"
        )

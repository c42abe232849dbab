"""Stage focal-linear: the cells it declares, what they write, and the paper's finding on them."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from softmax_temperature.params.focal import Linear
from softmax_temperature.runner.artifacts import digest_of_file
from softmax_temperature.runner.cells import Job
from softmax_temperature.stages import focal_linear

GAMMAS = {"CE": 0.0, "FL-1": 1.0, "FL-3": 3.0}


def params(**changes: Any) -> Any:
    section = {"gammas": GAMMAS, "train": 400, "test": 200, "epochs": 150, "lr": 0.3, "seeds": 2} | changes
    return SimpleNamespace(seed=5, focal=SimpleNamespace(linear=Linear.model_validate(section)))


def run(cell: Any, folder: Path) -> dict[str, torch.Tensor]:
    folder.mkdir(parents=True)
    cell.run(Job(0, {}, folder, folder, "cpu", 0), cell.plan)
    return load_file(folder / focal_linear.TENSORS)


def test_there_is_a_cell_for_each_loss_and_seed_and_losses_share_the_data_of_a_seed() -> None:
    cells = {cell.name: cell for cell in focal_linear.cells(params())}
    assert list(cells) == [f"{name}/{seed}" for name in GAMMAS for seed in (0, 1)]
    seeds = {name: cell.parameters["data_seed"] for name, cell in cells.items()}
    assert seeds["CE/0"] == seeds["FL-1/0"] == seeds["FL-3/0"] != seeds["CE/1"]
    assert cells["FL-3/1"].parameters["gamma"] == 3
    # More seeds and losses change no cell that was there.
    more = {cell.name: cell for cell in focal_linear.cells(params(seeds=3, gammas=GAMMAS | {"FL-2": 2.0}))}
    assert {name: more[name].parameters for name in cells} == {name: cell.parameters for name, cell in cells.items()}


def test_two_runs_of_a_cell_write_equal_bytes(tmp_path: Path) -> None:
    cell = focal_linear.cells(params())[2]
    for name in ("a", "b"):
        run(cell, tmp_path / name)
    first, second = ({path.name: digest_of_file(path) for path in (tmp_path / name).iterdir()} for name in ("a", "b"))
    assert set(first) == {"linear.safetensors", "record.json"}
    assert first == second


def test_a_cell_writes_what_it_trained_and_focal_loss_errs_less_confidently_on_the_same_line(tmp_path: Path) -> None:
    cells = focal_linear.cells(params())
    written = {cell.name: run(cell, tmp_path / cell.name) for cell in cells if cell.name.endswith("/0")}
    for tensors in written.values():
        assert tensors["weight_norm"].shape == tensors["logit_norm"].shape == (150,)
        assert tensors["weight_norm"][-1].item() == pytest.approx(tensors["weights"].norm().item())
        scores = tensors["test_points"] @ tensors["weights"]
        assert tensors["logit_norm"][-1].item() == pytest.approx(scores.abs().mean().item())
        wrong = (scores > 0).long() != tensors["test_labels"]
        expected = torch.sigmoid(scores[wrong].abs())
        torch.testing.assert_close(tensors["misclassified_confidence"], expected)
    plain, one, three = (written[f"{name}/0"] for name in GAMMAS)
    for column in ("weight_norm", "logit_norm"):
        assert plain[column][-1] > 1.5 * one[column][-1] > 2 * three[column][-1]
    means = [tensors["misclassified_confidence"].mean().item() for tensors in (plain, one, three)]
    assert means == sorted(means, reverse=True)
    directions = [tensors["weights"] / tensors["weights"].norm() for tensors in (plain, one, three)]
    assert min((directions[0] @ other).item() for other in directions[1:]) > 0.99

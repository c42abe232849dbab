"""Stage confirm_temperature_check: the rate of the highest mean validation accuracy, of equal ones the lowest."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from softmax_temperature.params import read_params
from softmax_temperature.params.temperature_check import Training
from softmax_temperature.stages import confirm_temperature_check, train_temperature_check

ROOT = Path(__file__).parents[2]


def training(right: int | None) -> Any:
    """The artifact of a training with so many of four validation samples right; None diverged."""
    logits = torch.eye(2)[[0] * (right or 0) + [1] * (4 - (right or 0))]
    tensors = {"validation.logits": logits, "validation.labels": torch.zeros(4, dtype=torch.int64)}
    record = {"diverged": right is None, "classes": 2}
    return SimpleNamespace(json=lambda _: record, tensors=lambda _: tensors)


@pytest.mark.parametrize(
    ("found", "best"),
    [
        ({"0.1/0": 3, "0.1/1": 1, "1/0": 4, "1/1": 2, "10/0": 4, "10/1": None}, 1.0),
        ({"1/0": 2, "0.1/0": 2, "10/0": None}, 0.1),  # Guessing is as good as diverging.
    ],
)
def test_the_rate_is_chosen_and_rescaled(
    found: dict[str, int | None], best: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[train_temperature_check.SweepCell] = []
    monkeypatch.setattr(train_temperature_check, "run", lambda _, plan: given.append(plan))
    params = read_params(ROOT / "params.yaml")
    plan = train_temperature_check.plan_of(params, Training("wrn", 0.1, 1.0, "plain", 7))
    inputs = {"data": None} | {name: training(right) for name, right in found.items()}
    job: Any = SimpleNamespace(inputs=inputs, output=tmp_path)
    rates = {"10": 10.0, "0.1": 0.1, "1": 1.0}
    confirm_temperature_check.run(job, confirm_temperature_check.ConfirmationCell(rates=rates, plan=plan))
    assert json.loads((tmp_path / "choice.json").read_text()) == {"learning_rate": best}
    assert given[0].recipe.lr == pytest.approx(best / 0.1**2)
    assert given[0].model_dump(exclude={"recipe"}) == plan.model_dump(exclude={"recipe"})

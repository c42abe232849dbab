"""All stages of temperature_check, from raw data to results, with tiny parameters."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from softmax_temperature.papers.shared.factors import where
from softmax_temperature.papers.temperature_check import collect
from softmax_temperature.papers.temperature_check.study import (
    ACCURACY_OF_FINISHED,
    NLL,
    TRAINING,
    numbers,
    read,
)
from softmax_temperature.params import Params
from softmax_temperature.params.temperature_check import Training
from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.stages.temperature_check import (
    CHOICE,
    confirm_temperature_check,
    train_temperature_check,
)
from tests.pipeline.whole_runs import (
    VERDICTS,
    WholePaper,
    changed,
    collect_without_claims,
    digests,
    fitted,
    run,
    run_paper,
    stored,
    with_other_test_data,
)

PAPER = collect
RESULTS = Path("results/tiny/temperature_check")
pytestmark = pytest.mark.usefixtures("in_project")


class TestResults(WholePaper):
    pass


def of(name: str, *training: Any) -> Any:
    return stored(train_temperature_check, Training(*training).cell, name)


@pytest.mark.slow
def test_trainings_side_by_side_give_the_bytes_of_one_at_a_time(
    project: Path,
    make_project: Callable[[str], Path],
    tiny: Params,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    second = make_project("second")
    monkeypatch.chdir(second)
    assert tiny.compute.engine == "serial"
    run_paper(changed(tiny, {"compute/": {"engine": "processes", "workers": 2}}), PAPER)
    first = digests(project, "data/temperature_check", "results")
    assert len(first) > 50
    assert digests(second, "data/temperature_check", "results") == first


def test_trainings_start_with_the_norm_that_was_asked_for() -> None:
    def norm(*training: Any) -> float:
        return float(of("record", *training, 0)["initial_logit_norm"])

    assert norm("wrn", 1.0, 0.1, "plain") == pytest.approx(
        10 * norm("wrn", 0.1, 0.1, "plain"), rel=1e-5
    )
    assert (
        norm("wrn-pairs", 1.0, 0.1, "pair-0")
        > norm("wrn-pairs", 1.0, 0.1, "pair-1")
        == 0
    )
    # The initial logits have norm 20 at every inverse temperature.
    assert [
        norm("wrn-norms", beta, 0.1, "norm-20") for beta in (0.1, 1.0)
    ] == pytest.approx([20, 20], rel=1e-4)


def test_a_confirmation_is_a_fresh_seed_at_a_rate_that_was_tried() -> None:
    rows = read(RESULTS).select(where(sweep="wrn-norms", inverse_temperature=1.0))
    tried = rows[rows["role"] == "tuning"]
    (_, confirmation), *others = rows[rows["role"] == "confirmation"].iterrows()
    assert not others
    assert (confirmation["seed"], set(tried["seed"])) == (1, {0})
    folder = confirm_temperature_check.output / "wrn-norms/1/norm-20/1"
    choice = open_artifact(folder).json("choice.json")
    assert choice == {"learning_rate": confirmation["learning_rate"]}
    assert confirmation["learning_rate"] in set(tried["learning_rate"])
    assert (
        confirmation["cell"] == "temperature_check/confirmation/wrn-norms/1/norm-20/1"
    )


def test_history_describes_tempered_logits() -> None:
    names = ("gru", 0.1, 0.1, "plain", 0)
    cell = train_temperature_check.output / Training(*names).cell
    tensors = open_artifact(cell).tensors("logits.safetensors")
    logits = 0.1 * tensors["test.logits"].double()
    nll = torch.nn.functional.cross_entropy(logits, tensors["test.labels"]).item()
    history = [row for row in of("history", *names) if row["split"] == "test"]
    runs = read(RESULTS)
    rows = runs.select(where(sweep="gru", inverse_temperature=0.1, seed=0))
    assert history[-1]["nll"] == pytest.approx(nll)
    assert NLL.of(runs, rows).iloc[0] == pytest.approx(nll)


def test_runs_have_what_their_cells_say() -> None:
    runs = read(RESULTS)
    rows = numbers(runs, where(sweep="wrn", inverse_temperature=1.0, seed=0))
    cooled = rows[rows["mode"] == "last_layer"].iloc[0]
    names = ("wrn", 1.0, cooled["learning_rate"], "cooled", 0)
    total = of("temperatures", *names)[-1]["total"]
    # Numbers in tables are rounded to six digits.
    assert cooled["cooled_temperature"] == pytest.approx(total, rel=1e-5)
    assert cooled["initial_logit_norm"] == pytest.approx(
        of("record", *names)["initial_logit_norm"], rel=1e-5
    )
    assert pd.isna(cooled["heuristic"])
    plain = rows[rows["mode"] == "none"]
    assert plain["heuristic"].notna().all()
    assert plain[["scaled_nll", "scaled_ece", "confidence"]].notna().all(axis=None)


def test_only_the_usual_softmax_is_described_and_only_cooling_has_temperatures() -> (
    None
):
    plain, cooled = ("wrn", 1.0, 0.1, "plain", 0), ("wrn", 1.0, 0.1, "cooled", 0)
    assert (
        of("statistics", "wrn", 0.1, 0.1, "plain", 0)
        is of("statistics", *cooled)
        is None
    )
    statistics = of("statistics", *plain)
    assert statistics["dim"] == 64
    assert all(np.isfinite(value) for value in statistics.values())
    assert (len(of("temperatures", *cooled)), of("temperatures", *plain)) == (2, [])


def test_no_fitted_number_moves_with_the_test_data(
    project: Path, tiny: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cooled = Training("wrn", 1.0, 0.1, "cooled", 0).cell
    tried = [Training("wrn-norms", 1.0, at, "norm-20", 0).cell for at in (1e-4, 0.1)]
    confirmed = "wrn-norms/1/norm-20/1"
    files = ("logits.safetensors", "history.json", "record.json", "temperatures.json")
    before = [
        fitted(train_temperature_check, cell, *files) for cell in (cooled, *tried)
    ]
    choices = [fitted(confirm_temperature_check, confirmed, *files, CHOICE)]
    scores = of("history", "wrn", 1.0, 0.1, "cooled", 0)
    monkeypatch.chdir(with_other_test_data(project, tmp_path))
    run(tiny, train_temperature_check, [cooled, *tried])
    run(tiny, confirm_temperature_check, [confirmed])
    after = [fitted(train_temperature_check, cell, *files) for cell in (cooled, *tried)]
    choices.append(fitted(confirm_temperature_check, confirmed, *files, CHOICE))
    assert before == after
    assert choices[0] == choices[1]
    assert scores != of("history", "wrn", 1.0, 0.1, "cooled", 0)


def test_no_post_hoc_temperature_moves_with_the_test_data(
    project: Path, tiny: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweeps = tiny.model_dump()["temperature_check"]["sweeps"]
    changes = {"sweeps": {"gru": sweeps["gru"]}, "early_learning": None}
    one = changed(tiny, {"temperature_check/": changes})
    shutil.copytree(project / "data" / "published", tmp_path / "data" / "published")
    before = numbers(read(RESULTS), where(sweep="gru"))
    monkeypatch.chdir(with_other_test_data(project, tmp_path))
    run(one, train_temperature_check)
    collect_without_claims(one, PAPER)
    after = numbers(read(RESULTS), where(sweep="gru"))
    columns = ["inverse_temperature", "seed", "temperature", "validation_accuracy"]
    assert after[columns].to_dict("list") == before[columns].to_dict("list")
    assert after["test_nll"].tolist() != before["test_nll"].tolist()


def test_a_training_that_diverges_is_a_result(
    tiny: Params, make_project: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    hot = tiny.model_dump()["temperature_check"]["sweeps"]["wrn"] | {
        "learning_rates": [1e30],
        "cooled": False,
    }
    monkeypatch.chdir(make_project("hot"))
    changes = {
        "temperature_check/": {
            "sweeps": {"wrn": hot},
            "early_learning": None,
            "seeds": 1,
        }
    }
    run_paper(changed(tiny, changes), PAPER)
    runs = read(RESULTS)
    rows = runs.select(TRAINING)
    assert rows["diverged"].all()
    assert ACCURACY_OF_FINISHED.of(runs, rows).isna().all()
    claims = json.loads((RESULTS / "claims.json").read_text())
    assert {row["verdict"] for row in claims} <= VERDICTS

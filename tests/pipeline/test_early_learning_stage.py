"""The stage early_learning, from prepared digits to its tables, on the smallest parameters."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from softmax_temperature.early_learning.flows import FIT, LEARNED, TENTH, UNIT, WHOLE
from softmax_temperature.papers.temperature_check.early_learning import early_tables
from softmax_temperature.params import Params, validate
from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.runner.cells import CellsFailed
from softmax_temperature.runner.errors import InputError
from softmax_temperature.stages import early_learning
from softmax_temperature.stages.early_learning import OUTPUT
from tests.pipeline.whole_runs import finish, prepare, run_stages

IMAGES, CLASSES = 12, 10
NETWORKS = {
    "mlp": {"architecture": "mlp", "arguments": {"widths": [8], "image_size": 8}},
    "wrn": {"architecture": "wide_resnet", "arguments": {"depth": 8, "width": 1, "batch_norm": False}},
    "normalised": {"architecture": "wide_resnet", "arguments": {"depth": 8, "width": 1}},
}
SECTION: dict[str, Any] = {
    "dataset": "digits",
    "images": IMAGES,
    "networks": {"mlp": 2},
    "probes": None,
    "chunk": 5,
    "tolerance": 1e-5,
    "evaluations": 3000,
    "curves": {"inverse_temperatures": [1.0, 100.0, 1000.0], "first": 0.1, "last": 10.0, "points": 4, "stride": 3},
    "norms": {"inverse_temperature": 1000.0, "logit_norms": [0.1, 10.0, 1000.0], "horizon": 100.0},
}
EVENTS = {UNIT, TENTH, WHOLE, FIT, LEARNED}

Edited = Callable[..., Params]


@pytest.fixture(scope="module")
def edited(tiny: Params) -> Edited:
    """Parameters with a section of early learning; its parts are replaced by name."""

    def edit(*, leave_out: bool = False, **changes: Any) -> Params:
        content = tiny.model_dump()
        content["networks"] |= NETWORKS
        content["temperature_check"]["early_learning"] = None if leave_out else SECTION | changes
        return validate(content, where="edited")

    return edit


@pytest.fixture(scope="module")
def params(edited: Edited) -> Params:
    return edited()


def run(params: Params) -> None:
    prepare(params, ["digits"])
    run_stages(params, (early_learning,))


@pytest.fixture(scope="module")
def project(make_project: Callable[[str], Path], params: Params) -> Path:
    return finish(make_project("early"), run, params)


@pytest.fixture(autouse=True)
def _in_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)


def read(cell: str, name: str) -> Any:
    return open_artifact(OUTPUT / cell).json(f"{name}.json")


def test_records_tell_the_problem_and_both_questions_have_the_same_one() -> None:
    records = {name: read(f"mlp/{name}", "record") for name in ("curves/0", "curves/1", "norms/0", "norms/1")}
    rate = records["curves/0"].pop("drift_rate")
    assert rate > 0
    own = records["norms/0"].pop("inverse_temperature")
    assert own == 1000.0
    assert records["curves/0"] == pytest.approx(records["norms/0"])
    assert records["curves/0"]["kernel_norm"] != records["curves/1"]["kernel_norm"]
    expected = {
        "parameters": 193 * 8 + 9 * CLASSES,
        "smooth": True,
        "images": IMAGES,
        "classes": CLASSES,
        "kernel_norm_error": 0.0,
    }
    assert expected.items() <= records["curves/0"].items()
    assert records["curves/0"].keys() == expected.keys() | {"kernel_norm", "unit_time"}


def test_courses_have_a_row_for_each_time_and_event() -> None:
    courses, record = read("mlp/curves/0", "courses"), read("mlp/curves/0", "record")
    assert [course["inverse_temperature"] for course in courses] == [None, 1.0, 100.0, 1000.0]
    for course in courses:
        linear = course["inverse_temperature"] is None
        assert course["ending"] in {"complete", "horizon"}
        timed = [row for row in course["rows"] if row["moment"] == "time"]
        wanted = [0.1, 0.1 * 100 ** (1 / 3), 0.1 * 100 ** (2 / 3), 10.0]
        assert [row["time"] / record["unit_time"] for row in timed] == pytest.approx(wanted[: len(timed)])
        assert [row["distance"] is None for row in timed] == [linear] * len(timed)
        # The kernel is computed at every third time, and at each event.
        assert [row["drift"] is None for row in timed] == [linear, True, True, linear][: len(timed)]
        events = {row["moment"]: row["drift"] is None for row in course["rows"] if row["moment"] != "time"}
        assert events[UNIT] == linear
    first = courses[1]["rows"][0]
    # Logits start at 0: the loss is that of guessing, less what a tenth of a unit of change can do.
    assert math.log(CLASSES) - 0.1 < first["loss"] < math.log(CLASSES)
    assert first["change"] == pytest.approx(0.1, rel=0.05)


def test_starts_have_the_norms_that_were_asked_for() -> None:
    starts = read("mlp/norms/0", "starts")
    assert [start["wanted_norm"] for start in starts] == [0.1, 10.0, 1000.0]
    assert [start["logit_norm"] for start in starts] == pytest.approx([0.1, 10.0, 1000.0], rel=1e-4)
    correlations = [start["correlation"] for start in starts]
    assert 1 > correlations[0] > correlations[1] > correlations[2] > 0
    for start in starts:
        assert start["logit_time"] / start["unit_time"] == pytest.approx(start["logit_norm"])
        for dynamics in ("real", "linearised"):
            assert start[dynamics].keys() <= {"ending", "evaluations"} | EVENTS
            assert {UNIT, TENTH, FIT} <= start[dynamics].keys()
        assert start["real"][FIT] == pytest.approx(start["linearised"][FIT], rel=0.02)
    # The start of the curves is the limit of small logits.
    assert starts[0]["unit_time"] == pytest.approx(read("mlp/curves/0", "record")["unit_time"], rel=0.01)


def test_tables_are_what_the_stage_measured(params: Params) -> None:
    tables = early_tables(params)
    curves, norms = tables["early_curves"], tables["early_norms"]
    stored = [row for seed in (0, 1) for course in read(f"mlp/curves/{seed}", "courses") for row in course["rows"]]
    assert curves[["moment", "time", "loss", "change"]].to_dict("records") == [
        {name: row[name] for name in ("moment", "time", "loss", "change")} for row in stored
    ]
    assert curves["inverse_temperature"].isna().sum() == sum(
        len(read(f"mlp/curves/{seed}", "courses")[0]["rows"]) for seed in (0, 1)
    )
    assert len(norms) == 2 * 3 * 2
    first = read("mlp/norms/1", "starts")[2]["linearised"]
    row = norms[(norms["seed"] == 1) & (norms["wanted_norm"] == 1000) & (norms["dynamics"] == "linearised")].iloc[0]
    assert (row[FIT], row[TENTH], row["ending"]) == (first[FIT], first[TENTH], first["ending"])
    assert set(norms["inverse_temperature"]) == {1000.0}


def test_batch_normalisation_is_refused_before_anything_runs(edited: Edited) -> None:
    with pytest.raises(InputError, match=r"networks: normalised: .*batch normalisation, got BatchNorm2d.*one without"):
        early_learning.cells(edited(networks={"normalised": 1}))


def test_a_norm_that_cannot_be_reached_is_named_with_the_range(edited: Edited) -> None:
    params = edited(norms=SECTION["norms"] | {"logit_norms": [1.0, 1e9]}, networks={"mlp": 1})
    with pytest.raises(CellsFailed) as failed:
        run(params)
    assert list(failed.value.failures) == ["mlp/norms/0"]
    line = failed.value.failures["mlp/norms/0"]
    assert "logit_norm must be in [0, " in line
    assert "Lower the norms, or raise the inverse temperature." in line
    assert "trace" not in line  # An error of the user's, told in one line.

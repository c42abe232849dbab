"""The `early_learning` stage, from prepared digits to its tables."""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from softmax_temperature.early_learning.flows import FIT, TENTH, UNIT
from softmax_temperature.heuristic.ridge import shipped
from softmax_temperature.papers.shared.collecting import DeclaredRun, gather
from softmax_temperature.papers.shared.runs import Runs
from softmax_temperature.papers.temperature_check.collect import (
    MEASURED_COLUMNS,
    declared_runs,
    read_run,
)
from softmax_temperature.papers.temperature_check.study import (
    FROM_ZERO,
    tidied,
    time_to,
)
from softmax_temperature.params import Params
from softmax_temperature.runner.cells import CellsFailed
from softmax_temperature.runner.errors import InputError
from softmax_temperature.stages.early_learning import early_learning
from softmax_temperature.stages.fetch import fetch
from tests.pipeline.whole_runs import (
    changed,
    finish,
    fitted,
    run,
    stored,
    with_other_test_data,
)

IMAGES, CLASSES = 12, 10
SECTION: dict[str, Any] = {
    "dataset": "digits",
    "images": IMAGES,
    "networks": {"mlp": 2},
    "probes": None,
    "chunk": 5,
    "tolerance": 1e-5,
    "evaluations": 3000,
    "curves": {
        "inverse_temperatures": [1.0, 100.0, 1000.0],
        "first": 0.1,
        "last": 10.0,
        "points": 4,
        "stride": 3,
    },
    "norms": {
        "inverse_temperature": 1000.0,
        "logit_norms": [0.1, 10.0, 1000.0],
        "horizon": 100.0,
    },
}
pytestmark = pytest.mark.usefixtures("in_project")


def edited(tiny: Params, **changes: Any) -> Params:
    """`tiny` with two more networks, and with SECTION as updated by `changes`."""
    mlp = {"architecture": "mlp", "arguments": {"widths": [8], "image_size": 8}}
    normalised = {"architecture": "wide_resnet", "arguments": {"depth": 8, "width": 1}}
    networks = {"mlp": mlp, "normalised": normalised}
    return changed(
        tiny,
        {"networks/": networks, "temperature_check/early_learning": SECTION | changes},
    )


@pytest.fixture(scope="module")
def project(make_project: Callable[[str], Path], tiny: Params) -> Path:
    params = edited(tiny)
    return finish(
        make_project("early"),
        lambda: (run(params, fetch, ["digits"]), run(params, early_learning)),
    )


def test_both_questions_have_the_same_problem_and_each_seed_has_its_own() -> None:
    first, second, norms = (
        stored(early_learning, f"mlp/{name}", "record")
        for name in ("curves/0", "curves/1", "norms/0")
    )
    assert first.pop("drift_rate") > 0
    assert norms.pop("inverse_temperature") == 1000.0
    assert first == pytest.approx(norms)
    assert first["kernel_norm"] != second["kernel_norm"]
    sizes = {
        "parameters": 193 * 8 + 9 * CLASSES,
        "smooth": True,
        "images": IMAGES,
        "classes": CLASSES,
    }
    assert (sizes | {"kernel_norm_error": 0.0}).items() <= first.items()


def test_no_course_moves_with_the_test_data(
    project: Path, tiny: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = "mlp/curves/0"
    expected = fitted(early_learning, cell, "record.json", "courses.json")
    monkeypatch.chdir(with_other_test_data(project, tmp_path))
    run(edited(tiny), early_learning, [cell])
    assert fitted(early_learning, cell, "record.json", "courses.json") == expected


def test_courses_have_a_row_for_each_time_and_event() -> None:
    courses, record = (
        stored(early_learning, "mlp/curves/0", name) for name in ("courses", "record")
    )
    assert [course["inverse_temperature"] for course in courses] == [
        None,
        1.0,
        100.0,
        1000.0,
    ]
    for course in courses:
        linear = course["inverse_temperature"] is None
        assert course["ending"] in {"complete", "horizon"}
        timed = [row for row in course["rows"] if row["moment"] == "time"]
        wanted = [0.1, 0.1 * 100 ** (1 / 3), 0.1 * 100 ** (2 / 3), 10.0]
        assert [row["time"] / record["unit_time"] for row in timed] == pytest.approx(
            wanted[: len(timed)]
        )
        assert [row["distance"] is None for row in timed] == [linear] * len(timed)
        # The kernel's drift is computed at every third observed time and at each event.
        assert [row["drift"] is None for row in timed] == [linear, True, True, linear][
            : len(timed)
        ]
        assert [
            row["drift"] is None for row in course["rows"] if row["moment"] == UNIT
        ] == [linear]
    first = courses[1]["rows"][0]
    # In the first row the logits, which started at 0, have changed by only 0.1, so the
    # loss is still close to that at chance level.
    assert math.log(CLASSES) - 0.1 < first["loss"] < math.log(CLASSES)
    assert first["change"] == pytest.approx(0.1, rel=0.05)


def test_starts_have_the_norms_that_were_asked_for() -> None:
    starts = stored(early_learning, "mlp/norms/0", "starts")
    assert [start["wanted_norm"] for start in starts] == [0.1, 10.0, 1000.0]
    assert [start["logit_norm"] for start in starts] == pytest.approx(
        [0.1, 10.0, 1000.0], rel=1e-4
    )
    assert (
        1
        > starts[0]["correlation"]
        > starts[1]["correlation"]
        > starts[2]["correlation"]
        > 0
    )
    for start in starts:
        assert start["logit_time"] / start["unit_time"] == pytest.approx(
            start["logit_norm"]
        )
        assert start["real"][FIT] == pytest.approx(start["linearised"][FIT], rel=0.02)
    # The curves start from logits of 0, the limit of small logits.
    unit = stored(early_learning, "mlp/curves/0", "record")["unit_time"]
    assert starts[0]["unit_time"] == pytest.approx(unit, rel=0.01)


def gathered(params: Params) -> Runs:
    """A study that consists of the runs of this stage."""
    runs: list[DeclaredRun] = [
        run for run in declared_runs(params) if run.stage is early_learning
    ]
    read = partial(read_run, heuristic=shipped())
    return tidied(gather(Path("nothing"), runs, read, tables=MEASURED_COLUMNS))


def test_courses_from_zero_are_those_that_the_stage_measured(tiny: Params) -> None:
    runs = gathered(edited(tiny))
    measured = [
        course
        for seed in (0, 1)
        for course in stored(early_learning, f"mlp/curves/{seed}", "courses")
    ]
    names = ["moment", "time", "loss", "change"]
    assert runs.tables["courses"][names].to_dict("records") == [
        {name: row[name] for name in names}
        for course in measured
        for row in course["rows"]
    ]
    table = runs.table[runs.table["start"] == "zero"]
    values = table["inverse_temperature"].astype(object)
    assert values.where(values.notna(), None).tolist() == [
        course["inverse_temperature"] for course in measured
    ]
    assert set(table["dynamics"][values.isna()]) == {"linearised"}
    unit = time_to(UNIT).of(runs, runs.select(FROM_ZERO)).iloc[0]
    (row,) = [row for row in measured[1]["rows"] if row["moment"] == UNIT]
    assert unit == row["time"]


def test_courses_from_a_norm_have_the_times_of_their_events(tiny: Params) -> None:
    runs = gathered(edited(tiny))
    table = runs.table[runs.table["start"] == "norm"]
    assert len(table) == 2 * 3 * 2
    start = stored(early_learning, "mlp/norms/1", "starts")[2]
    course = table.query(
        "seed == 1 and start_norm == 1000 and dynamics == 'linearised'"
    )
    for event in (FIT, TENTH):
        time = time_to(event).of(runs, course).iloc[0]
        assert time == start["linearised"][event]
    row = course.iloc[0]
    assert row["ending"] == start["linearised"]["ending"]
    assert row["initial_logit_norm"] == start["logit_norm"]
    assert row["unit_time"] == start["unit_time"]


def test_batch_normalisation_is_refused_before_anything_runs(tiny: Params) -> None:
    message = "normalised: .*batch normalisation, .*, got BatchNorm2d.*network without"
    with pytest.raises(InputError, match=message):
        early_learning.cells(edited(tiny, networks={"normalised": 1}))


def test_a_norm_that_cannot_be_reached_is_named_with_the_range(tiny: Params) -> None:
    far = edited(
        tiny, norms=SECTION["norms"] | {"logit_norms": [1.0, 1e9]}, networks={"mlp": 1}
    )
    with pytest.raises(CellsFailed) as failed:
        run(far, early_learning, ["mlp/norms/0"])
    assert list(failed.value.failures) == ["mlp/norms/0"]
    line = failed.value.failures["mlp/norms/0"]
    assert "logit_norm must be in [0, " in line
    assert "Lower logit_norms, or raise the inverse temperature." in line
    assert "trace" not in line  # Users see no traceback.

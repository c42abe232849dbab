"""Verdicts are right near a bound, for several parts, and for values of several tasks.

A verdict names the parts of its claim that were not run.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from softmax_temperature.papers.shared.claims import (
    CONTRADICTED,
    HOLDS,
    INCONCLUSIVE,
    NOT_TESTED,
    Claim,
    Criterion,
    above,
    at_level,
    below,
    claims_table,
    equivalent,
    judge_all,
    most,
    not_worse,
    task_count,
    texts,
)
from softmax_temperature.papers.shared.contrasts import (
    Computed,
    Measurement,
    Parts,
    not_tested,
)
from softmax_temperature.papers.shared.records import claims_of
from softmax_temperature.papers.shared.results import PAPERS, read_json
from softmax_temperature.papers.shared.statistics import (
    Drawn,
    Fitted,
    OverTasks,
    Quantity,
    Share,
    Task,
)

AROUND = np.array([-0.1, 0.0, 0.1])
"""Values with standard deviation 0.1.

The half width of their interval is t(0.95, 2) * 0.1 / sqrt(3) = 0.1686.
"""


def seeds(*centers: float, own: bool = True) -> OverTasks:
    return OverTasks(
        tuple(
            Task(f"task at {center:g}", tuple((center + AROUND).tolist()), own)
            for center in centers
        )
    )


def claim(criterion: Criterion, found: Measurement) -> Claim:
    return Claim(
        id="a",
        where="Table 1",
        statement="A beats B.",
        compares="A minus B.",
        contrast=Computed(lambda _: found),
        criterion=criterion,
        published=0.5,
        primary="paper",
    )


def judged(
    criterion: Criterion, *parts: Quantity, profile: str = "paper", **missing: str
) -> dict[str, Any]:
    found = Measurement(
        {f"part {number}": part for number, part in enumerate(parts)},
        "accuracy",
        missing=missing,
    )
    (row,) = judge_all("focal", (claim(criterion, found),), 0, profile=profile)
    return row


@pytest.mark.parametrize(
    ("criterion", "parts", "verdict"),
    [
        (above(0.3), [seeds(0.5)], HOLDS),
        (above(0.3), [seeds(0.4)], INCONCLUSIVE),
        (above(0.3), [seeds(0.3)], INCONCLUSIVE),
        (above(0.3), [seeds(0.1)], CONTRADICTED),
        (below(0.3), [seeds(0.1)], HOLDS),
        (below(0.3), [seeds(0.5)], CONTRADICTED),
        (not_worse(0.2), [seeds(0.0)], HOLDS),
        (not_worse(0.2), [seeds(-0.1)], INCONCLUSIVE),
        (not_worse(0.2), [seeds(-0.4)], CONTRADICTED),
        (equivalent(0.2), [seeds(0.01)], HOLDS),
        (equivalent(0.2), [seeds(0.1)], INCONCLUSIVE),
        (
            equivalent(0.1),
            [seeds(0.0)],
            INCONCLUSIVE,
        ),  # This interval exceeds the region on both sides.
        (equivalent(0.2), [seeds(-0.5)], CONTRADICTED),
        # An interval that ends exactly at the bound does not count as beyond it.
        (above(0.5), [Drawn(0.6, (0.5,) * 9 + (0.7,) * 9, 3)], INCONCLUSIVE),
        (below(0.5), [Drawn(0.6, (0.5,) * 9 + (0.7,) * 9, 3)], CONTRADICTED),
        # All parts must hold, unless the criterion says that one is enough. One of
        # several parts contradicts the claim only at a corrected level.
        (above(), [seeds(0.5), seeds(0.6)], HOLDS),
        (above(), [seeds(0.5), seeds(0.1)], INCONCLUSIVE),
        (above(), [seeds(0.5), seeds(-0.5)], CONTRADICTED),
        (above(), [seeds(-0.17)], CONTRADICTED),
        (above(), [seeds(-0.17), *[seeds(0.5)] * 3], INCONCLUSIVE),
        (above(some=True), [seeds(-0.5), seeds(0.6)], HOLDS),
        (above(some=True), [seeds(-0.5), seeds(-0.5)], CONTRADICTED),
        (most(), [Share(5, 5)], HOLDS),
        (most(), [Share(0, 5)], CONTRADICTED),
        (above(), [seeds(0.5, own=False)], NOT_TESTED),
        (
            above(),
            [OverTasks((Task("one value has no interval", (0.5,)),))],
            INCONCLUSIVE,
        ),
    ],
)
def test_the_interval_against_the_bound_decides(
    criterion: Criterion, parts: list[Quantity], verdict: str
) -> None:
    row = judged(criterion, *parts)
    assert row["verdict"] == verdict
    assert row["bounds"] == list(criterion.bounds)
    assert Criterion.of(json.loads(json.dumps(row))) == criterion


@pytest.mark.parametrize(
    ("criterion", "values", "shown"),
    [
        (above(), (0.6, 0.5), 0.5),
        (equivalent(1), (0.0, 0.5), 0.5),
        (equivalent(1), (0.0, -0.5), -0.5),
        (above(some=True), (0.5, 0.6), 0.6),
    ],
)
def test_the_worst_part_is_shown_or_the_best_where_one_is_enough(
    criterion: Criterion, values: tuple[float, ...], shown: float
) -> None:
    row = judged(criterion, *map(seeds, values))
    assert row["verdict"] == HOLDS
    assert row["value"] == pytest.approx(shown)


def test_the_part_that_decides_is_shown_at_the_level_that_decides() -> None:
    row = judged(above(), seeds(0.5), seeds(0.1))
    assert (row["unit"], row["value"], row["level"]) == (
        "accuracy, part 1",
        pytest.approx(0.1),
        0.9,
    )
    row = judged(above(), seeds(-0.17), *[seeds(0.5)] * 3)
    assert (row["unit"], row["level"]) == ("accuracy, part 0", pytest.approx(0.975))
    assert row["low"] < 0 < row["high"]


@pytest.mark.parametrize(
    ("unit", "parts", "shown"),
    [
        ("nats", {"all": (0.5, 0.4)}, ""),
        ("nats, top 5", {"all": (0.5, 0.4)}, ""),
        ("nats, top 5", {"FL-2": (0.5, 0.4), "FL-3": (0.6,)}, "FL-2"),
        ("nats", {"FL-2": (0.6,), "norm, FL-2": (0.5, 0.4)}, "norm, FL-2"),
    ],
)
def test_a_row_has_the_name_of_the_part_that_is_shown_after_its_unit(
    unit: str, parts: dict[str, tuple[float, ...]], shown: str
) -> None:
    published = {"": 0.1, "FL-2": 0.2, "norm, FL-2": 0.3}
    quantities = {name: seeds(*centers) for name, centers in parts.items()}
    asked = replace(claim(above(), Measurement(quantities, unit)), published=published)
    (row,) = judge_all("focal", [asked], 0, profile="paper")
    assert row["unit"] == (f"{unit}, {shown}" if shown else unit)
    assert "part" not in row
    assert row["published"] == published[shown]
    assert task_count(row) == 2, "the shown part has two tasks"
    part = f"{shown}; " if shown else ""
    assert f"] {unit} ({part}n = 6 seeds" in texts(row)["ours"]


def test_one_seed_is_not_called_seeds() -> None:
    assert (
        "(n = 1 seed)"
        in texts(judged(above(), seeds(0.1)) | {"n": 1, "low": None})["ours"]
    )


def test_a_row_says_what_its_design_detects_and_what_its_effect_needs() -> None:
    row = judged(above(), seeds(0.1))
    # The three values have sd 0.1. If the true value is the detectable one, the t
    # statistic exceeds t(0.95, 2) = 2.92 with probability 0.8.
    found = stats.nct.sf(2.919986, 2, row["detectable"] / (0.1 / 3**0.5))
    assert found == pytest.approx(0.8, abs=1e-3)
    # The printed effect is 0.5, five times the standard deviation.
    assert (row["planned"], row["n_for_power"]) == (0.5, 3)
    assert row["verdict"] == INCONCLUSIVE
    assert texts(row)["power"] == (
        "with n = 3 seeds, there is an 80 % chance of detecting an effect that lies 23 "
        "beyond the bound; if the true effect is 50, n = 3 would suffice"
    )


def test_the_n_that_would_suffice_is_per_task_if_there_are_several() -> None:
    part = seeds(0.1, 0.3)
    row = judged(above(), part)
    assert row["n"] == 6
    # `n_for` gives each of the two tasks the same number of values.
    needed = part.n_for([0.5])
    assert texts(row)["power"].startswith("with n = 6 seeds, ")
    assert texts(row)["power"].endswith(f"50, n = {needed} per task would suffice")


def test_the_interval_at_another_level_leaves_the_verdict_and_its_part() -> None:
    parts = {"part 0": seeds(0.5), "part 1": seeds(0.1)}
    measurement = Measurement(parts, "accuracy")
    row = judged(above(), *parts.values())
    wider = at_level(row, measurement, 0.95)
    # Student's quantiles with 2 degrees of freedom are 2.920 for 90 % and 4.303 for 95
    # %.
    assert wider["high"] - 0.1 == pytest.approx(4.302653 * 0.1 / 3**0.5)
    assert row["high"] - 0.1 == pytest.approx(2.919986 * 0.1 / 3**0.5)
    same = ("verdict", "value", "unit", "detectable")
    assert [wider[name] for name in same] == [row[name] for name in same]
    assert at_level(row, measurement, 0.9) == row


def test_any_effect_is_detectable_without_a_spread_and_none_with_one_value() -> None:
    equal = OverTasks((Task("", (0.5, 0.5, 0.5)),))
    assert equal.detectable() == pytest.approx(0, abs=1e-8)
    assert OverTasks((Task("", (0.5,)),)).detectable() is None


def test_an_equivalence_is_planned_for_an_effect_of_0_and_a_share_for_1() -> None:
    row = judged(equivalent(0.2), seeds(0.1))
    margin = row["detectable"]
    # For a power of 80 %, each of the two tests may fail one time in ten.
    found = stats.nct.sf(2.919986, 2, margin / (0.1 / 3**0.5))
    assert found == pytest.approx(0.9, abs=1e-3)
    assert texts(row)["power"].startswith(
        "with n = 3 seeds, there is an 80 % chance that the interval lies within ±"
    )
    # The number of seeds for an equivalence does not depend on the printed effect of
    # 0.5. With sd 0.1, four seeds are enough and three are too few.
    assert (row["planned"], row["n_for_power"]) == (0.0, 4)
    share = judged(most(), Share(4, 4))
    # At 90 %, five hits of five are needed, because 0.5 ** 4 > 0.05 > 0.5 ** 5.
    assert (share["planned"], share["n_for_power"]) == (1.0, 5)
    assert share["detectable"] is None, "four of four are too few"
    assert judged(above(), seeds(-0.1))["planned"] == 0.5


@pytest.mark.parametrize(
    ("degrees", "degrees_of_sixteen"),
    [(2, 15), (8, 32)],
    ids=["points of a line", "seeds of several tasks"],
)
def test_the_error_of_a_fit_halves_with_four_times_the_seeds(
    degrees: int, degrees_of_sixteen: int
) -> None:
    part = Fitted(0.0, 0.5, degrees, 4)
    # The true value is 1 away from the bound: two standard errors with four seeds, and
    # four with 16.
    for n, shift, freedom in ((4, 2.0, degrees), (16, 4.0, degrees_of_sixteen)):
        end = stats.t.ppf(0.95, freedom)
        expected = stats.nct.sf(end, freedom, shift)
        planned = None if n == part.n else n
        assert part.power([1.0], 0.90, planned) == pytest.approx(expected)


def test_data_that_were_looked_at_several_times_are_judged_at_a_higher_level() -> None:
    # t(0.95, 2) = 2.92, t(0.975, 2) = 4.30, t(0.9833, 2) = 5.34. With sd 0.1 and three
    # values, the half widths are 0.169, 0.248 and 0.308.
    measured = Measurement({"": seeds(0.2)}, "nats")
    verdicts = []
    for looks in (1, 2, 3):
        asked = replace(claim(above(), measured), looks={"study": looks})
        (row,) = judge_all("focal", [asked], 0, profile="study")
        verdicts.append((row["verdict"], round(row["level"], 4), row["looks"]))
        assert row["criterion"] == asked.criterion.sentence(level=asked.level("study"))
    assert verdicts == [
        (HOLDS, 0.9, 1),
        (INCONCLUSIVE, 0.95, 2),
        (INCONCLUSIVE, 0.9667, 3),
    ]
    assert row["note"] == "interval of 96.7 %, for 3 looks at the data"
    assert "if the 96.7 % interval lies above 0." in texts(row)["criterion"]
    (row,) = judge_all("focal", [asked], 0, profile="another")
    assert (row["verdict"], row["looks"]) == (HOLDS, 1)


def test_the_level_of_a_contradiction_is_corrected_for_looks_and_parts_together() -> (
    None
):
    asked = replace(
        claim(above(), Measurement({"a": seeds(-0.5), "b": seeds(0.5)}, "nats")),
        looks={"study": 2},
    )
    (row,) = judge_all("focal", [asked], 0, profile="study")
    assert (row["verdict"], row["level"]) == (CONTRADICTED, pytest.approx(0.975))
    assert "interval of 97.5 %, for 2 looks at the data and 2 parts" in row["note"]


def test_data_that_are_the_same_everywhere_are_shown_once() -> None:
    asked = replace(
        claim(above(), Measurement({"": seeds(0.5)}, "nats")), same_everywhere=True
    )
    rows = [
        judge_all("focal", [asked], 0, profile=profile)[0]
        for profile in ("paper", "another", "mini")
    ]
    assert [row["verdict"] for row in rows] == [HOLDS, NOT_TESTED, HOLDS]
    assert rows[1]["note"] == "the data are those of paper, where they are judged"


def test_stand_in_data_are_marked_and_explained() -> None:
    asked = replace(
        claim(above(), Measurement({"": seeds(0.5)}, "accuracy")),
        stand_in={"paper": "CamVid in place of ADE20K"},
    )
    rows = [
        judge_all("focal", [asked], 0, profile=profile)[0]
        for profile in ("paper", "another")
    ]
    said = texts(rows[0])
    assert said["verdict"] == "holds (stand-in data)"
    assert said["note"] == "stand-in data: CamVid in place of ADE20K"
    assert texts(rows[1])["verdict"] == "holds"


def test_intervals_by_hand() -> None:
    values = np.random.default_rng(0).normal(size=7)
    expected = stats.t.interval(0.90, 6, loc=values.mean(), scale=stats.sem(values))
    assert OverTasks((Task("", tuple(values)),)).estimate().ends == pytest.approx(
        expected
    )
    # If all n trials are hits, the lower end p solves p^n = 0.05.
    assert Share(4, 4).estimate().low == pytest.approx(0.05**0.25)
    # Each of the three tasks has two values with variance 2 * 0.81, so the standard
    # error of its mean is 0.9. The standard error of the mean over tasks is 0.9 /
    # sqrt(3), with one degree of freedom per task.
    found = OverTasks(
        tuple(Task(str(mean), (mean - 0.9, mean + 0.9)) for mean in (0.1, 0.2, 0.6))
    ).estimate()
    half = 2.353363 * 0.9 / 3**0.5
    assert [found.value, found.sd, found.low, found.high] == pytest.approx(
        [0.3, 0.07**0.5, 0.3 - half, 0.3 + half]
    )
    assert found.n == 6
    # If tasks have one value each, the standard error comes from the spread of the
    # values 0.1, 0.2 and 0.6.
    found = OverTasks(tuple(Task(str(mean), (mean,)) for mean in (0.1, 0.2, 0.6)))
    half = 2.919986 * (0.07 / 3) ** 0.5
    assert found.estimate().ends == pytest.approx((0.3 - half, 0.3 + half))


def test_tasks_with_unequal_spreads_have_welchs_degrees_of_freedom() -> None:
    values = np.random.default_rng(0).normal(size=(2, 6))
    first, second = values[0, :4], 10 * values[1]
    part = OverTasks((Task("a", tuple(first)), Task("b", tuple(second))))
    # The mean of two arms is half of their sum. A sum is a difference with one sign
    # reversed, so scipy's Welch test applies.
    welch = stats.ttest_ind(first, -second, equal_var=False)
    expected = np.array(welch.confidence_interval(0.9)) / 2
    assert part.estimate().ends == pytest.approx(tuple(expected))


def test_tasks_that_share_seeds_are_averaged_within_a_seed() -> None:
    # In each seed the two schedules have the same difference, so the second schedule
    # adds no information: there are three values.
    luck = (0.1, 0.2, 0.4)
    one = Task("cosine", luck, seeds=(0, 1, 2), shares="digits, vgg")
    same = OverTasks((one, replace(one, name="linear")))
    assert same.estimate() == OverTasks((one,)).estimate()
    # Only common seeds count: the means within seeds 0 and 1 are 0.15 and 0.3.
    other = Task("linear", (0.2, 0.4, 9.0), seeds=(0, 1, 5), shares="digits, vgg")
    found = OverTasks((one, other)).estimate()
    assert (found.value, found.n) == (pytest.approx(0.225), 2)
    assert found.ends == pytest.approx(
        OverTasks((Task("", (0.15, 0.3)),)).estimate().ends
    )
    # On other data, the same seeds give independent values.
    elsewhere = replace(other, shares="glyphs, vgg")
    assert OverTasks((one, elsewhere)).estimate().n == 6


def test_a_mean_decides_nothing_where_one_of_its_tasks_decides_the_opposite() -> None:
    apart = seeds(-0.5, 1.0)
    assert apart.estimate().low == pytest.approx(0.25 - 2.131847 * 0.1 / 6**0.5)
    row = judged(above(), apart)
    assert row["verdict"] == INCONCLUSIVE
    assert row["note"] == "its tasks decide differently"
    assert judged(above(), seeds(0.05, 1.0))["verdict"] == HOLDS, "one is open"


def test_a_grid_and_choices_made_on_other_values_widen_the_interval() -> None:
    assert OverTasks(
        (Task("", (1.1, 1.1, 1.1)),), resolution=0.1
    ).estimate().sd == pytest.approx(0.1 / 12**0.5)
    plain, left_out = (
        OverTasks((Task("", (0.1, 0.2, 0.3)),), left_out=side).estimate()
        for side in (False, True)
    )
    # Nadeau and Bengio's variance has the factor 1/3 + 1/2 instead of 1/3.
    assert (0.2 - (left_out.low or 0)) / (0.2 - (plain.low or 0)) == pytest.approx(
        (5 / 2) ** 0.5
    )


def test_a_task_that_the_paper_lacks_is_shown_and_not_pooled() -> None:
    part = OverTasks((*seeds(0.5).tasks, *seeds(-0.5, own=False).tasks))
    row = judged(above(), part)
    assert (row["verdict"], row["value"], row["n"]) == (HOLDS, pytest.approx(0.5), 3)
    assert [task["pooled"] for task in row["tasks"]] == [True, False]
    assert texts(row)["note"] == "not in the paper and so not counted: task at -0.5"
    row = judged(above(), part, profile="mini")
    assert (row["n"], texts(row)["note"]) == (6, "its tasks decide differently"), (
        "directions must use all tasks"
    )


def test_only_one_of_several_parts_has_a_name() -> None:
    assert judged(above(), seeds(0.5))["tasks"][0]["part"] == ""
    tasks = judged(above(), seeds(0.5), seeds(0.6))["tasks"]
    assert [task["part"] for task in tasks] == ["part 0", "part 1"]


def test_a_missing_part_leaves_a_claim_open_but_not_a_contradiction() -> None:
    row = judged(above(), seeds(0.5), cosine="not trained")
    assert row["verdict"] == INCONCLUSIVE
    assert row["note"] == "not judged: cosine: not trained"
    assert judged(above(), seeds(-0.5), cosine="not trained")["verdict"] == CONTRADICTED
    row = judged(above(some=True), seeds(-0.5), cosine="not trained")
    assert row["verdict"] == INCONCLUSIVE


def test_a_row_says_which_optional_parts_were_judged_and_which_not_run() -> None:
    parts = {"norm, FL-1": seeds(0.5), "norm, FL-3": seeds(0.6)}
    found = Measurement(parts, "accuracy", not_run=("norm, FL-2",))
    (row,) = judge_all("focal", (claim(above(), found),), 0, profile="paper")
    assert row["verdict"] == HOLDS
    said = texts(row)["ours"]
    assert said.endswith("; judged: norm FL-1, norm FL-3; not run: norm FL-2)")
    assert "not run" not in texts(judged(above(), *parts.values()))["ours"]


def test_every_claim_with_optional_parts_names_what_was_not_run(
    project_root: Path,
) -> None:
    claims = [(paper, one) for paper in PAPERS for one in claims_of(paper)]
    found = []
    for paper, one in claims:
        if not isinstance(one.contrast, Parts) or one.contrast.required:
            continue
        found.append(one.id)
        path = project_root / "results" / one.primary / paper / "claims.json"
        (row,) = (row for row in read_json(path) if row["id"] == one.id)
        judged_parts = [part["part"] for part in row["parts"]]
        absent = [name for name in one.contrast.contrasts if name not in judged_parts]
        assert row["not_run"] == absent
        said = texts(row)["ours"]
        assert all(name.replace(", ", " ") in said for name in absent)
    assert found == [
        "linear-norms-are-larger",
        "linear-mistakes-are-confident",
        "linear-decision-regions-agree",
        "cooling-calibrates",
    ]


def test_if_one_part_is_enough_each_part_shows_its_own_verdict() -> None:
    row = judged(above(some=True), seeds(-0.5), seeds(0.6))
    assert [part["verdict"] for part in row["parts"]] == [CONTRADICTED, HOLDS]
    # 0.9 is the level for the claim, 0.95 the level for each of two parts.
    assert [part["level"] for part in row["parts"]] == pytest.approx([0.9, 0.95])
    said = texts(row)["ours"]
    assert (
        "each by itself: part 0 contradicted, -50.00 ± 10.00 [-66.86, -33.14]" in said
    )
    assert "part 1 holds, 60.00 ± 10.00 [35.16, 84.84]" in said
    assert (
        "each by itself" not in texts(judged(above(), seeds(0.5), seeds(0.6)))["ours"]
    )


def test_a_part_that_was_looked_at_more_often_has_a_level_of_its_own() -> None:
    parts = {"seen": seeds(0.2), "once": seeds(0.5)}
    asked = replace(
        claim(above(), Measurement(parts, "nats")),
        looks_of_parts={"study": {"seen": 2}},
    )
    (row,) = judge_all("focal", [asked], 0, profile="study")
    assert [part["level"] for part in row["parts"]] == pytest.approx([0.95, 0.9])
    assert row["verdict"] == INCONCLUSIVE
    assert "interval of 95 %, for 2 looks at the data" in row["note"]
    (row,) = judge_all("focal", [asked], 0, profile="another")
    assert row["verdict"] == HOLDS


@pytest.mark.parametrize(
    ("part", "remark"),
    [
        (
            replace(seeds(0.5), left_out=True, counted="data sets"),
            (
                "Student's interval, widened after Nadeau and Bengio for folds that "
                "share training data"
            ),
        ),
        (
            replace(seeds(0.5), left_out=True),
            (
                "Student's interval, widened after Nadeau and Bengio for choices that "
                "share seeds"
            ),
        ),
        (
            replace(seeds(0.5), uncorrected=0.4),
            "bias-corrected by the jackknife, without which it is 0.400",
        ),
    ],
)
def test_a_remark_says_what_widens_an_interval_or_moves_a_value(
    part: Quantity, remark: str
) -> None:
    row = judged(above(), part)
    assert row["remark"] == remark
    assert remark in texts(row)["ours"]


def test_every_claim_has_a_row_in_its_order() -> None:
    found = Measurement({"all": seeds(0.5)}, "accuracy")
    rows = judge_all(
        "focal",
        (claim(above(), found), claim(above(), not_tested("one repeat"))),
        0,
        profile="smoke",
    )
    assert [row["verdict"] for row in rows] == [HOLDS, NOT_TESTED]
    assert (rows[1]["value"], rows[1]["note"]) == (
        None,
        "one repeat; study paper would test it",
    )
    assert len({frozenset(row) for row in rows}) == 1, "rows have different keys"
    table = claims_table(rows)
    assert "verdict (directions only)" in table
    shown = "50.00 ± 10.00 [33.14, 66.86] points of accuracy"
    assert table["ours"].tolist() == [f"{shown} (n = 3 seeds, interval at 90 %)", "–"]
    assert table["must lie"].tolist() == ["above 0", "–"]


def test_a_claim_that_is_not_tested_names_the_study_that_is_made_for_it() -> None:
    asked = replace(claim(above(), not_tested("one seed")), primary="cifar10")
    notes = [
        judge_all("focal", [asked], 0, profile=profile)[0]["note"]
        for profile in ("paper", "cifar10")
    ]
    assert notes == ["one seed; study cifar10 would test it", "one seed"]


def test_a_reader_sees_shares_in_points_and_other_numbers_as_they_are() -> None:
    row = judged(above(0.01), seeds(0.5), seeds(0.6))
    said = texts(row)
    assert (said["printed"], said["must lie"], said["note"]) == (
        "50",
        "above 1",
        "part 0 +50.0, part 1 +60.0",
    )
    assert said["criterion"].endswith(
        "holds if the 90 % interval lies above 1 points of accuracy."
    )
    for unit, shown in (
        ("of an epoch", "% of an epoch"),
        ("share of predictions", "% of predictions"),
    ):
        assert f" {shown} (n" in texts(row | {"unit": unit})["ours"]
    said = texts(row | {"unit": "nats, part 0"})
    assert said["ours"] == (
        "0.500 ± 0.100 [0.331, 0.669] nats (part 0; n = 3 seeds, interval at 90 %)"
    )
    assert (said["printed"], said["must lie"]) == ("0.5", "above 0.01")


def test_a_logarithm_of_a_ratio_is_shown_with_the_ratio() -> None:
    row = judged(above(), seeds(1.279)) | {"unit": "logarithm of the ratio of ECE"}
    assert "logarithm of the ratio of ECE (a ratio of 3.59; n = 3" in texts(row)["ours"]
    assert "a ratio" not in texts(row | {"unit": "nats"})["ours"]


def test_a_small_number_shows_its_side_of_zero_and_zero_has_no_sign() -> None:
    row = judged(above(), seeds(0.5)) | {"unit": "nats"}
    small = {"value": -0.00012, "sd": 0.00031, "low": -0.0004, "high": 0.00021}
    assert "-0.0001 ± 0.0003 [-0.0004, 0.0002] nats" in texts(row | small)["ours"]
    equal = {"value": -0.0, "sd": 0.0, "low": -0.0, "high": 0.0}
    assert "0.000 ± 0.000 [0.000, 0.000] nats" in texts(row | equal)["ours"]
    wide = {"value": -0.0001, "sd": 1.0, "low": -1.5, "high": 1.5}
    assert "] nats" in texts(row | wide)["ours"]
    assert texts(row | wide)["ours"].startswith("0.000 ± 1.000 [-1.500, 1.500]")


def test_names_that_say_nothing_to_a_reader_are_put_in_words() -> None:
    row = judged(above(), seeds(0.5))
    logits = texts(row | {"id": "accuracy-depends-weakly-on-logit-norm"})["ours"]
    assert (
        "points of accuracy beyond half of what the inverse temperature changes (n"
        in logits
    )
    of_right = row | {
        "unit": "nats, right, sign reversed",
        "parts": [{"part": "right, sign reversed"}],
        "note_template": "right, sign reversed {}",
        "note": "right, sign reversed +0.500",
    }
    assert " nats (fall of the right ones' NLL; n" in texts(of_right)["ours"]
    assert texts(of_right)["note"] == "fall of the right ones' NLL +0.500"


@pytest.mark.parametrize(
    ("criterion", "part", "verdict"),
    [
        # One part that holds says nothing about the others. One part that fails
        # contradicts the claim about all parts.
        (above(), seeds(0.5), NOT_TESTED),
        (above(), seeds(0.1), NOT_TESTED),
        (above(), seeds(-0.5), CONTRADICTED),
        # If the claim had only this part, the part would contradict it; as one of two
        # parts it does not.
        (above(), seeds(-0.2), NOT_TESTED),
    ],
)
def test_a_claim_about_all_parts_is_not_tested_until_it_has_them(
    criterion: Criterion, part: Quantity, verdict: str
) -> None:
    found = Measurement(
        {"a": part},
        "accuracy",
        missing={"b": "not trained"},
        whole=True,
    )
    (row,) = judge_all("focal", (claim(criterion, found),), 0, profile="paper")
    assert row["verdict"] == verdict
    said = "judged as a whole, and 1 of 2 parts are missing: b" in row["note"]
    assert said == (verdict == NOT_TESTED)

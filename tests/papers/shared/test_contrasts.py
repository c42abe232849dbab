"""Contrasts select runs by factors, and pair runs whose other factors are equal."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from softmax_temperature.papers.shared.contrasts import (
    Difference,
    Having,
    Mean,
    Parts,
    Proportion,
    Ratio,
    reasons,
)
from softmax_temperature.papers.shared.factors import between, more_than, where
from softmax_temperature.papers.shared.metrics import (
    Average,
    Factor,
    Metric,
    mean_of_last_epochs,
)
from softmax_temperature.papers.shared.runs import Runs
from softmax_temperature.papers.shared.statistics import OverTasks, Share
from softmax_temperature.runner.errors import InputError
from tests.papers.shared.made_runs import runs_of

ACCURACY = Metric("accuracy")
CE = where(loss="ce")
FOCAL_3 = where(loss="focal", gamma=3.0)
FOCAL_AGAINST_CE = Difference(of=ACCURACY, first=FOCAL_3, second=CE)


def two_losses(**changes: Any) -> Runs:
    """Runs of three seeds; focal loss with gamma 3 is 0.01 to 0.03 more accurate than
    CE.
    """
    rows = []
    for seed in (0, 1, 2):
        rows.append({"loss": "ce", "gamma": None, "seed": seed, "value": 0.7})
        gain = 0.01 * (seed + 1)
        focal = {"loss": "focal", "gamma": 3.0, "seed": seed, "value": 0.7 + gain}
        rows.append(focal | changes)
    return runs_of(rows)


def only_part(contrast: Any, runs: Runs) -> Any:
    [part] = contrast.measure(runs).parts.values()
    return part


def numbers_of(contrast: Any, runs: Runs) -> list[float]:
    """The values of the only task in the only part of a contrast."""
    [task] = only_part(contrast, runs).tasks
    return list(vars(task)["values"])


def test_a_difference_is_paired_by_seed() -> None:
    numbers = numbers_of(FOCAL_AGAINST_CE, two_losses())
    assert numbers == pytest.approx([0.01, 0.02, 0.03])
    part = only_part(FOCAL_AGAINST_CE, two_losses())
    assert isinstance(part, OverTasks)
    assert part.tasks[0].name == "cifar10, vgg"


def test_an_arm_is_its_factors_whatever_it_is_called() -> None:
    measurement = FOCAL_AGAINST_CE.measure(two_losses(gamma=5.0, arm="FL-3"))
    assert not measurement.parts
    assert "loss = focal, gamma = 3.0" in measurement.missing[""]


def test_a_ratio_is_measured_by_its_logarithm() -> None:
    contrast = Ratio(of=ACCURACY, first=FOCAL_3, second=CE)
    numbers = numbers_of(contrast, two_losses())
    assert numbers == pytest.approx(np.log(np.array([0.71, 0.72, 0.73]) / 0.7))
    assert contrast.unit == "logarithm of the ratio of accuracy"


@pytest.mark.parametrize("loss", ["ce", "focal"])
def test_a_ratio_has_no_estimate_if_a_value_is_0(loss: str) -> None:
    runs = two_losses()
    run = runs.table.index[runs.table["loss"] == loss][0]
    is_zero = runs.measurements["run"] == run
    values = runs.measurements["value"].mask(is_zero, 0.0)
    zero = replace(runs, measurements=runs.measurements.assign(value=values))
    contrast = Ratio(of=ACCURACY, first=FOCAL_3, second=CE)
    measurement = contrast.measure(zero)
    assert measurement.parts == {}
    assert measurement.missing[""] == (
        "in 1 of 3 pairs a value is 0, so their ratio has no logarithm: "
        "accuracy on split 'test'"
    )


def test_a_contrast_of_a_metric_that_no_run_has_names_the_metric() -> None:
    misspelt = Metric("brier_scor", scaled=True, label="Brier score")
    contrast = replace(FOCAL_AGAINST_CE, of=misspelt)
    said = contrast.measure(two_losses()).missing[""]
    assert said == (
        "no run with loss = focal, gamma = 3.0 has a value: "
        "brier_scor after scaling on split 'test'"
    )
    of_second = replace(FOCAL_AGAINST_CE, of_second=Metric("acuracy"))
    said = of_second.measure(two_losses()).missing[""]
    assert said == "no run with loss = ce has a value: acuracy on split 'test'"
    said = Mean(of=misspelt, among=CE).measure(two_losses()).missing[""]
    assert said.startswith("no run of this study has a value: brier_scor")


def test_a_lost_run_is_the_reason_only_if_all_runs_are_lost() -> None:
    misspelt = replace(FOCAL_AGAINST_CE, of=Metric("acuracy"))
    runs = two_losses()
    is_first = runs.table.index == runs.table.index[0]
    one_lost = replace(runs, table=runs.table.assign(diverged=is_first))
    all_lost = replace(runs, table=runs.table.assign(diverged=True))
    for contrast in (misspelt, Mean(of=Metric("acuracy"), among=CE)):
        said = contrast.measure(one_lost).missing[""]
        assert said.endswith("has a value: acuracy on split 'test'")
        assert "3 of 3 diverged" in contrast.measure(all_lost).missing[""]


def test_runs_that_share_no_seed_have_no_pairs() -> None:
    runs = two_losses()
    is_focal = runs.table["loss"] == "focal"
    seeds = runs.table["seed"] + 10 * is_focal
    apart = replace(runs, table=runs.table.assign(seed=seeds))
    said = FOCAL_AGAINST_CE.measure(apart).missing[""]
    assert said == "no two runs of this study share all but what is compared"


def test_a_part_for_each_value_of_a_factor() -> None:
    rows = [{"loss": "ce", "gamma": None, "seed": 0, "value": 0.5}]
    for gamma in (1.0, 3.0):
        value = 0.5 + gamma / 10
        rows.append({"loss": "focal", "gamma": gamma, "seed": 0, "value": value})
    contrast = Difference(
        of=ACCURACY, first=where(loss="focal"), second=CE, split_by="gamma"
    )
    parts = contrast.measure(runs_of(rows)).parts
    values = {name: part.estimate().value for name, part in parts.items()}
    assert values == pytest.approx({"1": 0.1, "3": 0.3})


def test_parts_of_a_categorical_factor_keep_its_order() -> None:
    runs = runs_of(
        {"loss": loss, "place": name, "dataset": name, "seed": 0, "value": 0.5}
        for name in ("second", "first")
        for loss in ("ce", "focal")
    )
    contrast = Difference(
        of=ACCURACY, first=where(loss="focal"), second=CE, split_by="place"
    )
    assert list(contrast.measure(runs).parts) == ["first", "second"]
    places = pd.Categorical(runs.table["place"], categories=["second", "first"])
    ordered = replace(runs, table=runs.table.assign(place=places))
    assert list(contrast.measure(ordered).parts) == ["second", "first"]


def test_reasons_that_differ_are_given_after_the_parts_names() -> None:
    assert reasons({"a": "diverged", "b": "diverged"}) == "diverged"
    assert reasons({"a": "diverged", "b": "stuck"}) == "a: diverged; b: stuck"
    assert reasons({}) == ""


def test_a_part_that_was_not_run_is_missing_unless_it_is_optional() -> None:
    contrasts = {
        "gamma 3": FOCAL_AGAINST_CE,
        "gamma 2": Difference(of=ACCURACY, first=where(gamma=2.0), second=CE),
    }
    measurement = Parts(contrasts, absent="not trained").measure(two_losses())
    assert list(measurement.parts) == ["gamma 3"]
    assert measurement.missing == {"gamma 2": "not trained"}
    assert measurement.not_run == ()
    optional = Parts(contrasts, required=False).measure(two_losses())
    assert optional.missing == {}
    assert optional.not_run == ("gamma 2",)


def test_a_part_takes_no_seed_from_another_part() -> None:
    """Two arms have three seeds; a third arm has one seed, and is in only one part."""
    runs = two_losses()
    third = runs.table["loss"].eq("focal") & runs.table["seed"].eq(0)
    brier = runs.table[third].assign(loss="brier", gamma=None, cell="made/brier-9/0")
    brier.index = [9]
    values = runs.measurements
    more = values[values["run"] == brier["seed"].size].assign(run=9)
    both = Runs(
        pd.concat([runs.table, brier]).rename_axis(index="run"),
        pd.concat([values, more], ignore_index=True),
    )
    contrasts = {
        "focal": FOCAL_AGAINST_CE,
        "brier": Difference(of=ACCURACY, first=where(loss="brier"), second=CE),
    }
    parts = Parts(contrasts).measure(both).parts
    assert {name: part.estimate().n for name, part in parts.items()} == {
        "focal": 3,
        "brier": 1,
    }
    assert parts["focal"].estimate().value == pytest.approx(0.02)
    # Arms are compared only on the seeds that both have.
    turned = Difference(of=ACCURACY, first=CE, second=where(loss="brier"))
    assert only_part(turned, both).estimate().n == 1


def test_a_row_names_the_values_of_a_factor_over_which_it_averages() -> None:
    schedules = ("cosine", "linear", "none")
    rows = [
        {"loss": loss, "seed": seed, "schedule": "none", "value": value}
        for loss, value in (("ce", 0.5), ("focal", 0.6))
        for seed in (0, 1)
    ]
    contrasts = {"focal": Difference(of=ACCURACY, first=where(loss="focal"), second=CE)}
    some = Parts(contrasts, averaged={"schedule": schedules}).measure(runs_of(rows))
    assert some.qualifier == "judged with schedule None; not run: Cosine, Linear"
    everything = Parts(contrasts, averaged={"schedule": ("none",)})
    assert everything.measure(runs_of(rows)).qualifier == ""


def test_if_no_part_was_run_the_reason_is_that_of_the_first_part() -> None:
    contrasts = {
        "gamma 2": Difference(of=ACCURACY, first=where(gamma=2.0), second=CE),
        "gamma 4": Difference(of=ACCURACY, first=where(gamma=4.0), second=CE),
    }
    measurement = Parts(contrasts, absent="not trained").measure(two_losses())
    reason = "no run with gamma = 2.0, of those for all runs"
    assert measurement.missing == {"": reason}


def test_two_runs_that_differ_only_in_another_factor_are_refused() -> None:
    twice = two_losses()
    other = twice.table.iloc[[1]].assign(gamma=3.0, learning_rate=0.5, cell="made/x/0")
    other.index = [99]
    table = pd.concat([twice.table.assign(learning_rate=0.1), other])
    with pytest.raises(InputError, match="differ in learning_rate"):
        FOCAL_AGAINST_CE.measure(Runs(table, twice.measurements))


def test_runs_with_another_recipe_are_not_compared() -> None:
    runs = two_losses()
    rates = runs.table["loss"].map({"ce": 0.1, "focal": 0.5})
    other = Runs(runs.table.assign(learning_rate=rates), runs.measurements)
    with pytest.raises(InputError, match=r"learning_rate: 0\.5 and 0\.1"):
        FOCAL_AGAINST_CE.measure(other)


def test_two_numbers_of_the_same_runs_are_compared() -> None:
    contrast = Difference(
        of=ACCURACY, of_second=Factor("gamma"), first=FOCAL_3, second=FOCAL_3
    )
    numbers = numbers_of(contrast, two_losses())
    assert numbers == pytest.approx([0.71 - 3, 0.72 - 3, 0.73 - 3])


def test_a_recipe_that_neither_run_has_is_shared() -> None:
    runs = two_losses()
    unknown = Runs(runs.table.assign(weight_decay=np.nan), runs.measurements)
    assert len(numbers_of(FOCAL_AGAINST_CE, unknown)) == 3
    is_focal = runs.table["loss"] == "focal"
    one = runs.table.assign(weight_decay=np.where(is_focal, 0.1, np.nan))
    with pytest.raises(InputError, match="weight_decay"):
        FOCAL_AGAINST_CE.measure(Runs(one, runs.measurements))


def test_a_training_of_two_experiments_counts_once() -> None:
    runs = two_losses()
    again = runs.table.iloc[[1]].assign(cell="made/again/0")
    again.index = [99]
    table = pd.concat([runs.table, again])
    numbers = numbers_of(FOCAL_AGAINST_CE, Runs(table, runs.measurements))
    assert len(numbers) == 3


def test_a_training_that_ran_on_two_devices_counts_once() -> None:
    runs = two_losses()
    again = runs.table.iloc[[1]].assign(cell="made/again/0", device="cpu")
    again.index = [99]
    table = pd.concat([runs.table.assign(device=None), again])
    numbers = numbers_of(FOCAL_AGAINST_CE, Runs(table, runs.measurements))
    assert len(numbers) == 3


def test_values_are_averaged_within_a_seed_before_they_count() -> None:
    rows = []
    for seed in (0, 1):
        for schedule, gain in (("cosine", 0.0), ("linear", 0.1 * (seed + 1))):
            about = {"seed": seed, "schedule": schedule}
            rows.append({"loss": "ce", "gamma": None, "value": 0.5, **about})
            focal = {"loss": "focal", "gamma": 3.0, "value": 0.5 + gain}
            rows.append(focal | about)
    contrast = Difference(
        of=ACCURACY, first=FOCAL_3, second=CE, averaged_over=["schedule"]
    )
    numbers = numbers_of(contrast, runs_of(rows))
    assert numbers == pytest.approx([0.05, 0.1])


def test_lost_runs_are_left_out_or_count_as_told_and_are_named() -> None:
    runs = two_losses()
    diverged = runs.table["loss"].eq("focal") & runs.table["seed"].eq(2)
    lost = Runs(runs.table.assign(diverged=diverged), runs.measurements)
    assert len(numbers_of(FOCAL_AGAINST_CE, lost)) == 2
    guess = Difference(
        of=Metric("accuracy", lost=0.1), first=FOCAL_3, second=CE, lost_as="guessing"
    )
    assert numbers_of(guess, lost)[2] == pytest.approx(0.1 - 0.7)
    note = guess.measure(lost).note
    assert note == "counted as guessing: focal 1 of 3 diverged"


def test_a_lost_run_of_two_parts_is_named_once() -> None:
    runs = two_losses()
    diverged = runs.table["loss"].eq("ce") & runs.table["seed"].eq(2)
    lost = Runs(runs.table.assign(diverged=diverged), runs.measurements)
    guess = replace(
        FOCAL_AGAINST_CE, of=Metric("accuracy", lost=0.1), lost_as="guessing"
    )
    note = Parts({"a": guess, "b": guess}).measure(lost).note
    assert note == "counted as guessing: ce 1 of 3 diverged"


def test_another_number_of_the_same_runs_is_shown_next_to_it() -> None:
    last_epochs = Metric("accuracy", epochs=mean_of_last_epochs, label="last epochs")
    note_metrics = {"mean of the last epochs": last_epochs}
    contrast = Difference(
        of=ACCURACY, first=FOCAL_3, second=CE, note_metrics=note_metrics
    )
    measurement = contrast.measure(two_losses())
    assert measurement.note == "mean of the last epochs {}"
    assert measurement.note_values == pytest.approx((0.02,))


def test_a_share_counts_the_seeds_for_which_all_runs_have_the_property() -> None:
    rows = [
        {"loss": "focal", "gamma": gamma, "seed": seed, "value": 0.5, "diverged": lost}
        for gamma, seed, lost in ((1.0, 0, True), (2.0, 0, True), (1.0, 1, True))
    ]
    rows.append(rows[0] | {"gamma": 2.0, "seed": 1, "diverged": False})
    contrast = Proportion(
        of=Having("diverged", where(diverged=True)),
        among=where(gamma=more_than(0)),
        split_by="dataset",
    )
    measurement = contrast.measure(runs_of(rows))
    assert measurement.parts == {"cifar10": Share(1, 2)}
    assert measurement.unit == "of the seeds diverged"


def test_a_share_on_other_data_is_not_one_of_the_paper() -> None:
    rows = [{"loss": "ce", "seed": 0, "value": 0.5, "own": False, "diverged": True}]
    contrast = Proportion(of=Having("diverged", where(diverged=True)))
    assert only_part(contrast, runs_of(rows)).of_paper() is None


def test_a_mean_averages_the_numbers_themselves_over_the_papers_tasks() -> None:
    rows = [
        {"loss": "ce", "dataset": name, "seed": seed, "value": value, "own": own}
        for name, own, values in (
            ("cifar10", True, (0.5, 0.7)),
            ("mine", False, (0.1,)),
        )
        for seed, value in enumerate(values)
    ]
    part = only_part(Mean(of=ACCURACY, among=CE, resolution=0.1), runs_of(rows))
    assert [task.own for task in part.tasks] == [True, False]
    assert part.of_paper().estimate().value == pytest.approx(0.6)
    assert part.resolution == 0.1


def test_values_of_a_mean_are_averaged_within_a_seed() -> None:
    rows = [
        {"loss": "ce", "seed": seed, "schedule": schedule, "value": value + seed / 10}
        for schedule, value in (("cosine", 0.5), ("linear", 0.7))
        for seed in (0, 1)
    ]
    contrast = Mean(of=ACCURACY, averaged_over=["schedule"])
    assert numbers_of(contrast, runs_of(rows)) == pytest.approx([0.6, 0.7])


def test_a_seed_that_lacks_a_run_of_its_task_has_no_average() -> None:
    """On `cifar10`, seed 1 has one of two schedules; on `mine`, every seed has one."""
    runs = [
        ("cifar10", "cosine", 0, 0.1),
        ("cifar10", "linear", 0, 0.3),
        ("cifar10", "cosine", 1, 0.5),
        ("mine", "cosine", 0, 0.4),
        ("mine", "cosine", 1, 0.6),
    ]
    rows = []
    for dataset, schedule, seed, gain in runs:
        about = {"dataset": dataset, "schedule": schedule, "seed": seed}
        rows.append({"loss": "ce", "gamma": None, "value": 0.2, **about})
        rows.append({"loss": "focal", "gamma": 3.0, "value": 0.2 + gain, **about})
    contrasts = {
        0.2: Mean(of=ACCURACY, among=FOCAL_3, averaged_over=["schedule"]),
        0.0: replace(FOCAL_AGAINST_CE, averaged_over=["schedule"]),
    }
    for level, contrast in contrasts.items():
        tasks = only_part(contrast, runs_of(rows)).tasks
        gains = {task.name: np.subtract(task.values, level) for task in tasks}
        assert list(gains) == ["cifar10, vgg", "mine, vgg"]
        assert gains["cifar10, vgg"] == pytest.approx([0.2])
        assert gains["mine, vgg"] == pytest.approx([0.4, 0.6])


def test_values_that_a_choice_made_have_a_wider_interval() -> None:
    runs = two_losses()
    chosen = replace(FOCAL_AGAINST_CE, left_out=True, counted="folds")
    wide = only_part(chosen, runs).estimate()
    narrow = only_part(FOCAL_AGAINST_CE, runs).estimate()
    assert wide.low < narrow.low
    assert only_part(chosen, runs).counted == "folds"


def test_an_average_leaves_out_a_run_that_lacks_one_of_its_numbers() -> None:
    runs = two_losses()
    both = Average([ACCURACY, Factor("seed")])
    assert both.of(runs, runs.table)[3] == pytest.approx((0.72 + 1) / 2)
    values = runs.measurements
    lacking = replace(runs, measurements=values[values["run"] != 3])
    numbers = both.of(lacking, lacking.table)
    assert numbers.isna().tolist() == [False, False, False, True, False, False]


def test_cells_are_those_of_the_compared_runs_without_seeds() -> None:
    runs = two_losses()
    other = runs.table.assign(loss=["ce", "focal", "brier", "brier", "ce", "focal"])
    measurement = FOCAL_AGAINST_CE.measure(Runs(other, runs.measurements))
    assert measurement.cells == (
        "made/ce-0",
        "made/focal-1",
        "made/ce-4",
        "made/focal-5",
    )


def test_a_predicate_on_a_factor_that_runs_lack_is_an_error() -> None:
    with pytest.raises(ValueError, match="temperature is not a factor"):
        two_losses().select(where(temperature=1))


def test_two_experiments_that_train_alike_are_two_tasks_where_they_are_asked_for() -> (
    None
):
    rows = [
        {"experiment": name, "loss": loss, "seed": 0, "value": value}
        for name, better in (("short", 0.1), ("long", 0.2))
        for loss, value in (("ce", 0.5), ("focal", 0.5 + better))
    ]
    contrast = Difference(
        of=Metric("accuracy"),
        first=where(loss="focal"),
        second=where(loss="ce"),
        tasks=("experiment",),
    )
    (part,) = contrast.evidence(runs_of(rows)).parts.values()
    estimates = {task["task"]: task["value"] for task in part.by_task()}
    assert estimates == pytest.approx({"long": 0.2, "short": 0.1})


def test_between_includes_both_ends() -> None:
    table = pd.DataFrame({"temperature": [0.9, 0.95, 1.0, 1.05, 1.1, None]})
    chosen = where(temperature=between(0.95, 1.05)).select(table)
    assert chosen["temperature"].tolist() == [0.95, 1.0, 1.05]

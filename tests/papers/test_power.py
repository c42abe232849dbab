"""Simulates the false-positive rates of the claims' criteria, and the power of some.

A false-positive rate must be at most 5 %, up to the error of the simulation, even after
several looks.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from softmax_temperature.dataset_statistics import STATISTICS
from softmax_temperature.papers.classifier_temperature import claims as classifier
from softmax_temperature.papers.focal import claims as focal
from softmax_temperature.papers.shared.claims import (
    HOLDS,
    Claim,
    above,
    equivalent,
    judge,
    judge_all,
    most,
)
from softmax_temperature.papers.shared.contrasts import Measurement
from softmax_temperature.papers.shared.factors import Where, at_most, where
from softmax_temperature.papers.shared.metrics import Metric
from softmax_temperature.papers.shared.runs import SEED, Runs
from softmax_temperature.papers.shared.statistics import OverTasks, Share, Task
from softmax_temperature.papers.shared.sweeps import table_by_seed
from softmax_temperature.papers.temperature_check import claims as temperature
from softmax_temperature.papers.temperature_check import study as temperature_study
from tests.conftest import ROOT
from tests.papers import power
from tests.papers.focal.made_runs import run, runs_of
from tests.papers.temperature_check.conftest import Row, make_runs, training

ALLOWED = 0.05
RESULTS = ROOT / "results"


def limit(repeats: int) -> float:
    """The frequency that is exceeded with probability 0.001 if the true rate is 5 %."""
    return float(ALLOWED + 3.1 * (ALLOWED * (1 - ALLOWED) / repeats) ** 0.5)


# Simulation results for docs/scorecard/criteria.md. --------------------------------

SIMULATED: dict[tuple[str, int], list[str]] = {}
"""The claims and the shares of studies in which they held, keyed by simulation and
number of studies.
"""


def written(
    name: str, columns: Sequence[str], rows: Iterable[Iterable[object]]
) -> None:
    """Write a table between the markers of `name` in the file that SCORECARD names.

    Do nothing if this environment variable is not set.
    """
    if path := os.environ.get("SCORECARD"):
        lines = [
            columns,
            ["---"] * len(columns),
            *([str(cell) for cell in row] for row in rows),
        ]
        before, found, rest = Path(path).read_text().partition(f"<!-- {name} -->")
        _, closed, after = rest.partition(f"<!-- /{name} -->")
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        Path(path).write_text(f"{before}{found}\n{table}\n{closed}{after}")


def folded(found: Sequence[str]) -> str:
    """Format the claims' shares as a table cell; four or more are collapsed under their
    range.
    """
    if len(found) < 4:
        return ", ".join(found)
    shares = sorted(one.rpartition(" ")[2] for one in found)
    return (
        f"<details><summary>{shares[0]} to {shares[-1]}, {len(found)} claims</summary>"
        f"{'<br>'.join(found)}</details>"
    )


@pytest.fixture(scope="module", autouse=True)
def _table() -> Iterator[None]:
    """After the module's tests, write the table of simulations."""
    yield
    if SIMULATED:
        rows = [
            (said, repeats, folded(found))
            for (said, repeats), found in SIMULATED.items()
        ]
        written(
            "simulated",
            ("simulated", "studies", "share of studies in which a claim holds"),
            rows,
        )


# Values of the committed runs. --------------------------------------------------------

SEEDS_AT_LOOKS = {
    ("focal_cifar10", 3): (4, 6, 11),
    ("cooling_cifar10", 3): (2, 4, 10),
    ("cooling_cifar10", 2): (4, 15),
    ("translation_multi30k", 2): (3, 6),
    ("temperature_check", 3): (10, 20, 30),
    # The whole study was run again for each look; the simulation treats each look as if
    # it had added new data sets.
    ("collection", 3): (12, 24, 36),
    ("collection", 4): (12, 24, 36, 57),
    # For the second look, the same three modes were measured again.
    ("cooling_full", 2): (3, 6),
}
"""Number of seeds at each look, keyed by study and number of looks (docs/protocol.md).

If two claims of a study differ, the entry is for the claim whose last look has the most
seeds.
"""
FROM_RECORDS = (
    "feats-corr-is-strongest",
    "feats-corr-is-strong",
    "dimension-is-weak",
    "several-beat-one",
    "four-beat-one",
    "prediction-is-significant",
)
"""Claims that involve a fit; for these, whole records are simulated."""


@dataclass(frozen=True)
class Design:
    """A claim in a completed study, with the values that decide it."""

    claim: Claim
    study: str
    parts: Mapping[str, OverTasks]

    @property
    def looks(self) -> Sequence[int]:
        """Number of seeds at each look; empty if there was one look."""
        looks = self.claim.looks_at(self.study)
        return SEEDS_AT_LOOKS[self.study, looks] if looks > 1 else ()

    def false_holds(self, repeats: int) -> float:
        """Share of simulated studies in which the claim holds although it is false."""
        return power.chance_of_a_false_hold(
            self.claim.criterion,
            self.parts,
            generator=np.random.default_rng(1),
            level=self.claim.level(self.study),
            looks=self.looks,
            repeats=repeats,
        )


@cache
def runs_in(study: str, paper: str) -> Runs:
    module = import_module(f"softmax_temperature.papers.{paper}.study")
    runs: Runs = module.read(RESULTS / study / paper)
    return runs


def designs(study: str, paper: str, only: str | None = None) -> list[Design]:
    """The claims of a study that are about means over seeds or over data sets.

    If `only` is given, return only the claim with this id.
    """
    module = import_module(f"softmax_temperature.papers.{paper}.claims")
    found = []
    for claim in module.CLAIMS:
        if claim.id in FROM_RECORDS or only not in (None, claim.id):
            continue
        parts = claim.contrast.measure(runs_in(study, paper)).parts
        means = {
            name: part
            for name, part in parts.items()
            if isinstance(part, OverTasks) and not part.left_out
        }
        if parts and len(means) == len(parts):
            found.append(Design(claim, study, means))
    return found


STUDIES = [
    ("focal_cifar10", "focal"),
    ("focal_cifar100", "focal"),
    ("text", "focal"),
    ("translation_multi30k", "focal"),
    ("cooling_full", "cooling"),
    ("cooling_cifar10", "cooling"),
    ("cifar10_cpu_cooling", "cooling"),
    ("collection", "classifier_temperature"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("study", "paper"), STUDIES)
def test_claims_on_the_committed_runs_rarely_hold_at_their_bound(
    study: str, paper: str
) -> None:
    repeats = 1000
    at_bound = {}
    for design in designs(study, paper):
        at_bound[design.claim.id] = chance = design.false_holds(repeats)
        looks = ", ".join(map(str, design.looks))
        seen = f"looks at {looks} values" if looks else "one look"
        said = f"{study}, the covariance of its runs, one part at the bound; {seen}"
        found = f"{design.claim.id} {chance:.3f}"
        SIMULATED.setdefault((said, repeats), []).append(found)
    assert {
        name: chance for name, chance in at_bound.items() if chance > limit(repeats)
    } == {}


SMOOTH = "periodic-gains-nothing-with-smooth-schedule"


def smooth_schedules() -> Design:
    (design,) = designs("cooling_cifar10", "cooling", only=SMOOTH)
    return design


def test_schedules_that_share_seeds_are_simulated_with_their_correlations() -> None:
    design = smooth_schedules()
    (block,) = power.blocks(design.parts)
    drawn = block.drawn(4000, np.random.default_rng(0))
    measured = np.corrcoef(block.measured.T)
    assert measured.min() > 0.5
    np.testing.assert_allclose(np.corrcoef(drawn.T), measured, atol=0.05)
    np.testing.assert_allclose(
        drawn.std(axis=0), block.measured.std(axis=0, ddof=1), rtol=0.05
    )


def test_schedules_that_share_seeds_rarely_pass_for_equivalent() -> None:
    repeats = 500
    design = smooth_schedules()
    assert design.false_holds(repeats) <= limit(repeats)
    # If the tasks were judged as independent, the false claim would hold in about three
    # times the allowed 5 % of studies.
    (part,) = design.parts.values()
    generator = np.random.default_rng(1)
    bound = design.claim.criterion.bounds[0]
    hits = 0
    for _ in range(repeats):
        (study,) = power.simulated(design.parts, bound, generator).values()
        alone = tuple(replace(task, shares="") for task in study.tasks)
        judged_alone = {"": replace(part, tasks=alone)}
        hits += power.holds(design.claim.criterion, judged_alone, power.level_of(1))
    assert hits / repeats > 0.12


def plain(n: int, tasks: int = 1) -> dict[str, OverTasks]:
    """Standard normal values of independent tasks."""
    draws = np.random.default_rng(0).normal(size=(tasks, n))
    return {"": OverTasks(tuple(Task("", tuple(row.tolist())) for row in draws))}


@pytest.mark.parametrize("looks", [(4, 6, 11), (2, 4, 10), (10, 20, 30), (4, 15)])
def test_a_false_claim_rarely_holds_after_several_looks_at_the_corrected_level(
    looks: Sequence[int],
) -> None:
    repeats = 1000

    def chance(level: float) -> float:
        return power.chance_of_holding(
            above(),
            plain(looks[-1]),
            0.0,
            np.random.default_rng(2),
            level=level,
            looks=looks,
            repeats=repeats,
        )

    assert chance(power.level_of(len(looks))) <= limit(repeats)
    # If each look were judged at the level for a single look, the claim would hold too
    # often.
    assert chance(power.level_of(1)) > limit(repeats)


@pytest.mark.slow
@pytest.mark.parametrize(
    "parts",
    [plain(n, tasks) for n, tasks in ((2, 1), (3, 1), (10, 1), (2, 2), (3, 3), (4, 4))],
)
def test_a_claim_rarely_holds_in_a_study_without_an_effect(
    parts: dict[str, OverTasks],
) -> None:
    repeats = 4000
    generator = np.random.default_rng(1)
    level = power.level_of(1)
    found = power.chance_of_holding(
        above(), parts, 0.0, generator, level=level, repeats=repeats
    )
    assert found <= limit(repeats)


@pytest.mark.parametrize(
    ("criterion", "center"),
    [(above(), 0.5), (above(some=True), 0.0), (equivalent(1.0), 0.3)],
)
def test_simulated_studies_are_judged_as_claims_are(
    criterion: Any, center: float
) -> None:
    generator = np.random.default_rng(3)
    verdicts = []
    for _ in range(60):
        parts = {
            name: power.simulated(plain(4), center, generator)[""] for name in "abc"
        }
        verdict = judge(criterion, Measurement(parts, "points"), level=0.95).verdict
        assert power.holds(criterion, parts, 0.95) == (verdict == HOLDS)
        verdicts.append(verdict == HOLDS)
    assert criterion.some or 0 < sum(verdicts) < 60


def test_power_of_a_paired_comparison_is_that_of_students_test() -> None:
    # For five differences with mean 1 and sd 1, the one-sided t test at 5 % has a power
    # of 0.601 (noncentral t).
    values = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]) / 2.5**0.5
    parts = {"": OverTasks((Task("", tuple(values.tolist())),))}
    generator = np.random.default_rng(0)
    found = power.chance_of_holding(
        above(), parts, 1.0, generator, level=power.level_of(1), repeats=2000
    )
    assert found == pytest.approx(0.601, abs=0.04)


@pytest.mark.parametrize("looks", [(3,), (5,), (10,), (3, 6), (4, 6, 11)])
def test_a_claim_rarely_holds_if_the_share_is_at_its_bound(
    looks: Sequence[int],
) -> None:
    # The exact rate follows from the probability of each number of hits among the
    # studies that continue.
    level = power.level_of(len(looks))
    going_on = {0: 1.0}
    false_holds = 0.0
    before = 0
    for n in looks:
        now: dict[int, float] = {}
        for hits, chance in going_on.items():
            for more in range(n - before + 1):
                one = chance * stats.binom.pmf(more, n - before, 0.5)
                now[hits + more] = now.get(hits + more, 0.0) + one
        going_on = {}
        for hits, chance in now.items():
            ends = Share(hits, n).estimate(level).ends
            if ends is not None and most().contains(ends):
                false_holds += chance
            else:
                going_on[hits] = chance
        before = n
    assert false_holds <= ALLOWED


# Whole records of sweeps. -------------------------------------------------------------


def held(
    claims: Sequence[Claim],
    name: str,
    make: Callable[[np.random.Generator], Any],
    repeats: int,
    design: str = "",
) -> float:
    """Share of simulated records in which a claim holds in its primary study.

    `make` returns the runs, or a list with the runs at each look. Its docstring and
    `design` name the simulation in docs/scorecard/criteria.md.
    """
    (claim,) = (each for each in claims if each.id == name)
    generator = np.random.default_rng(4)
    hits = 0
    for _ in range(repeats):
        made = make(generator)
        at_looks = [made] if isinstance(made, Runs) else made
        rows = [
            judge_all("paper", [claim], runs, profile=claim.primary)[0]
            for runs in at_looks
        ]
        hits += any(row["verdict"] == HOLDS for row in rows)
    found = hits / repeats
    doc = " ".join(str(getattr(make, "func", make).__doc__).split()).removesuffix(".")
    said = "; ".join(filter(None, (doc, design)))
    SIMULATED.setdefault((said, repeats), []).append(f"{name} {found:.3f}")
    return found


NUMBERS = (
    ("accuracy", "validation", False),
    ("accuracy", "test", False),
    ("nll", "test", True),
)
"""Metric, split and scaling of every number that the claims use."""


@dataclass(frozen=True)
class Sweeps:
    """The judged runs of some sweeps, whose numbers can be replaced.

    Attributes:
        runs: The training runs, with one value of each of `NUMBERS`.
        columns: For each sweep, the row indices of its values in `runs.measurements`,
            in shape (seeds, inverse temperatures × numbers).
    """

    runs: Runs
    columns: Mapping[str, np.ndarray[Any, Any]]

    @classmethod
    def among(cls, chosen: Where) -> "Sweeps":
        """The sweeps among the runs that a predicate selects."""
        runs = runs_in("temperature_check", "temperature_check").only(chosen)
        named = pd.Index(NUMBERS)
        kept = runs.measurements
        is_asked = pd.MultiIndex.from_frame(kept[["metric", "split", "scaled"]]).isin(
            named
        )
        last = kept["run"].map(runs.table["epochs_done"])
        kept = kept[is_asked & (kept["epoch"] == last)].reset_index(drop=True)
        runs = replace(runs, measurements=kept, tables={})
        about = kept.join(runs.table[["sweep", "inverse_temperature", SEED]], on="run")
        columns = {}
        for sweep, rows in about.groupby("sweep"):
            table = rows.astype({"metric": str, "split": str}).reset_index()
            table = table.pivot(
                index=SEED,
                columns=["metric", "split", "inverse_temperature"],
                values="index",
            )
            table = table.sort_index(axis="columns")
            by_number = [table[metric, split] for metric, split, _ in NUMBERS]
            table = pd.concat(by_number, axis="columns")
            assert not table.isna().any(axis=None)
            columns[str(sweep)] = table.to_numpy(int)
        return cls(runs, columns)

    def flat(
        self,
        generator: np.random.Generator,
        *,
        looks: Sequence[int] = (),
        equal_spread: bool = False,
    ) -> list[Runs]:
        """Simulate the sweeps without an effect of the inverse temperature.

        Numbers of the same seed have the same correlations as in the runs. With
        `looks`, return the runs of the first seeds at each look.
        """
        values = self.runs.measurements["value"].to_numpy(float).copy()
        for places in self.columns.values():
            measured = values[places]
            noise = power.Block((), measured).drawn(len(measured), generator)
            noise = noise.reshape(len(measured), len(NUMBERS), -1)
            if equal_spread:
                sds = measured.std(axis=0, ddof=1).reshape(len(NUMBERS), -1)
                noise *= sds.mean(axis=1, keepdims=True) / sds
            grouped = measured.reshape(noise.shape)
            drawn = grouped.mean(axis=(0, 2), keepdims=True) + noise
            values[places] = drawn.reshape(measured.shape)
        measurements = self.runs.measurements.assign(value=values)
        runs = replace(self.runs, measurements=measurements)
        first_seed = int(runs.table[SEED].min())
        return [
            runs.only(where(seed=at_most(first_seed + seeds - 1)))
            for seeds in looks or [int(runs.table[SEED].nunique())]
        ]


ON_SWEEPS = (
    "accuracy-depends-on-temperature",
    "not-a-matter-of-confidence",
    "tuning-helps-every-architecture",
    "tuning-is-key",
    "small-peaks-higher",
    "small-spreads-more",
)
LOOKS_AT_SWEEPS = SEEDS_AT_LOOKS["temperature_check", 3]


@cache
def committed_sweeps() -> Sweeps:
    return Sweeps.among(temperature_study.TEMPERATURES)


@cache
def committed_sweeps_from_one_start() -> Sweeps:
    return Sweeps.among(temperature_study.TEMPERATURES_FROM_ONE_START)


def flat_sweeps(generator: np.random.Generator) -> list[Runs]:
    """The committed sweeps, flat, with the covariance of their seeds; looks at 10, 20
    and 30 seeds.
    """
    return committed_sweeps().flat(generator, looks=LOOKS_AT_SWEEPS)


def flat_sweeps_of_equal_spread(generator: np.random.Generator) -> list[Runs]:
    """The committed sweeps, flat, noise alike everywhere; looks at 10, 20, 30 seeds."""
    return committed_sweeps().flat(generator, looks=LOOKS_AT_SWEEPS, equal_spread=True)


def flat_sweeps_from_one_start(generator: np.random.Generator) -> list[Runs]:
    """The committed sweep from one start, flat, with the covariance of its seeds."""
    return committed_sweeps_from_one_start().flat(generator)


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_SWEEPS)
def test_claims_rarely_hold_on_flat_sweeps_whatever_is_chosen_in_them(
    name: str,
) -> None:
    make = flat_sweeps_of_equal_spread if "spreads" in name else flat_sweeps
    assert held(temperature.CLAIMS, name, make, 100) <= limit(100)


def numbers_of(runs: Runs, metric: Metric) -> pd.DataFrame:
    """The GRU's values of a metric, in rows of seeds and columns of inverse
    temperatures.
    """
    chosen = runs.select(where(network="gru-64"))
    return table_by_seed(runs, chosen, metric, "inverse_temperature")


def test_flat_sweeps_have_the_noise_of_the_runs_and_no_effect() -> None:
    looks = flat_sweeps(np.random.default_rng(0))
    accuracy = temperature_study.ACCURACY
    tables = [numbers_of(runs, accuracy) for runs in looks]
    assert [len(table) for table in tables] == list(LOOKS_AT_SWEEPS)
    pd.testing.assert_frame_equal(tables[0], tables[-1][:10])
    measured = numbers_of(committed_sweeps().runs, accuracy)
    assert np.ptp(measured.mean()) > 0.1
    # At two inverse temperatures, the standard deviation over seeds is five percentage
    # points, so the means over 30 seeds still differ a little.
    assert np.ptp(tables[-1].mean()) < 0.03
    ratios = tables[-1].std() / measured.std()
    assert ratios.between(0.7, 1.4).all()
    validation = numbers_of(looks[-1], temperature_study.VALIDATION_ACCURACY)
    assert validation[0.01].corr(tables[-1][0.01]) > 0.9


@pytest.mark.slow
def test_the_claim_rarely_holds_on_flat_sweeps_from_one_start() -> None:
    name = "not-a-matter-of-confidence-at-the-start"
    found = held(temperature.CLAIMS, name, flat_sweeps_from_one_start, 150)
    assert found <= limit(150)


PLACES, RATES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0), (0.01, 0.1, 1.0)


def sweep(
    generator: np.random.Generator,
    name: str,
    accuracies: Sequence[float],
    *,
    seeds: int,
    confirm: int = 0,
    noise: float = 0.01,
    **start: Any,
) -> list[Row]:
    """A sweep with independent noise per training run; the middle rate is the best.

    A validation accuracy is the test accuracy plus more noise, with an sd of one point.
    """
    cells = [("tuning", rate, seed) for rate in RATES for seed in range(seeds)]
    cells += [("confirmation", RATES[1], seeds + seed) for seed in range(confirm)]
    rows = []
    for place, mean in zip(PLACES, accuracies, strict=False):
        for role, rate, seed in cells:
            accuracy = mean - 0.1 * (rate != RATES[1]) + noise * generator.normal()
            noisy = accuracy + 0.01 * generator.normal()
            row = training(name, place, rate, seed, accuracy, role=role, **start)
            numbers = {
                "validation": {"accuracy": noisy},
                "test": {"accuracy": accuracy},
                "scaled": {"nll": 1 - accuracy},
            }
            rows.append({**row, **numbers})
    return rows


def sweeps(
    generator: np.random.Generator, *, best: Sequence[int] = (), confirm: int = 0
) -> Runs:
    """Sweeps of three architectures on the same data."""
    peaks = [*best, *[None] * 3][:3]
    rows = []
    for net, peak in enumerate(peaks):
        accuracies = [0.7 + 0.05 * (column == peak) for column in range(len(PLACES))]
        rows += sweep(generator, f"net{net}", accuracies, seeds=2, confirm=confirm)
    return make_runs(rows)


@pytest.mark.slow
def test_architectures_with_one_best_place_rarely_differ() -> None:
    alike = partial(sweeps, best=(3, 3, 3), confirm=10)
    said = "the best inverse temperatures are the same, 10 seeds"
    found = held(temperature.CLAIMS, "best-depends-on-architecture", alike, 100, said)
    assert found <= limit(100)


@pytest.mark.slow
def test_best_places_that_differ_by_two_decades_are_found() -> None:
    apart = partial(sweeps, best=(1, 5, 1), confirm=10)
    said = "the best inverse temperatures lie two decades apart, 10 seeds"
    found = held(temperature.CLAIMS, "best-depends-on-architecture", apart, 50, said)
    assert found > 0.8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("accuracy-depends-weakly-on-logit-norm", 0.5),
        ("accuracy-depends-weakly-on-logit-norm-after-50-epochs", 0.2),
    ],
)
def test_a_norm_with_an_effect_at_the_bound_rarely_passes_for_weak(
    name: str, share: float
) -> None:
    epochs = 50.0 if name.endswith("50-epochs") else 5.0

    def at_bound(generator: np.random.Generator) -> Runs:
        """Sweeps in which norms matter as much as the bound says."""
        rows = sweep(generator, "net", [0.6, *[0.7] * 6], seeds=2, confirm=10)
        for norm in (0, 1, 10, 30, 100):
            accuracy = 0.7 - 0.1 * share * (norm == 100)
            start: Row = {"start": "norm", "start_norm": norm, "epochs": epochs}
            start |= {"initial_logit_norm": norm}
            of_norm = sweep(generator, "net-norms", [accuracy], seeds=5, **start)
            rows += [{**row, "inverse_temperature": 1.0} for row in of_norm]
        return make_runs(rows)

    assert held(temperature.CLAIMS, name, at_bound, 150) <= limit(150)


@pytest.mark.slow
def test_spreads_of_equal_variance_rarely_seem_to_fall() -> None:
    generator = np.random.default_rng(5)
    repeats = 1500
    hits = 0
    across = np.log10(PLACES)
    half = stats.t.ppf(0.95, len(PLACES) - 2)
    for _ in range(repeats):
        spreads = generator.normal(size=(len(PLACES), 10)).std(axis=1, ddof=1)
        line = stats.linregress(across, np.log(spreads))
        hits += line.slope + half * line.stderr < 0
    assert hits / repeats <= limit(repeats)


# Whole records of other kinds. --------------------------------------------------------


def unrelated(generator: np.random.Generator, *, dim: float = 0.0) -> Any:
    """21 data sets by eleven trained backbones: statistics and optima share data sets,
    and nothing else.
    """
    names = [
        (f"set{number}", f"net{other}") for number in range(21) for other in range(11)
    ]
    effects = generator.normal(size=(21, len(STATISTICS) + 1)).repeat(11, axis=0)
    values = 0.5 * effects + generator.normal(size=effects.shape)
    table = pd.DataFrame(values, columns=[*STATISTICS, "inverse_temperature"])
    table["inverse_temperature"] = 100 + 10 * (
        table["inverse_temperature"] + dim * table["dim"]
    )
    table[["dataset", "backbone"]] = names
    facts = {"task": "pair", "weights": "file", "own": True, "arm": "", "cell": "h/."}
    runs = table[["dataset", "backbone"]].assign(**facts).rename_axis(index="run")
    pairs = table.rename_axis(index="run").reset_index()
    return Runs(runs, pd.DataFrame(), {"pairs": pairs})


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "feats-corr-is-strongest",
        "feats-corr-is-strong",
        "several-beat-one",
        "four-beat-one",
        "prediction-is-significant",
    ],
)
def test_claims_rarely_hold_for_unrelated_statistics(name: str) -> None:
    assert held(classifier.CLAIMS, name, unrelated, 100) <= limit(100)


@pytest.mark.slow
def test_a_correlation_on_the_bound_rarely_passes_for_weak() -> None:
    def at_bound(generator: np.random.Generator) -> Any:
        """21 data sets by eleven trained backbones; r of the dimension is 0.3."""
        return unrelated(generator, dim=0.3 / (1 - 0.3**2) ** 0.5)

    assert held(classifier.CLAIMS, "dimension-is-weak", at_bound, 400) <= limit(400)


def noisy_curves(generator: np.random.Generator) -> Runs:
    """Two equal losses with a noisy ECE; validation data choose among 8 epochs."""
    table = [
        run("cifar10-net", arm, seed, dataset="cifar10", epochs_done=8)
        for arm in ("CE", "FLSD-53")
        for seed in range(3)
    ]
    values = []
    for number in range(len(table)):
        for epoch in range(1, 9):
            ece = 0.1 + 0.02 * generator.normal()
            for split in ("validation", "test"):
                scores = {
                    "accuracy": 0.7 + 0.01 * epoch + 0.01 * generator.normal(),
                    "nll": 1 + 0.1 * generator.normal(),
                    "ece": ece + 0.005 * generator.normal(),
                }
                at = {"run": number, "split": split, "epoch": epoch}
                values.append(at | scores)
    return runs_of(table, values)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "flsd-53-calibrates",
        "early-stopping-does-not-save-ce",
        "every-stopping-criterion-favours-flsd-53",
        "ece-rises-late-in-training",
    ],
)
def test_claims_rarely_hold_for_losses_without_a_difference(name: str) -> None:
    assert held(focal.CLAIMS, name, noisy_curves, 300) <= limit(300)

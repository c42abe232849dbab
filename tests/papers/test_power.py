"""No criterion says "holds" more than one time in twenty where there is no effect; what
it finds where there is one.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
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
    Criterion,
    above,
    judge_all,
    most,
)
from softmax_temperature.papers.shared.runs import Runs
from softmax_temperature.papers.shared.statistics import Share
from softmax_temperature.papers.shared.sweeps import common_slope
from softmax_temperature.papers.temperature_check import claims as temperature
from tests.papers.focal.made_runs import run, runs_of
from tests.papers.power import chance_of_holding
from tests.papers.temperature_check.conftest import Row, make_runs, training

ALLOWED = 0.05


def limit(repeats: int) -> float:
    """What a rate of 5 % reaches in fewer than one of a thousand simulations."""
    return float(ALLOWED + 3.1 * (ALLOWED * (1 - ALLOWED) / repeats) ** 0.5)


def part(*sizes: int, sd: float = 1.0) -> list[dict[str, Any]]:
    return [
        {"task": str(number), "n": n, "sd": sd, "value": 0.0}
        for number, n in enumerate(sizes)
    ]


def test_power_of_a_paired_comparison_is_that_of_students_test() -> None:
    # Of five differences with mean 1 and sd 1: the one-sided t test at 5 % has a power
    # of 0.601 (non-central t).
    generator = np.random.default_rng(0)
    found = chance_of_holding(
        above(), [part(5)], [1.0], 2000, generator, keep_spread=False
    )
    assert found == pytest.approx(0.601, abs=0.04)


SPREADS = np.array([-2, -1, 1, 2])
STUDIES = [
    *[
        (above(), [part(*sizes)])
        for sizes in (
            (2,),
            (3,),
            (10,),
            (2, 2),
            (3, 3),
            (3, 3, 3),
            (1, 1, 1, 1),
            (2, 5, 3),
        )
    ],
    # On average over the paper's tasks there is no effect, though there is one in each.
    *[
        (
            above(),
            [
                [
                    {**one, "value": value}
                    for one, value in zip(
                        part(3, 3, 3, 3), spread * SPREADS, strict=True
                    )
                ]
            ],
        )
        for spread in (0.5, 2.0)
    ],
    (above(some=True), [part(4)] * 5),
]


@pytest.mark.slow
@pytest.mark.parametrize(("criterion", "parts"), STUDIES)
def test_studies_without_an_effect_rarely_hold(
    criterion: Criterion, parts: list[list[dict[str, Any]]]
) -> None:
    generator, centers = np.random.default_rng(1), [0.0] * len(parts)
    assert chance_of_holding(
        criterion, parts, centers, 4000, generator, keep_spread=True
    ) <= limit(4000)


@pytest.mark.parametrize("n", [3, 5, 10])
def test_shares_at_the_bound_rarely_hold(n: int) -> None:
    hits = np.arange(n + 1)
    holds = [most().contains(Share(int(hit), n).estimate().ends) for hit in hits]
    assert stats.binom.pmf(hits, n, 0.5)[holds].sum() <= ALLOWED


SIMULATED: dict[tuple[str, int], list[str]] = {}
"""By simulated records and number of studies what `held` found, for docs/scorecard.md.
"""


def written(
    name: str, columns: Sequence[str], rows: Iterable[Iterable[object]]
) -> None:
    """Put a table between the markers of a name in the file that SCORECARD names, if it
    is set.
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


@pytest.fixture(scope="module", autouse=True)
def _table() -> Iterator[None]:
    """Write what was simulated from whole records."""
    yield
    if SIMULATED:
        rows = [
            (said, repeats, ", ".join(found))
            for (said, repeats), found in SIMULATED.items()
        ]
        written(
            "simulated",
            ("simulated records", "studies", "share of studies in which a claim holds"),
            rows,
        )


def held(
    claims: Sequence[Claim],
    name: str,
    make: Callable[[np.random.Generator], Any],
    repeats: int,
    design: str = "",
) -> float:
    """How often a claim holds on simulated records; what `make` says of itself and the
    design describe them.
    """
    (claim,) = (each for each in claims if each.id == name)
    generator = np.random.default_rng(4)
    rows = [
        judge_all("paper", [claim], make(generator), profile="study")[0]
        for _ in range(repeats)
    ]
    found = sum(row["verdict"] == HOLDS for row in rows) / repeats
    said = "; ".join(
        filter(
            None, (str(getattr(make, "func", make).__doc__).removesuffix("."), design)
        )
    )
    SIMULATED.setdefault((said, repeats), []).append(f"{name} {found:.3f}")
    return found


PLACES, RATES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0), (0.01, 0.1, 1.0)


def sweep(
    generator: np.random.Generator,
    name: str,
    accuracies: Sequence[float],
    *,
    seeds: int,
    confirm: int = 0,
    noise: Sequence[float] = (0.01,) * len(PLACES),
    **start: Any,
) -> list[Row]:
    """A sweep whose best rate is inside, with independent noise of each training on
    both kinds of held-out data.
    """
    cells = [("tuning", rate, seed) for rate in RATES for seed in range(seeds)]
    cells += [("confirmation", RATES[1], seeds + seed) for seed in range(confirm)]
    rows = []
    for place, mean, sd in zip(PLACES, accuracies, noise, strict=False):
        for role, rate, seed in cells:
            accuracy = mean - 0.1 * (rate != RATES[1]) + sd * generator.normal()
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
    generator: np.random.Generator, *, best: Sequence[int] = (), **design: Any
) -> Runs:
    """Sweeps of four architectures."""
    peaks = [*best, *[None] * 4][:4]
    rows = []
    for net, peak in enumerate(peaks):
        accuracies = [0.7 + 0.05 * (column == peak) for column in range(len(PLACES))]
        rows += sweep(generator, f"net{net}", accuracies, **design)
    return make_runs(rows)


CONFIRMED = "2 seeds to choose by, 10 to confirm"
NOISIER = f"{CONFIRMED}, small inverse temperatures noisier"
DESIGNS: dict[str, dict[str, Any]] = {
    "3 seeds": {"seeds": 3},
    CONFIRMED: {"seeds": 2, "confirm": 10},
    NOISIER: {
        "seeds": 2,
        "confirm": 10,
        "noise": (0.04, 0.03, 0.02, 0.01, 0.01, 0.01, 0.01),
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize(
    "name",
    [
        "accuracy-depends-on-temperature",
        "not-a-matter-of-confidence",
        "tuning-helps-every-architecture",
        "best-depends-on-architecture",
        "small-peaks-higher",
        "small-spreads-more",
    ],
)
def test_flat_sweeps_rarely_hold_whatever_is_chosen_in_them(
    name: str, design: str
) -> None:
    if (name, design) == ("small-spreads-more", NOISIER):
        pytest.skip("here the claim is true")
    assert held(
        temperature.CLAIMS,
        name,
        partial(sweeps, **DESIGNS[design]),
        120,
        f"no effect, {design}",
    ) <= limit(120)


@pytest.mark.slow
def test_flat_sweeps_from_one_start_rarely_hold() -> None:
    flat, said = (
        partial(sweeps, start="norm", start_norm=1.0, **DESIGNS[CONFIRMED]),
        f"no effect, all from one start, {CONFIRMED}",
    )
    assert held(
        temperature.CLAIMS, "not-a-matter-of-confidence-at-the-start", flat, 120, said
    ) <= limit(120)


@pytest.mark.slow
def test_a_norm_with_half_the_effect_of_the_temperature_rarely_passes_for_weak() -> (
    None
):
    def at_bound(generator: np.random.Generator) -> Runs:
        """Sweeps in which norms matter half as much as inverse temperatures."""
        rows = sweep(generator, "net", [0.6, *[0.7] * 6], seeds=2, confirm=10)
        for norm, accuracy in ((0, 0.7), (1, 0.7), (10, 0.7), (30, 0.7), (100, 0.65)):
            start: Row = {"start": "norm", "start_norm": norm}
            start |= {"initial_logit_norm": norm}
            of_norm = sweep(generator, "net-norms", [accuracy], seeds=5, **start)
            rows += [{**row, "inverse_temperature": 1.0} for row in of_norm]
        return make_runs(rows)

    assert held(
        temperature.CLAIMS, "accuracy-depends-weakly-on-logit-norm", at_bound, 150
    ) <= limit(150)


@pytest.mark.slow
@pytest.mark.parametrize("design", ["3 seeds", CONFIRMED])
def test_best_places_that_differ_by_two_decades_are_found(design: str) -> None:
    apart = partial(sweeps, best=(1, 5, 1, 5), **DESIGNS[design])
    said = f"the best inverse temperatures lie two decades apart, {design}"
    assert (
        held(temperature.CLAIMS, "best-depends-on-architecture", apart, 50, said) > 0.8
    )


@pytest.mark.slow
def test_slopes_of_spreads_of_equal_variance_rarely_hold() -> None:
    generator, hits, repeats = np.random.default_rng(5), 0, 1500
    names, places = (
        np.repeat([*"abcd"], 7),
        np.tile(np.log10([0.01, 0.03, 0.1, 0.3, 1, 3, 10]), 4),
    )
    for _ in range(repeats):
        spreads = np.log(generator.normal(size=(28, 3)).std(axis=1, ddof=1))
        slope, error, _ = common_slope(
            pd.DataFrame({"sweep": names, "x": places, "y": spreads}), "sweep"
        )
        hits += (
            slope + 1.7138715 * error < 0
        )  # Student's t with 23 degrees of freedom, 90 %.
    assert hits / repeats <= limit(repeats)


def unrelated(generator: np.random.Generator, *, dim: float = 0.0) -> Any:
    """Twelve data sets by eight backbones: statistics and optima share data sets, and
    nothing else.
    """
    names = [
        (f"set{number}", f"net{other}") for number in range(12) for other in range(8)
    ]
    effects = generator.normal(size=(12, len(STATISTICS) + 1)).repeat(8, axis=0)
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
    "name", ["feats-corr-is-strongest", "several-beat-one", "prediction-is-significant"]
)
def test_unrelated_statistics_rarely_hold(name: str) -> None:
    assert held(classifier.CLAIMS, name, unrelated, 100) <= limit(100)


@pytest.mark.slow
def test_a_correlation_on_the_bound_rarely_passes_for_weak() -> None:
    def at_bound(generator: np.random.Generator) -> Any:
        """Twelve data sets by eight backbones; r of the dimension is 0.3."""
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
def test_losses_without_a_difference_rarely_hold(name: str) -> None:
    assert held(focal.CLAIMS, name, noisy_curves, 300) <= limit(300)

"""The tables of docs/calibration_intervals.md match simulations of the coverage."""

import pytest

from benchmarks.interval_coverage import (
    COMPARED,
    ERRORS,
    PAGE,
    SCORES,
    SETTINGS,
    TOLD,
    Setting,
    count_verdicts,
    measure,
    table_of_verdicts,
)

# Each coverage is a share of 200 samples, so at 0.90 its standard error is 0.021.
LEAST_OF_SCORES = 0.82
LEAST = 0.87  # 90 % intervals must cover the truth in at least this share of samples.


def documented(setting: Setting, name: str) -> list[float]:
    """The documented coverages of a metric: before scaling, after scaling, and for the
    change.
    """
    rows = [
        [cell.strip() for cell in line.strip("|\n").split("|")]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith(f"| {setting} | {name} |")
    ]
    (row,) = rows
    # In the page's table of errors, two columns of true values precede the coverages.
    first = 4 if name in ERRORS.values() else 2
    return [float(cell) / 100 for cell in row[first : first + 3]]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("name", ERRORS.values())
def test_the_documented_intervals_cover(setting: Setting, name: str) -> None:
    assert min(documented(setting, name)) >= LEAST


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("name", SCORES.values())
def test_the_documented_intervals_of_scores_cover(setting: Setting, name: str) -> None:
    assert min(documented(setting, name)) >= LEAST_OF_SCORES


@pytest.mark.slow
@pytest.mark.timeout(900)  # Enough even if the machine is busy.
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_intervals_cover_the_value_of_the_population(setting: Setting) -> None:
    found = measure(setting)
    for key, name in ERRORS.items():
        assert min(found.covered[key]) >= LEAST, name
        assert found.covered[key] == pytest.approx(documented(setting, name), abs=0.04)
    for key, name in SCORES.items():
        assert min(found.covered[key]) >= LEAST_OF_SCORES, name
        assert found.covered[key] == pytest.approx(documented(setting, name), abs=0.04)
    assert found.temperature >= LEAST - 0.02
    if setting.temperature == 1:
        assert found.advised <= 0.05


def test_the_documented_verdicts_are_those_of_the_program() -> None:
    temperature, rows = TOLD[-1]
    setting = Setting(rows, 5, temperature, 3.0)
    table = table_of_verdicts({setting: count_verdicts(setting)})
    text = PAGE.read_text(encoding="utf-8").partition("<!-- verdicts -->")[2]
    (line,) = (one for one in text.splitlines() if one.startswith("| 2 | 18 % | 800"))
    counts = [int(cell) for cell in line.strip("| ").split(" | ")[3:]]
    found = [int(cell) for cell in table.splitlines()[-1].strip("| ").split(" | ")[3:]]
    assert sum(counts) == sum(found) == COMPARED
    # Another machine may round differently, which changes few verdicts.
    assert counts[:2] == pytest.approx(found[:2], abs=2)

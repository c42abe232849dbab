"""Effects over trainings: what the claims of the paper are judged by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from softmax_temperature.papers.cooling.outcomes import is_lost
from softmax_temperature.papers.cooling.selection import (
    CROSS_ENTROPY,
    FIGURE_1,
    NO_COOLING,
    NO_SCHEDULE,
    OURS,
    SETTING,
    SIMPLEST,
    STANDARD_FACTOR,
    TABLE_1,
    last_layer_factors,
    standard,
    trainings,
)

if TYPE_CHECKING:
    from softmax_temperature.papers.cooling.records import Records

MAIN_RATE = 0.01  # Section 4.2; profiles that sweep learning rates keep it.


def with_accuracy(rows: pd.DataFrame) -> pd.DataFrame:
    """Trainings with the column `accuracy`: that on test data; of a lost one that of guessing, 1 / classes."""
    return rows.assign(accuracy=rows["test_accuracy"].where(~is_lost(rows), 1 / rows["classes"]))


def factor_gains(rows: pd.DataFrame) -> pd.Series[float]:
    """Accuracy of last layer Cooling with each factor minus that without Cooling.

    Returns:
        A number for each pair, by dataset, network, factor and seed.
    """
    without = rows[rows["mode"] == NO_COOLING].set_index([*SETTING, "seed"])["accuracy"]
    cooled = rows[rows["mode"] == SIMPLEST].set_index([*SETTING, "factor", "seed"])["accuracy"]
    pairs = cooled.to_frame().join(without.rename("without"), how="inner")
    difference: pd.Series[float] = (pairs["accuracy"] - pairs["without"]).droplevel("activation")
    return difference


def figure_1_trainings(records: Records) -> pd.DataFrame:
    """The trainings of Figure 1, with the column `accuracy`: no Cooling, and last layer Cooling with every factor.

    Only settings that have a factor beside 1 are in it.
    """
    rows = trainings(records, FIGURE_1, TABLE_1)
    # Deviation: the schedule of Figure 1 is not said. Its baseline and its best gain, 4.6 points, are those of Table 1
    # without a schedule.
    rows = rows[rows["schedule"] == NO_SCHEDULE]
    without = standard(rows[rows["mode"] == NO_COOLING])
    cooled = last_layer_factors(rows)
    varied = cooled[cooled["factor"] != STANDARD_FACTOR][SETTING].drop_duplicates()
    return with_accuracy(pd.concat([without, cooled]).merge(varied, on=SETTING))


def rate_trainings(records: Records) -> pd.DataFrame:
    """Ours: no Cooling and last layer Cooling without a schedule, with several learning rates on one setting.

    Returns:
        The trainings, those of the main recipe too, with the column learning_rate.
    """
    rows = trainings(records, OURS)
    rate = rows["change"].str.extract(r"^learning rate ([0-9.e+-]+)$")[0].astype(float)
    changed = rows.assign(learning_rate=rate).dropna(subset=["learning_rate"])
    main = standard(trainings(records, TABLE_1)).assign(learning_rate=MAIN_RATE)
    rows = pd.concat([changed, main.merge(changed[SETTING].drop_duplicates(), on=SETTING)])
    plain = (rows["loss"] == CROSS_ENTROPY) & (rows["schedule"] == NO_SCHEDULE)
    return rows[plain & rows["mode"].isin([NO_COOLING, SIMPLEST])]

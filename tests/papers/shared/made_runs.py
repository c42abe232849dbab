"""Made-up runs, with contrasts worked out by hand."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from softmax_temperature.papers.shared.runs import Runs, long_form

FACTORS = {
    "study": "made",
    "dataset": "cifar10",
    "network": "vgg",
    "own": True,
    "diverged": False,
    "stuck": False,
    "epochs_done": 3,
}


def runs_of(
    rows: Iterable[Mapping[str, Any]], *, metric: str = "accuracy", split: str = "test"
) -> Runs:
    """Runs with values after three epochs: `value` - 0.2, `value` - 0.1 and `value`.

    Factors that are not given come from `FACTORS`; the label `arm` is the run's loss.
    """
    table = []
    values = []
    for number, row in enumerate(rows):
        factors = {**FACTORS, **row}
        value = factors.pop("value")
        seed = factors["seed"]
        cell = f"made/{factors.get('loss', 'ce')}-{number}/{seed}"
        arm = factors.get("loss", "ce")
        table.append({**factors, "arm": arm, "cell": cell})
        for epoch in (1, 2, 3):
            at = {"run": number, "split": split, "epoch": epoch, "scaled": False}
            values.append({**at, metric: value - 0.1 * (3 - epoch)})
    return Runs(
        pd.DataFrame(table).rename_axis(index="run"), long_form(pd.DataFrame(values))
    )

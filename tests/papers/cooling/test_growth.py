"""The temperature of the last layer, followed by hand and beside the method itself."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from softmax_temperature.cooling import Cooling
from softmax_temperature.papers.cooling.records import Records
from softmax_temperature.papers.cooling.selection import crossing_pairs, crossings, growth, trainings
from tests.papers.cooling.conftest import only

HEAT = (8, 1.5, 2, 3, 0.5, 2)  # What the last layer is multiplied by before each Cooling.


def test_a_temperature_that_is_never_reached_has_no_epoch(records: Records) -> None:
    assert set(crossings(records)[["mode", "epoch"]].itertuples(index=False)) == {("periodic", 5), ("last_layer", 6)}
    early = replace(records, temperatures=records.temperatures[records.temperatures["cooling"] <= 4])
    assert crossings(early)["epoch"].isna().all()
    assert crossings(only(records, experiment="adam")).empty


def crossing(mode: str, seed: int, epoch: float, last: int) -> dict[str, object]:
    place = {"dataset": "cifar10", "network": "small-vgg", "activation": "relu"}
    return {**place, "mode": mode, "seed": seed, "epoch": epoch, "last": last, "limit": 100.0}


def test_a_pair_counts_where_it_tells_which_was_first() -> None:
    never = float("nan")
    pairs = [
        ((9, 50), (19, 50)),
        ((9, 50), (never, 50)),  # The slow one later than epoch 50.
        ((never, 50), (30, 50)),
        ((never, 50), (never, 50)),  # Nobody knows.
        ((9, 50), (never, 4)),  # The slow one ended before epoch 9.
    ]
    rows = [
        crossing(mode, seed, *side)
        for seed, sides in enumerate(pairs)
        for mode, side in zip(("periodic", "last_layer"), sides, strict=True)
    ]
    alone = crossing("periodic", 5, 9, 50)
    found = crossing_pairs(pd.DataFrame([*rows, alone])).reset_index()
    assert found["seed"].tolist() == [0, 1, 2]
    assert found["difference"].tolist() == [-10, 9 - 51, 51 - 30]
    assert found["never"].tolist() == ["", "last_layer", "periodic"]


def test_periodic_cooling_that_never_redistributes_is_told(records: Records) -> None:
    def never(highest: float) -> pd.DataFrame:
        rows = trainings(replace(records, arms=records.arms.assign(max_temperature=highest)), "table_1")
        return rows[rows["never"]]

    assert never(100.0).empty, "its products reach 320"
    assert set(never(1000.0)["mode"]) == {"periodic"}
    assert len(never(1000.0)) == (trainings(records, "table_1")["mode"] == "periodic").sum()
    assert len(never(200.0)) == len(never(1000.0)), "exceeded at the last Cooling alone"


def test_it_is_what_the_method_keeps_in_the_last_layer(records: Records) -> None:
    torch.manual_seed(0)
    images = torch.randn(256, 5, dtype=torch.float64)
    network = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3)).double().eval()
    labels = torch.distributions.Categorical(logits=8 * network(images)).sample()
    cooling = Cooling(network, mode="periodic", max_temperature=2.0, reset_temperature=1.5)
    rows, kept = [], []
    for number, heat in enumerate(HEAT, start=1):
        with torch.no_grad():
            network[2].weight *= heat
            network[2].bias *= heat
            applied = cooling.cool(network(images), labels)
        rows.append({"cooling": number, "epoch": number, "applied": applied, "total": 1.0, "at_bound": False})
        kept.append(cooling.temperature)
    run = {"experiment": "vgg", "schedule": "none", "arm": "periodic", "seed": 0}
    arms = records.arms.assign(max_temperature=2.0, reset_temperature=1.5)
    followed = growth(replace(records, arms=arms, temperatures=pd.DataFrame([{**run, **row} for row in rows])))
    assert followed["kept"].tolist() == pytest.approx(kept)
    assert followed["reset"].any()
    assert not followed["reset"].all()
    assert np.isfinite(followed["reached"]).all()

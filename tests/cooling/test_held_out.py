"""The callbacks refuse held-out data that cannot be read again after every epoch."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from softmax_temperature import Cooling
from softmax_temperature.cooling.callbacks import lightning_callback, trainer_callback

INPUTS = torch.randn(60, 4, generator=torch.manual_seed(0))
LABELS = torch.arange(60) % 2
DATA = TensorDataset(INPUTS, LABELS)
UNREADABLE: dict[str, Callable[[], Any]] = {
    "generator": lambda: (batch for batch in DataLoader(DATA, 30)),
    "zip": lambda: zip(INPUTS.split(30), LABELS.split(30), strict=True),
    "no batches": list,
    "data set": lambda: DATA,
    "NoneType": lambda: None,
}
WRONG: dict[str, Any] = {
    "tuple of 3": (INPUTS, LABELS, LABELS),
    "dict with 'x', 'y'": {"x": INPUTS, "y": LABELS},
    "list of 1": [INPUTS],
    "Tensor": INPUTS,
}


@pytest.mark.parametrize("make", [lightning_callback, trainer_callback])
@pytest.mark.parametrize("case", UNREADABLE)
def test_unreadable_held_out_data_is_refused_before_the_training(
    case: str, make: Callable[..., Any]
) -> None:
    with pytest.raises(ValueError, match=case):
        make(Cooling(nn.Linear(4, 2)), UNREADABLE[case]())


@pytest.mark.parametrize("case", WRONG)
def test_batches_of_another_form_are_refused_and_the_mode_is_restored(
    case: str,
) -> None:
    network = nn.Linear(4, 2)
    callback: Any = lightning_callback(Cooling(network), [WRONG[case]])
    module = SimpleNamespace(device="cpu", modules=network.modules, eval=network.eval)
    with pytest.raises(ValueError, match=f"batches .inputs, labels., got a {case}"):
        callback.on_train_epoch_end(SimpleNamespace(optimizers=[]), module)
    assert network.training


@pytest.mark.parametrize("case", WRONG)
def test_batches_without_labels_are_refused(case: str) -> None:
    network = nn.Linear(4, 2)
    callback: Any = trainer_callback(Cooling(network), [WRONG[case]])
    with pytest.raises(ValueError, match=f"with 'labels', got a {case}"):
        callback.on_epoch_end(
            SimpleNamespace(device="cpu"), None, None, model=network, optimizer=None
        )

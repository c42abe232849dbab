"""Callbacks that apply Cooling in Lightning and in Hugging Face's Trainer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from softmax_temperature.cooling.method import Cooling

if TYPE_CHECKING:
    from lightning.pytorch import Callback
    from transformers import TrainerCallback


def lightning_callback(
    cooling: Cooling, held_out: Iterable[tuple[Tensor, Tensor]], *, policy: str = "keep"
) -> Callback:
    """Return a Lightning callback that applies Cooling after every training epoch.

    Needs the package lightning. For example,
    `Trainer(callbacks=[lightning_callback(Cooling(module.network), loader)])`.

    Args:
        cooling: The `Cooling` object for the network inside the LightningModule; that
            network returns logits (n, classes, ...).
        held_out: Batches (inputs, labels) that the network is not trained on, such as a
            DataLoader.
        policy: Treatment of the optimizer's state, see `rescale_optimizer_state`. With
            several optimizers, only "keep" is possible; "rescale" raises ValueError
            when the network is cooled.
    """
    from lightning.pytorch import Callback

    class CoolingCallback(Callback):
        def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
            def predicted(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
                inputs, labels = (part.to(pl_module.device) for part in batch)
                return cooling.model(inputs), labels

            optimizer = None
            if len(trainer.optimizers) == 1:
                optimizer = trainer.optimizers[0]
            predictions = map(predicted, held_out)
            _cool(cooling, pl_module, predictions, optimizer=optimizer, policy=policy)

    return CoolingCallback()


def trainer_callback(
    cooling: Cooling, held_out: Iterable[dict[str, Tensor]], *, policy: str = "keep"
) -> TrainerCallback:
    """Return a Hugging Face Trainer callback that applies Cooling after every epoch.

    Needs the package transformers. For example:

        callback = trainer_callback(Cooling(model.classifier), loader)
        Trainer(model, ..., callbacks=[callback])

    Args:
        cooling: The `Cooling` object for the part of the model that returns logits (n,
            classes) as a tensor, such as `model.classifier`. The model must compute its
            loss from the output of that part.
        held_out: Batches with `labels` that the model is not trained on, such as a
            DataLoader.
        policy: Treatment of the optimizer's state, see `rescale_optimizer_state`.
    """
    from transformers import TrainerCallback

    class CoolingCallback(TrainerCallback):
        def on_epoch_end(
            self,
            args: Any,
            state: Any,  # noqa: ARG002
            control: Any,  # noqa: ARG002
            **loop: Any,
        ) -> None:
            def predicted(batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
                moved = {name: part.to(args.device) for name, part in batch.items()}
                return model(**moved).logits, moved["labels"]

            model = loop["model"]
            optimizer = loop["optimizer"]
            # Accelerate wraps the optimizer, so take the optimizer inside the wrapper.
            optimizer = getattr(optimizer, "optimizer", optimizer)
            predictions = map(predicted, held_out)
            _cool(cooling, model, predictions, optimizer=optimizer, policy=policy)

    return CoolingCallback()


def _cool(
    cooling: Cooling,
    model: nn.Module,
    predictions: Iterable[tuple[Tensor, Tensor]],
    **options: Any,
) -> None:
    """Compute all predictions in evaluation mode, then pass them to `cooling.cool`."""
    # Record the mode of each module to restore it later, because some modules may be
    # frozen in evaluation mode.
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    with torch.no_grad():
        logits, labels = zip(*predictions, strict=True)
    for module, training in modes:
        module.training = training
    cooling.cool(torch.cat(logits), torch.cat(labels), **options)

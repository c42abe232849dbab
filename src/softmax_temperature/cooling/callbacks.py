"""Cooling in other people's training loops: callbacks for Lightning and for Hugging
Face's Trainer.
"""

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
    """Cool after every training epoch of Lightning's Trainer; needs the package
    lightning.

    Args:
        cooling: Holds the network inside the LightningModule, which returns logits (n,
            classes, ...).
        held_out: Batches (inputs, labels) that the network is not trained on, such as a
            DataLoader.
        policy: What happens to the state of a single optimizer, see
            `rescale_optimizer_state`.

    For example, `Trainer(callbacks=[lightning_callback(Cooling(module.network),
    loader)])`.
    """
    from lightning.pytorch import Callback

    class CoolingCallback(Callback):
        def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
            def predicted(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
                inputs, labels = (part.to(pl_module.device) for part in batch)
                return cooling.model(inputs), labels

            optimizer = trainer.optimizers[0] if len(trainer.optimizers) == 1 else None
            _cool(
                cooling,
                pl_module,
                map(predicted, held_out),
                optimizer=optimizer,
                policy=policy,
            )

    return CoolingCallback()


def trainer_callback(
    cooling: Cooling, held_out: Iterable[dict[str, Tensor]], *, policy: str = "keep"
) -> TrainerCallback:
    """Cool after every training epoch of Hugging Face's Trainer; needs the package
    transformers.

    Args:
        cooling: Holds the part of the model that returns logits (n, classes) as a
            tensor, such as `model.classifier`: the model computes its loss from what
            that part returns.
        held_out: Batches with `labels` that the model is not trained on, such as a
            DataLoader.
        policy: What happens to the state of the optimizer, see
            `rescale_optimizer_state`.

    For example, `Trainer(model, ...,
    callbacks=[trainer_callback(Cooling(model.classifier), loader)])`.
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
                return loop["model"](**moved).logits, moved["labels"]

            optimizer = getattr(
                loop["optimizer"], "optimizer", loop["optimizer"]
            )  # Accelerate wraps it.
            _cool(
                cooling,
                loop["model"],
                map(predicted, held_out),
                optimizer=optimizer,
                policy=policy,
            )

    return CoolingCallback()


def _cool(
    cooling: Cooling,
    model: nn.Module,
    predictions: Iterable[tuple[Tensor, Tensor]],
    **options: Any,
) -> None:
    """Cool with predictions that are made, one by one, while the model is in evaluation
    mode.
    """
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    with torch.no_grad():
        logits, labels = (torch.cat(parts) for parts in zip(*predictions, strict=True))
    for module, training in modes:  # Some may be frozen in evaluation mode.
        module.training = training
    cooling.cool(logits, labels, **options)

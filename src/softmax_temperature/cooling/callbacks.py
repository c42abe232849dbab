"""Callbacks that apply Cooling in Lightning and in Hugging Face's Trainer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sized
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from softmax_temperature.cooling.held_out_logits import warn_of_training_without
from softmax_temperature.cooling.method import Cooling
from softmax_temperature.cooling.trained_rows import check_untrained
from softmax_temperature.metrics.checks import ArgumentError, check_one_tensor

if TYPE_CHECKING:
    from lightning.pytorch import Callback
    from transformers import TrainerCallback

GIVE_BATCHES = (
    "Give a DataLoader or a list of batches that the model is not trained on."
)
LIGHTNING_REMEDY = (
    "Give Cooling the module that training_step calls, such as Cooling(module.network)."
)
TRAINER_REMEDY = (
    "Give Cooling the part of the model whose output the loss uses, such as "
    "Cooling(model.classifier)."
)


def lightning_callback(
    cooling: Cooling, held_out: Iterable[tuple[Tensor, Tensor]], *, policy: str = "keep"
) -> Callback:
    """Return a Lightning callback that applies Cooling after every training epoch.

    This function needs the package lightning. Example:
    `Trainer(callbacks=[lightning_callback(Cooling(module.network), loader)])`.

    Args:
        cooling: The `Cooling` object for the network inside the LightningModule; that
            network returns logits (n, classes, ...). It must be the module that
            `training_step` calls: with `Cooling(module)` and a step that calls
            `self.network(x)`, the loss would not use the cooled logits, and the
            callback warns.
        held_out: Batches (inputs, labels) that the network is not trained on, such as a
            DataLoader. When training starts, the callback raises ValueError if they are
            evidently training data: the Trainer's own loader, rows of the same data
            set, or views of the same tensors. It does not see copies.
        policy: Treatment of the optimizer's state, see `rescale_optimizer_state`. With
            several optimizers, only "keep" is possible; "rescale" raises ValueError
            when the network is cooled.
    """
    from lightning.pytorch import Callback

    _check_held_out(held_out)

    class CoolingCallback(Callback):
        def __init__(self) -> None:
            self._watch = _Watch(cooling, LIGHTNING_REMEDY)

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
            check_untrained(held_out, getattr(trainer, "train_dataloader", None))

        def on_train_batch_end(self, *_: Any, **__: Any) -> None:
            self._watch.after_step()

        def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
            self._watch.after_epoch()

            def predicted(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
                _check_pair(batch)
                inputs, labels = (part.to(pl_module.device) for part in batch)
                logits = cooling.model(inputs)
                check_one_tensor(logits, "cooling.model", "cooled")
                return logits, labels

            optimizer = None
            if len(trainer.optimizers) == 1:
                optimizer = trainer.optimizers[0]
            elif policy == "rescale":
                raise ArgumentError(
                    "policy 'rescale' needs a Trainer with one optimizer, got "
                    f"{len(trainer.optimizers)}",
                    "Give the callback policy 'keep'.",
                )
            predictions = map(predicted, held_out)
            _cool(cooling, pl_module, predictions, optimizer=optimizer, policy=policy)

    return CoolingCallback()


def trainer_callback(
    cooling: Cooling, held_out: Iterable[dict[str, Tensor]], *, policy: str = "keep"
) -> TrainerCallback:
    """Return a Hugging Face Trainer callback that applies Cooling after every epoch.

    This function needs the package transformers. Example:

        callback = trainer_callback(Cooling(model.classifier), loader)
        Trainer(model, ..., callbacks=[callback])

    Args:
        cooling: The `Cooling` object for the part of the model that returns logits (n,
            classes) as a tensor, such as `model.classifier`. The model must compute its
            loss from the output of that part; the callback warns if no training step
            has called it.
        held_out: Batches with `labels` that the model is not trained on, such as a
            DataLoader. When training starts, the callback raises ValueError if they are
            evidently training data: rows of the Trainer's own data set. It does not see
            copies, such as a data set of which the Trainer has removed columns.
        policy: Treatment of the optimizer's state, see `rescale_optimizer_state`.
    """
    from transformers import TrainerCallback

    _check_held_out(held_out)

    class CoolingCallback(TrainerCallback):
        def __init__(self) -> None:
            self._watch = _Watch(cooling, TRAINER_REMEDY)

        def on_train_begin(self, *_: Any, **loop: Any) -> None:
            check_untrained(held_out, loop.get("train_dataloader"))

        def on_step_end(self, *_: Any, **__: Any) -> None:
            self._watch.after_step()

        def on_epoch_end(
            self,
            args: Any,
            state: Any,  # noqa: ARG002
            control: Any,  # noqa: ARG002
            **loop: Any,
        ) -> None:
            self._watch.after_epoch()

            def predicted(batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
                _check_named(batch)
                moved = {name: part.to(args.device) for name, part in batch.items()}
                output = model(**moved)
                if isinstance(output, Mapping) and "logits" in output:
                    return output["logits"], moved["labels"]
                return output.logits, moved["labels"]

            model = loop["model"]
            optimizer = loop["optimizer"]
            # Accelerate wraps the optimizer, so take the optimizer inside the wrapper.
            optimizer = getattr(optimizer, "optimizer", optimizer)
            predictions = map(predicted, held_out)
            _cool(cooling, model, predictions, optimizer=optimizer, policy=policy)

    return CoolingCallback()


class _Watch:
    """Warns once if an epoch has trained without the network that is cooled."""

    def __init__(self, cooling: Cooling, remedy: str) -> None:
        self._cooling = cooling
        self._remedy = remedy
        self._trained = False
        self._warned = False

    def after_step(self) -> None:
        """Record that a training step has run."""
        self._trained = True

    def after_epoch(self) -> None:
        """Warn if the steps of the epoch have not called the network."""
        if self._trained and not self._warned:
            # The warning names this module, because many users ignore the warnings that
            # name the trainer's library.
            self._warned = warn_of_training_without(
                self._cooling.model, self._remedy, stacklevel=2
            )
        self._trained = False


def _check_held_out(held_out: Any) -> None:
    """Refuse held-out batches that cannot be read after every epoch."""
    if isinstance(held_out, Iterator):
        raise ArgumentError(
            f"held_out is read after every epoch, but a {type(held_out).__name__} can "
            "be read only once",
            "Give a DataLoader or a list of batches.",
        )
    if isinstance(held_out, Tensor | Mapping) or not (
        hasattr(held_out, "__iter__") or hasattr(held_out, "__getitem__")
    ):
        raise ArgumentError(
            f"held_out must be batches, got {type(held_out).__name__}", GIVE_BATCHES
        )
    if isinstance(held_out, Sized) and not len(held_out):
        raise ArgumentError("held_out has no batches", GIVE_BATCHES)
    if isinstance(held_out, Dataset):
        raise ArgumentError(
            f"held_out must be batches, got a data set ({type(held_out).__name__})",
            "Give DataLoader(held_out, batch_size=...).",
        )


def _check_pair(batch: Any) -> None:
    """Refuse a batch that is not (inputs, labels)."""
    if (
        not isinstance(batch, tuple | list)
        or len(batch) != 2
        or not all(isinstance(part, Tensor) for part in batch)
    ):
        raise ArgumentError(
            f"held_out must give batches (inputs, labels), got {_described(batch)}",
            "Give batches of these two tensors, as a collate_fn of the DataLoader can.",
        )


def _check_named(batch: Any) -> None:
    """Refuse a batch that is not a dictionary with labels."""
    if not isinstance(batch, Mapping) or "labels" not in batch:
        raise ArgumentError(
            "held_out must give dictionaries of tensors with 'labels', got "
            f"{_described(batch)}",
            "Name the labels 'labels', as a collate_fn of the DataLoader can.",
        )


def _described(batch: Any) -> str:
    if isinstance(batch, Mapping):
        return f"a {type(batch).__name__} with {', '.join(map(repr, batch))}"
    parts = f" of {len(batch)} parts" if isinstance(batch, tuple | list) else ""
    return f"a {type(batch).__name__}{parts}"


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
    try:
        with torch.no_grad():
            pairs = list(predictions)
    finally:
        for module, training in modes:
            module.training = training
    if not pairs:
        raise ArgumentError("held_out has no batches", GIVE_BATCHES)
    logits, labels = zip(*pairs, strict=True)
    cooling.cool(torch.cat(logits), torch.cat(labels), **options)

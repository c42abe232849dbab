"""A cell that trains one network, and its output files."""

from collections.abc import Mapping
from typing import Any

from safetensors.torch import save_model
from torch import Tensor, nn

from softmax_temperature.data.logits import Logits, write_logits
from softmax_temperature.losses.base import Loss
from softmax_temperature.networks.registry import WEIGHTS, count_parameters
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.cells import Job
from softmax_temperature.training.samples import Samples
from softmax_temperature.training.trainer import Callback, Diverged, Trainer, train


class TrainingRun:
    """A network in training, and the output files of its cell.

    `seed` determines dropout, and the order and augmentation of the samples. All arms
    use the same seeds, so that their differences are paired. A run that diverged is a
    result: its record says so, its weights and its callbacks' rows are those before the
    epoch that diverged, and it has no logits.
    """

    def __init__(
        self,
        job: Job,
        recipe: Recipe,
        seed: int,
        network: nn.Module,
        objective: Loss,
        samples: Samples,
    ) -> None:
        self.trainer = Trainer(
            network, objective, samples, recipe, seed=seed, device=job.device
        )
        self.finite = True
        self._job = job

    def run(self, **callbacks: Callback | None) -> None:
        """Train to the end of the recipe, or until training diverges.

        The callbacks are called after each epoch, in the given order. A callback's
        `after_batch`, if it has one, is called after each batch.
        """
        called: dict[str, Callback] = {}
        for name, callback in callbacks.items():
            if callback is None:
                continue
            called[name] = callback
            if hasattr(callback, "after_batch"):
                self.trainer.after_batch.append(callback.after_batch)
        diverged = train(self.trainer, called, self._job)
        self.finite = not diverged

    def save_logits(
        self,
        file: str,
        sets: Mapping[str, Samples],
        outliers: Mapping[str, Tensor] | None = None,
    ) -> None:
        """Write the named sets' logits and labels, and the named outliers' logits.

        Nothing is written if training diverged, or if a logit is not finite. In the
        latter case the run counts as diverged from then on.
        """
        if not self.finite:
            return
        logits: dict[str, Logits] = {}
        try:
            for name, samples in sets.items():
                values, _ = self.trainer.evaluate(samples.inputs)
                logits[name] = Logits(samples.split, values, samples.labels)
            for name, inputs in (outliers or {}).items():
                values, _ = self.trainer.evaluate(inputs)
                logits[name] = Logits("test", values)
        except Diverged:
            self.finite = False
        else:
            write_logits(self._job.output / file, logits)

    def save_json(self, file: str, content: Any) -> None:
        """Write `content` to `file`, one of the cell's JSON files."""
        write_json(self._job.output / file, content)

    def save_record(self, about: Mapping[str, Any]) -> None:
        """Write `record.json`: facts about the run, and the entries of `about`.

        The facts are the run's epochs, whether it diverged, and the network's number of
        parameters.
        """
        recipe = self.trainer.recipe
        record = {
            "epochs": recipe.epochs,
            "planned_epochs": recipe.planned_epochs,
            "epochs_done": self.trainer.epochs_done,
            "diverged": not self.finite,
            "parameters": count_parameters(self.trainer.network),
        }
        self.save_json("record.json", {**record, **about})

    def save_weights(self) -> None:
        """Write `weights.safetensors`; the network moves to the CPU."""
        network = self.trainer.network.cpu()
        save_model(network, str(self._job.output / WEIGHTS))

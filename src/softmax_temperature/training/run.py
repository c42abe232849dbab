"""A cell that trains one network, and the files that it leaves."""

from collections.abc import Mapping
from typing import Any

from safetensors.torch import save_model
from torch import Tensor, nn

from softmax_temperature.data.logits import Logits, write_logits
from softmax_temperature.losses import Objective
from softmax_temperature.networks.registry import WEIGHTS, count_parameters
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.cells import Job
from softmax_temperature.training.samples import Samples
from softmax_temperature.training.trainer import Callback, Diverged, Trainer, train


class TrainingRun:
    """A network in training, and the files that its cell leaves.

    `seed` draws order and augmentation, and all arms have the same, so that their
    differences are paired. A training that diverged is a result, which its record says:
    its weights and rows end where they were last finite, and it has no logits.
    """

    def __init__(
        self,
        job: Job,
        recipe: Recipe,
        seed: int,
        network: nn.Module,
        objective: Objective,
        samples: Samples,
    ) -> None:
        self.trainer = Trainer(
            network, objective, samples, recipe, seed=seed, device=job.device
        )
        self.finite, self._job = True, job

    def run(self, **callbacks: Callback | None) -> None:
        """Train to the end of the recipe, or until it diverges; after each epoch the
        callbacks follow in this order.
        """
        called = {name: each for name, each in callbacks.items() if each is not None}
        self.trainer.after_batch += [
            each.after_batch for each in called.values() if hasattr(each, "after_batch")
        ]
        self.finite = not train(self.trainer, called, self._job)

    def save_logits(
        self,
        file: str,
        sets: Mapping[str, Samples],
        outliers: Mapping[str, Tensor] | None = None,
    ) -> None:
        """Write logits and labels of sets, and logits of outliers, by name.

        Nothing is written if one of them is not finite.
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

    def save(
        self, about: Mapping[str, Any], *, weights: bool = True, **rows: Any
    ) -> None:
        """Write `weights.safetensors` if asked, `record.json` with `about` and what
        became of it, and JSON by name.
        """
        trainer, recipe = self.trainer, self.trainer.recipe
        record = {
            "epochs": recipe.epochs,
            "planned_epochs": recipe.planned_epochs,
            "epochs_done": trainer.epochs_done,
            "diverged": not self.finite,
            "parameters": count_parameters(trainer.network),
        }
        for name, content in {**rows, "record": {**record, **about}}.items():
            write_json(self._job.output / f"{name}.json", content)
        if weights:
            save_model(trainer.network.cpu(), str(self._job.output / WEIGHTS))

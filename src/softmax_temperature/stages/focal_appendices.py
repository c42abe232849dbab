"""Stages focal_linear and train_translation: the linear model and the translations of
the focal paper's appendices.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from softmax_temperature.data.seeds import seed_of
from softmax_temperature.data.splits import limited
from softmax_temperature.data.translation import read_translation, translation_digest
from softmax_temperature.losses import make_objective
from softmax_temperature.params import Params
from softmax_temperature.params.focal import Arm, LinearTraining, TranslationTask
from softmax_temperature.runner.artifacts import write_json, write_text
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.runner.distributed import PROCESSES
from softmax_temperature.runner.errors import InputError
from softmax_temperature.stages import part_of, stage
from softmax_temperature.training import BestEpoch, Diverged, linear_model
from softmax_temperature.training.run import TrainingRun
from softmax_temperature.training.translation import scores
from softmax_temperature.training.translation.network import make_network
from softmax_temperature.training.translation.sentences import (
    LengthBatches,
    per_token,
)

TENSORS = "linear.safetensors"


@stage
def focal_linear(params: Params) -> Iterator[Cell]:
    """One cell per loss and seed; the losses of one seed see the same data, so
    differences are paired.
    """
    linear = params.focal.linear
    for arm, seed in linear.trainings():
        own = {
            "gamma": linear.gammas[arm],
            "data_seed": seed_of(params.seed, "focal", "linear", str(seed)),
        }
        yield Cell(
            f"{arm}/{seed}", _fit_line, {"task": part_of(linear, LinearTraining), **own}
        )


def _fit_line(job: Job, *, task: LinearTraining, gamma: float, data_seed: int) -> None:
    """Train one loss on one draw of the data (appendix C); norms are by epoch, the rest
    is of the last one.
    """
    tensors, accuracy = linear_model.fit(task, gamma, seed=data_seed)
    save_file(tensors, job.output / TENSORS)
    write_json(job.output / "record.json", {"gamma": gamma, "accuracy": accuracy})


@stage
def train_translation(params: Params) -> Iterator[Cell]:
    """One cell per arm and seed (appendix K); a missing or incomplete data set raises
    InputError.
    """
    section, root = params.focal.translation, params.data.root
    if section is None:
        return
    if PROCESSES > 1:
        what = "batches of sentences differ in size and are not divided among processes"
        raise InputError(
            what,
            where="train_translation under torchrun",
            remedy="Run it without torchrun.",
        )
    shared = {
        "task": part_of(section, TranslationTask),
        "root": root,
        "data_seed": params.seed,
    }
    # A file that changed is noticed whenever the stage runs.
    shared["digest"] = translation_digest(
        section.dataset, (section.source, section.target), root=Path(root)
    )
    for arm, seed in section.trainings():
        own = {
            "arm": section.arms[arm],
            "training_seed": seed_of(params.seed, "focal", "translation", str(seed)),
        }
        yield Cell(f"{arm}/{seed}", _train_translation, shared | own, gpu_share=1.0)


def _train_translation(
    job: Job,
    *,
    task: TranslationTask,
    arm: Arm,
    root: str,
    data_seed: int,
    training_seed: int,
    **_: Any,
) -> None:
    """Train one network, keep the epoch with the least validation NLL, and translate
    the test sentences.

    Writes weights, record, `vocabulary.json` for the library tokenizers and, unless it
    diverged, what `evaluate` finds.
    """
    from softmax_temperature.training.translation.vocabulary import (
        Vocabulary,
    )  # Needs an optional package.

    whole = read_translation(
        task.dataset, (task.source, task.target), root=Path(root), seed=data_seed
    )
    parts = {
        name: limited(part, getattr(task, f"{name}_limit"), seed=data_seed)
        for name, part in whole.items()
    }
    vocabulary = Vocabulary.fit(parts["train"], size=task.vocabulary)
    pairs = {split: vocabulary.encode_part(part) for split, part in parts.items()}
    pairs["train"] = pairs["train"].up_to(task.longest)
    of_tokens = {"tokens": task.recipe.batch_size, "seed": training_seed}
    batches = {
        split: LengthBatches.of(some, **of_tokens) for split, some in pairs.items()
    }
    model = make_network(vocabulary.size, task.network, seed=training_seed)
    objective = per_token(make_objective(arm.loss, arm.options))
    # The loop's samples are batches already.
    one_by_one = task.recipe.changed({"batch_size": 1})
    training = TrainingRun(
        job, one_by_one, training_seed, model, objective, batches["train"]
    )
    watch = scores.TokenScores(batches["validation"])
    best_epoch = BestEpoch(watch, lambda row: -row["nll"])
    training.run(scores=watch, best=best_epoch)
    found = {}
    if training.finite:
        best_epoch.restore(training.trainer)
        references = parts["test"].for_evaluation()[1]
        try:
            found = scores.evaluate(
                training.trainer, task, vocabulary, batches, references
            )
        except Diverged:
            training.finite = False
    write_text(job.output / "vocabulary.json", vocabulary.to_json())
    about = {
        "vocabulary": vocabulary.size,
        "pairs": {split: len(some) for split, some in pairs.items()},
        "too_long": len(parts["train"].labels) - len(pairs["train"]),
        "steps_per_epoch": training.trainer.steps_per_epoch,
        "selected_epoch": best_epoch.epoch,
        "history": watch.history,
    }
    training.save(about, **found)

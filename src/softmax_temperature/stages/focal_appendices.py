"""The stages `focal_linear` and `train_translation`.

They train the linear models and the translation networks of the focal paper's
appendices.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from softmax_temperature.data.seeds import seed_of
from softmax_temperature.data.splits import Part, SplitName, limited
from softmax_temperature.data.translation import read_translation, translation_digest
from softmax_temperature.losses.registry import make_loss
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
    PerToken,
)

TENSORS = "linear.safetensors"


@stage
def focal_linear(params: Params) -> Iterator[Cell]:
    """Yield one cell per loss and seed.

    For one seed, all losses are trained on the same data, so that their differences are
    paired. There are no cells if the parameters leave the section out.
    """
    linear = params.focal.linear
    if linear is None:
        return
    for arm, seed in linear.trainings():
        plan = {
            "task": part_of(linear, LinearTraining),
            "gamma": linear.gammas[arm],
            "data_seed": seed_of(params.seed, "focal", "linear", str(seed)),
        }
        yield Cell(f"{arm}/{seed}", _fit_line, plan)


def _fit_line(job: Job, *, task: LinearTraining, gamma: float, data_seed: int) -> None:
    """Train with one loss on one draw of the data (appendix C).

    The norms of weights and logits are recorded after each epoch, everything else only
    after the last epoch.
    """
    tensors, accuracy = linear_model.fit(task, gamma, seed=data_seed)
    save_file(tensors, job.output / TENSORS)
    write_json(job.output / "record.json", {"gamma": gamma, "accuracy": accuracy})


@stage
def train_translation(params: Params) -> Iterator[Cell]:
    """Yield one cell per arm and seed (appendix K).

    InputError is raised if the data set is missing or incomplete, or if the stage runs
    under `torchrun`.
    """
    section = params.focal.translation
    root = params.data.root
    if section is None:
        return
    if PROCESSES > 1:
        what = (
            "batches of sentences differ in size and cannot be divided among processes"
        )
        where = "train_translation under torchrun"
        raise InputError(what, where=where, remedy="Run it without torchrun.")
    languages = (section.source, section.target)
    # The digest is computed on every run, so that the stage notices a changed file.
    digest = translation_digest(section.dataset, languages, root=Path(root))
    for arm, seed in section.trainings():
        plan = {
            "task": part_of(section, TranslationTask),
            "data_seed": params.seed,
            "digest": digest,
            "arm": section.arms[arm],
            "training_seed": seed_of(params.seed, "focal", "translation", str(seed)),
        }
        yield Cell(
            f"{arm}/{seed}",
            _train_translation,
            plan,
            gpu_share=1.0,
            places={"root": root},
        )


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
    """Train one network, keep the best epoch, and translate the test sentences.

    The best epoch has the lowest validation NLL. Writes the weights, the record,
    `vocabulary.json` for the library tokenizers and, unless training or this evaluation
    diverged, the results of `scores.evaluate`.
    """
    # Imported here because the module `vocabulary` needs an optional package.
    from softmax_temperature.training.translation.vocabulary import Vocabulary

    languages = (task.source, task.target)
    whole = read_translation(task.dataset, languages, root=Path(root), seed=data_seed)
    parts: dict[SplitName, Part] = {
        "train": limited(whole["train"], task.train_limit, seed=data_seed),
        "validation": limited(
            whole["validation"], task.validation_limit, seed=data_seed
        ),
        "test": limited(whole["test"], task.test_limit, seed=data_seed),
    }
    vocabulary = Vocabulary.fit(parts["train"], size=task.vocabulary)
    pairs = {split: vocabulary.encode_part(part) for split, part in parts.items()}
    pairs["train"] = pairs["train"].up_to(task.longest)
    tokens = task.recipe.batch_size
    batches = {
        split: LengthBatches.of(sentences, tokens=tokens, seed=training_seed)
        for split, sentences in pairs.items()
    }
    model = make_network(vocabulary.size, task.network, seed=training_seed)
    loss = PerToken(make_loss(arm.loss, arm.options))
    # Tell the training loop to take one sample at a time, because each sample is
    # already a batch of sentences.
    one_by_one = task.recipe.changed({"batch_size": 1})
    training = TrainingRun(
        job, one_by_one, training_seed, model, loss, batches["train"]
    )
    watch = scores.TokenScores(batches["validation"])
    best_epoch = BestEpoch(watch, lambda row: -row["nll"])
    training.run(scores=watch, best=best_epoch)
    results: dict[str, Any] = {}
    if training.finite:
        best_epoch.restore(training.trainer)
        _, references = parts["test"].for_evaluation()
        try:
            results = scores.evaluate(
                training.trainer, task, vocabulary, batches, references
            )
        except Diverged:
            training.finite = False
    for name, content in results.items():
        training.save_json(f"{name}.json", content)
    write_text(job.output / "vocabulary.json", vocabulary.to_json())
    training.save_record(
        {
            "vocabulary": vocabulary.size,
            "pairs": {split: len(sentences) for split, sentences in pairs.items()},
            "too_long": len(parts["train"].labels) - len(pairs["train"]),
            "steps_per_epoch": training.trainer.steps_per_epoch,
            "selected_epoch": best_epoch.epoch,
            "history": watch.history,
        }
    )
    training.save_weights()

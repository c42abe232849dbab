"""Stages focal_linear and train_translation: the linear model and the translations of the focal paper's appendices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors.torch import save_file

from softmax_temperature.data.seeds import seed_of
from softmax_temperature.data.splits import Part, SplitName, limited
from softmax_temperature.data.translation import read_translation, translation_digest
from softmax_temperature.losses import make_objective
from softmax_temperature.params import Params
from softmax_temperature.params.focal import Arm, LinearTraining, TranslationTask
from softmax_temperature.runner.artifacts import write_json, write_text
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.runner.distributed import PROCESSES
from softmax_temperature.runner.errors import InputError
from softmax_temperature.scaling import TEMPERATURE_GRID
from softmax_temperature.stages import part_of, stage
from softmax_temperature.stages.trainings import TrainingRun, arms_and_seeds, for_training
from softmax_temperature.training import BestEpoch, Diverged, Trainer, linear_model
from softmax_temperature.training.translation import scores
from softmax_temperature.training.translation.network import make_network, translate
from softmax_temperature.training.translation.sentences import LengthBatches, SentencePairs, per_token

if TYPE_CHECKING:
    from softmax_temperature.training.translation.vocabulary import Vocabulary  # Needs an optional package.

TENSORS = "linear.safetensors"
TRANSLATION_ARMS = ("CE", "LS", "FL")
"""The losses of appendix K, as the paper abbreviates them."""
Batches = dict[SplitName, LengthBatches]
UNSCALED = 1.0
"""The temperature of a network as it was trained."""


@stage("focal", "data/focal/linear")
def focal_linear(params: Params) -> Iterator[Cell]:
    """One cell per loss and seed; the losses of one seed see the same data, so differences are paired."""
    linear = params.focal.linear
    for arm, seed in arms_and_seeds(linear, linear.gammas):
        own = {"gamma": linear.gammas[arm], "data_seed": seed_of(params.seed, "focal", "linear", str(seed))}
        yield Cell(f"{arm}/{seed}", _fit_line, {"task": part_of(linear, LinearTraining), **own})


def _fit_line(job: Job, *, task: LinearTraining, gamma: float, data_seed: int) -> None:
    """Train one loss on one draw of the data (appendix C); norms are by epoch, the rest is of the last one."""
    fitted, held_out = linear_model.make_data(task.train, task.test, seed=data_seed)
    # On the CPU even where there is a GPU: a step is four thousand products of pairs.
    path = linear_model.train_logistic(*fitted.for_fitting(), gamma, epochs=task.epochs, lr=task.lr)
    points, labels = held_out.for_evaluation()
    weights = path[-1].clone()
    mistakes = linear_model.misclassified_confidences(points, labels, weights)
    tensors = {
        "weight_norm": path.norm(dim=1),
        "logit_norm": linear_model.mean_logit_norms(points, path),
        "weights": weights,
        "misclassified_confidence": mistakes,
        "test_points": points.contiguous(),
        "test_labels": labels.contiguous(),
    }
    save_file(tensors, job.output / TENSORS)
    missed = len(linear_model.misclassified_confidences(*fitted.for_evaluation(), weights))
    accuracy = {"train": 1 - missed / task.train, "test": 1 - len(mistakes) / task.test}
    write_json(job.output / "record.json", {"gamma": gamma, "accuracy": accuracy})


@stage("focal", "data/focal/translation")
def train_translation(params: Params) -> Iterator[Cell]:
    """One cell per arm and seed (appendix K); a missing or incomplete data set raises InputError."""
    section, root = params.focal.translation, params.data.root
    if section is None:
        return
    if PROCESSES > 1:
        what = "batches of sentences differ in size and are not divided among processes"
        raise InputError(what, where="train_translation under torchrun", remedy="Run it without torchrun.")
    losses = {
        "CE": Arm(loss="cross_entropy"),
        "LS": Arm(loss="label_smoothing", options={"smoothing": section.smoothing}),
        "FL": Arm(loss="focal", options={"gamma": section.gamma}),
    }
    shared = {"task": part_of(section, TranslationTask), "root": root, "data_seed": params.seed}
    # A file that changed is noticed whenever the stage runs.
    shared["digest"] = translation_digest(section.dataset, (section.source, section.target), root=Path(root))
    for arm, seed in arms_and_seeds(section, TRANSLATION_ARMS):
        own = {"arm": losses[arm], "training_seed": seed_of(params.seed, "focal", "translation", str(seed))}
        yield Cell(f"{arm}/{seed}", _train_translation, shared | own, gpu_share=1.0)


def _train_translation(
    job: Job, *, task: TranslationTask, arm: Arm, root: str, data_seed: int, training_seed: int, **_: Any
) -> None:
    """Train one network, keep the epoch with the least validation NLL, and translate the test sentences.

    Writes weights, record, `vocabulary.json` for the library tokenizers and, unless it diverged, what `_evaluate` does.
    """
    from softmax_temperature.training.translation.vocabulary import Vocabulary  # Needs an optional package.

    whole = read_translation(task.dataset, (task.source, task.target), root=Path(root), seed=data_seed)
    parts = {name: limited(part, getattr(task, f"{name}_limit"), seed=data_seed) for name, part in whole.items()}
    vocabulary = Vocabulary.fit(parts["train"], size=task.vocabulary)
    pairs = _pairs(parts, vocabulary, task.longest)
    of_tokens = {"tokens": task.recipe.batch_size, "seed": training_seed}
    batches = {split: LengthBatches.of(some, **of_tokens) for split, some in pairs.items()}
    model = make_network(vocabulary.size, task.network, seed=training_seed)
    objective = per_token(make_objective(arm.loss, arm.options))
    # The loop's samples are batches already.
    one_by_one = task.recipe.changed({"batch_size": 1})
    training = TrainingRun(job, one_by_one, training_seed, model, objective, batches["train"])
    watch = scores.TokenScores(batches["validation"])
    best_epoch = BestEpoch(watch, lambda row: -row["nll"])
    training.run(scores=watch, best=best_epoch)
    if training.finite:
        best_epoch.restore(training.trainer)
        try:
            _evaluate(job, task, training.trainer, vocabulary, batches, parts["test"].for_evaluation()[1])
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
    training.save(about)


def _pairs(parts: dict[SplitName, Part], vocabulary: Vocabulary, longest: int) -> dict[SplitName, SentencePairs]:
    """The sentences as numbers, without long ones to train on; an InputError if no training pair is short enough."""
    pairs = {split: SentencePairs(*map(vocabulary.encode, for_training(part))) for split, part in parts.items()}
    pairs["train"] = pairs["train"].up_to(longest)
    if not len(pairs["train"]):
        what = f"{longest}, no training pair is so short"
        raise InputError(what, where="focal.translation.longest", remedy="Raise it, or the vocabulary.")
    return pairs


def _evaluate(
    job: Job, task: TranslationTask, trainer: Trainer, words: Vocabulary, batches: Batches, references: Sequence[str]
) -> None:
    """Write the calibration at each temperature, and translations of the test sentences with their BLEU.

    On validation data the temperatures are the whole grid of the paper, on test data those of the translations.
    """

    def calibration(split: SplitName, asked: set[float]) -> list[dict[str, Any]]:
        rows = scores.calibration_by_temperature(scores.token_logits(trainer, batches[split]), sorted(asked))
        return [{"split": split, **row} for row in rows]

    validation = calibration("validation", {*TEMPERATURE_GRID, *task.temperatures})
    asked = {*task.temperatures, UNSCALED, scores.best_temperature(validation)}
    write_json(job.output / "calibration.json", validation + calibration("test", asked))
    network: Any = trainer.network
    texts, rows = {}, []
    for at in sorted(asked):
        tokens = translate(network, batches["test"].pairs.sources, task.search, temperature=at, device=trainer.device)
        texts[str(at)] = words.decode(tokens)
        rows.append({"temperature": at, **scores.bleu(texts[str(at)], references)})
    write_json(job.output / "bleu.json", rows)
    write_json(job.output / "translations.json", texts)

"""Stages focal_linear and train_translation: the linear model and the translations of the focal paper's appendices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from safetensors.torch import save_file

from softmax_temperature.data.seeds import seed_of
from softmax_temperature.data.splits import Part, SplitName, limited
from softmax_temperature.data.translation import read_translation, translation_digest
from softmax_temperature.losses import make_objective
from softmax_temperature.params import Params
from softmax_temperature.params.focal import LinearTraining, TranslationTask
from softmax_temperature.runner.artifacts import write_json, write_text
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.runner.distributed import PROCESSES
from softmax_temperature.runner.errors import InputError
from softmax_temperature.scaling import TEMPERATURE_GRID
from softmax_temperature.stages import fields_of, stage
from softmax_temperature.stages.trainings import TrainingRun, arms_and_seeds, for_training
from softmax_temperature.training import BestEpoch, Diverged, Trainer, linear_model
from softmax_temperature.training.translation import scores
from softmax_temperature.training.translation.network import make_network, translate
from softmax_temperature.training.translation.sentences import LengthBatches, SentencePairs, per_token

if TYPE_CHECKING:
    from softmax_temperature.training.translation.vocabulary import Vocabulary  # Needs an optional package.

TENSORS = "linear.safetensors"
TRANSLATION_ARMS = {"CE": "cross_entropy", "LS": "label_smoothing", "FL": "focal"}
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
        yield Cell(f"{arm}/{seed}", _fit_line, fields_of(linear, LinearTraining) | own)


def _fit_line(job: Job, *, gamma: float, data_seed: int, train: int, test: int, epochs: int, lr: float) -> None:
    """Train one loss on one draw of the data (appendix C).

    Writes `linear.safetensors`: weight_norm and logit_norm (epochs,), the latter a mean over the test points; weights
    (2,) and misclassified_confidence (m,) at the end; test_points (test, 2) and test_labels (test,). Beside it
    `record.json`, the gamma and the accuracies at the end.
    """
    fitted, held_out = linear_model.make_data(train, test, seed=data_seed)
    # On the CPU even where there is a GPU: a step is four thousand products of pairs.
    path = linear_model.train_logistic(*fitted.for_fitting(), gamma, epochs=epochs, lr=lr)
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
    accuracy = {"train": 1 - missed / train, "test": 1 - len(mistakes) / test}
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
    options = {"CE": {}, "LS": {"smoothing": section.smoothing}, "FL": {"gamma": section.gamma}}
    shared = fields_of(section, TranslationTask) | {"root": root, "data_seed": params.seed}
    # A file that changed is noticed whenever the stage runs.
    shared["digest"] = translation_digest(section.dataset, (section.source, section.target), root=Path(root))
    for arm, seed in arms_and_seeds(section, TRANSLATION_ARMS):
        own: dict[str, Any] = {"loss": TRANSLATION_ARMS[arm], "options": options[arm]}
        own["training_seed"] = seed_of(params.seed, "focal", "translation", str(seed))
        yield Cell(f"{arm}/{seed}", _train_translation, shared | own, gpu_share=1.0)


def _train_translation(job: Job, **settings: Any) -> None:
    """Train one network, keep the epoch with the least validation NLL, and translate the test sentences.

    Writes weights; record, with a row for each epoch (`TokenScores`); `vocabulary.json`, for the library tokenizers;
    `calibration.json`, a row for each temperature (`calibration_by_temperature`, with `split`): on validation data for
    the whole grid of the paper, on test data for those at which test sentences are translated; `bleu.json`, a row for
    each of the latter; and `translations.json`, by temperature. A training that diverged translates nothing.
    """
    from softmax_temperature.training.translation.vocabulary import Vocabulary  # Needs an optional package.

    plan = SimpleNamespace(**settings)
    whole = read_translation(plan.dataset, (plan.source, plan.target), root=Path(plan.root), seed=plan.data_seed)
    parts = {name: limited(part, settings[f"{name}_limit"], seed=plan.data_seed) for name, part in whole.items()}
    vocabulary = Vocabulary.fit(parts["train"], size=plan.vocabulary)
    pairs = _pairs(parts, vocabulary, plan.longest)
    of_tokens = {"tokens": plan.recipe.batch_size, "seed": plan.training_seed}
    batches = {split: LengthBatches.of(some, **of_tokens) for split, some in pairs.items()}
    model = make_network(vocabulary.size, plan.network, seed=plan.training_seed)
    objective = per_token(make_objective(plan.loss, plan.options))
    # The loop's samples are batches already.
    one_by_one = plan.recipe.changed({"batch_size": 1})
    training = TrainingRun(job, one_by_one, plan.training_seed, model, objective, batches["train"])
    watch = scores.TokenScores(batches["validation"])
    best_epoch = BestEpoch(watch, lambda row: -row["nll"])
    training.run(scores=watch, best=best_epoch)
    if training.finite:
        best_epoch.restore(training.trainer)
        try:
            _evaluate(job, plan, training.trainer, vocabulary, batches, parts["test"].for_evaluation()[1])
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
    job: Job, plan: Any, trainer: Trainer, vocabulary: Vocabulary, batches: Batches, references: Sequence[str]
) -> None:
    """Write the calibration at each temperature, and translations of the test sentences with their BLEU."""

    def calibration(split: SplitName, asked: set[float]) -> list[dict[str, Any]]:
        rows = scores.calibration_by_temperature(scores.token_logits(trainer, batches[split]), sorted(asked))
        return [{"split": split, **row} for row in rows]

    validation = calibration("validation", {*TEMPERATURE_GRID, *plan.temperatures})
    asked = {*plan.temperatures, UNSCALED, scores.best_temperature(validation)}
    write_json(job.output / "calibration.json", validation + calibration("test", asked))
    network: Any = trainer.network
    texts, rows = {}, []
    for at in sorted(asked):
        tokens = translate(network, batches["test"].pairs.sources, plan.search, temperature=at, device=trainer.device)
        texts[str(at)] = vocabulary.decode(tokens)
        rows.append({"temperature": at, **scores.bleu(texts[str(at)], references)})
    write_json(job.output / "bleu.json", rows)
    write_json(job.output / "translations.json", texts)

"""Stage train_translation: translating with a network trained by each of three losses (focal paper, appendix K)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors.torch import save_model

from softmax_temperature.data.sampling import limited
from softmax_temperature.data.seeds import seed_of
from softmax_temperature.data.splits import Part, SplitName
from softmax_temperature.data.translation import read_translation, translation_digest
from softmax_temperature.losses import make_objective
from softmax_temperature.params import Params
from softmax_temperature.params.focal import Translation, TranslationTask
from softmax_temperature.runner.artifacts import write_json, write_text
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.runner.distributed import PROCESSES
from softmax_temperature.runner.errors import InputError
from softmax_temperature.scaling import TEMPERATURE_GRID
from softmax_temperature.stages.trainings import WEIGHTS, TrainingCell, TrainingRun
from softmax_temperature.training import BestEpoch, Diverged, Trainer
from softmax_temperature.training.translation import scores
from softmax_temperature.training.translation.network import make_network, translate
from softmax_temperature.training.translation.sentences import LengthBatches, SentencePairs, per_token

if TYPE_CHECKING:
    from softmax_temperature.training.translation.vocabulary import Vocabulary  # Needs an optional package.

PAPER = "focal"
OUTPUT = Path("data/focal/translation")
ARMS = {"CE": "cross_entropy", "LS": "label_smoothing", "FL": "focal"}
"""The losses of appendix K, as the paper abbreviates them."""
UNSCALED = 1.0
"""The temperature of a network as it was trained."""


class TranslationCell(TranslationTask, TrainingCell):
    """What a cell is given; `digest` is that of the data set's files."""

    digest: str | None
    loss: str
    options: dict[str, float]
    data_seed: int


def trainings(section: Translation | None) -> list[tuple[str, int]]:
    """Arm and seed of every training; none where the section is left out."""
    return [] if section is None else [(arm, seed) for arm in ARMS for seed in range(section.seeds)]


def cells(params: Params) -> list[Cell]:
    """One cell per arm and seed; a missing or incomplete data set raises InputError."""
    section, root = params.focal.translation, params.data.root
    if section is None:
        return []
    if PROCESSES > 1:
        what = "batches of sentences differ in size and are not divided among processes"
        raise InputError(what, where="train_translation under torchrun", remedy="Run it without torchrun.")
    options = {"CE": {}, "LS": {"smoothing": section.smoothing}, "FL": {"gamma": section.gamma}}
    shared = section.model_dump(include=set(TranslationTask.model_fields)) | {"root": root, "data_seed": params.seed}
    # A file that changed is noticed whenever the stage runs.
    shared["digest"] = translation_digest(section.dataset, (section.source, section.target), root=Path(root))
    found = []
    for arm, seed in trainings(section):
        # One for all arms: they start from the same weights and see the same batches.
        training_seed = seed_of(params.seed, "focal", "translation", str(seed))
        plan = TranslationCell(**shared, loss=ARMS[arm], options=options[arm], training_seed=training_seed)
        found.append(Cell(f"{arm}/{seed}", run, plan, gpu_share=1.0))
    return found


def run(job: Job, plan: TranslationCell) -> None:
    """Train one network, keep the epoch with the least validation NLL, and translate the test sentences.

    Writes weights; record, with a row for each epoch (`TokenScores`); `vocabulary.json`, for the library tokenizers;
    `calibration.json`, a row for each temperature (`calibration_by_temperature`, with `split`): on validation data for
    the whole grid of the paper, on test data for those at which test sentences are translated; `bleu.json`, a row for
    each of the latter; and `translations.json`, by temperature. A training that diverged translates nothing.
    """
    from softmax_temperature.training.translation.vocabulary import Vocabulary  # Needs an optional package.

    parts = _parts(plan)
    vocabulary = Vocabulary.fit(parts["train"], size=plan.vocabulary)
    pairs = _pairs(parts, vocabulary, plan.longest)
    of_tokens = {"tokens": plan.recipe.batch_size, "seed": plan.training_seed}
    batches = {split: LengthBatches.of(some, **of_tokens) for split, some in pairs.items()}
    model = make_network(vocabulary.size, plan.network, seed=plan.training_seed)
    objective = per_token(make_objective(plan.loss, plan.options))
    # The loop's samples are batches already.
    one_by_one = plan.model_copy(update={"recipe": plan.recipe.changed({"batch_size": 1})})
    training = TrainingRun(job, one_by_one, model, objective, batches["train"])
    watch = scores.TokenScores(batches["validation"])
    best_epoch = BestEpoch(watch, lambda row: -row["nll"])
    training.run(scores=watch, best=best_epoch)
    if training.finite:
        best_epoch.restore(training.trainer)
        try:
            _evaluate(job, plan, training.trainer, vocabulary, batches, parts["test"].for_evaluation()[1])
        except Diverged:
            training.finite = False

    save_model(training.trainer.network.cpu(), str(job.output / WEIGHTS))
    write_text(job.output / "vocabulary.json", vocabulary.to_json())
    about = {
        "vocabulary": vocabulary.size,
        "pairs": {split: len(some) for split, some in pairs.items()},
        "too_long": len(parts["train"].labels) - len(pairs["train"]),
        "steps_per_epoch": training.trainer.steps_per_epoch,
        "selected_epoch": best_epoch.epoch,
        "history": watch.history,
    }
    training.save_records(about)


def _parts(plan: TranslationCell) -> dict[SplitName, Part]:
    """The sentences as text."""
    limits = {"train": plan.train_limit, "validation": plan.validation_limit, "test": plan.test_limit}
    seed = plan.data_seed
    parts = read_translation(plan.dataset, (plan.source, plan.target), root=Path(plan.root), seed=seed)
    return {split: limited(part, limits[split], seed=seed) for split, part in parts.items()}


def _pairs(parts: dict[SplitName, Part], vocabulary: Vocabulary, longest: int) -> dict[SplitName, SentencePairs]:
    """The sentences as numbers, without long ones to train on; an InputError if no training pair is short enough."""
    texts = {split: part.for_evaluation() if split == "test" else part.for_fitting() for split, part in parts.items()}
    pairs = {split: SentencePairs(*map(vocabulary.encode, sides)) for split, sides in texts.items()}
    pairs["train"] = pairs["train"].up_to(longest)
    if not len(pairs["train"]):
        what = f"{longest}, no training pair is so short"
        raise InputError(what, where="focal.translation.longest", remedy="Raise it, or the vocabulary.")
    return pairs


def _evaluate(
    job: Job,
    plan: TranslationCell,
    trainer: Trainer,
    vocabulary: Vocabulary,
    batches: dict[SplitName, LengthBatches],
    references: Sequence[str],
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

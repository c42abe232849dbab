"""Stage train_translation: translating with a network trained by each of three losses (focal paper, appendix K)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from safetensors.torch import save_model

from softmax_temperature.data.sampling import limited
from softmax_temperature.data.splits import Part, SplitName
from softmax_temperature.data.translation import read_translation, translation_digest
from softmax_temperature.losses import make_objective
from softmax_temperature.params import Params
from softmax_temperature.params.focal import Translation, TranslationTask
from softmax_temperature.runner.artifacts import write_json, write_text
from softmax_temperature.runner.cells import Cell, Job, seed_of
from softmax_temperature.runner.distributed import PROCESSES
from softmax_temperature.runner.errors import InputError
from softmax_temperature.scaling import TEMPERATURE_GRID
from softmax_temperature.stages.training_cells import WEIGHTS, save_record
from softmax_temperature.training import BestEpoch, Diverged, Trainer, train
from softmax_temperature.training.translation.network import make_network
from softmax_temperature.training.translation.scores import (
    TokenScores,
    best_temperature,
    bleu,
    calibration_by_temperature,
    token_logits,
)
from softmax_temperature.training.translation.search import translate
from softmax_temperature.training.translation.sentences import LengthBatches, Ragged, SentencePairs, per_token

if TYPE_CHECKING:
    from softmax_temperature.training.translation.vocabulary import Vocabulary  # Needs an optional package.

PAPER = "focal"
OUTPUT = Path("data/focal/translation")
ARMS = MappingProxyType({"CE": "cross_entropy", "LS": "label_smoothing", "FL": "focal"})
"""The losses of appendix K, as the paper abbreviates them."""
UNSCALED = 1.0
"""The temperature of a network as it was trained."""


class TranslationCell(TranslationTask):
    """What a cell is given; `digest` is that of the data set's files, and the seeds draw data and training."""

    root: str
    digest: str | None
    loss: str
    options: dict[str, float]
    data_seed: int
    training_seed: int


def trainings(section: Translation | None) -> list[tuple[str, int]]:
    """Arm and seed of every training; none where the section is left out."""
    return [] if section is None else [(arm, seed) for arm in ARMS for seed in range(section.seeds)]


def cells(params: Params) -> list[Cell]:
    """One cell per arm and seed; a missing or incomplete data set raises InputError.

    The digest of the data set's files is among its parameters: a file that changed is noticed whenever the stage runs.
    """
    section = params.focal.translation
    if section is None:
        return []
    if PROCESSES > 1:
        what = "batches of sentences differ in size and are not divided among processes"
        raise InputError(what, where="train_translation under torchrun", remedy="Run it without torchrun.")
    options = {"CE": {}, "LS": {"smoothing": section.smoothing}, "FL": {"gamma": section.gamma}}
    shared = section.model_dump(include=set(TranslationTask.model_fields))
    shared["digest"] = translation_digest(
        section.dataset, (section.source, section.target), root=Path(params.data.root)
    )
    plans = {
        f"{arm}/{seed}": TranslationCell(
            **shared,
            root=params.data.root,
            data_seed=params.seed,
            loss=ARMS[arm],
            options=options[arm],
            # One for all arms: they start from the same weights and see the same batches.
            training_seed=seed_of(params.seed, "focal", "translation", str(seed)),
        )
        for arm, seed in trainings(section)
    }
    return [Cell(name, run, plan, gpu_share=1.0) for name, plan in plans.items()]


def run(job: Job, plan: TranslationCell) -> None:
    """Train one network, keep the epoch with the least validation NLL, and translate the test sentences.

    Writes `weights.safetensors`; `vocabulary.json`, for the library tokenizers; `calibration.json`, a row for each
    temperature (`calibration_by_temperature`, with `split`): on validation data for the whole grid of the paper, on
    test data for those at which test sentences are translated; `bleu.json`, a row for each of the latter;
    `translations.json`, by temperature; and `record.json`, with a row for each epoch (`TokenScores`). A training that
    diverged is a result: its record says so, its weights are the last finite ones, and nothing is translated.
    """
    from softmax_temperature.training.translation.vocabulary import Vocabulary  # Needs an optional package.

    parts = _parts(plan)
    vocabulary = Vocabulary.fit(parts["train"], size=plan.vocabulary)
    pairs = _pairs(parts, vocabulary, plan.longest)
    batches = {
        split: LengthBatches.of(some, tokens=plan.recipe.batch_size, seed=plan.training_seed)
        for split, some in pairs.items()
    }
    model = make_network(vocabulary.size, plan.network, seed=plan.training_seed)
    objective = per_token(make_objective(plan.loss, plan.options))
    one_by_one = plan.recipe.changed({"batch_size": 1})  # The loop's samples are batches already.
    trainer = Trainer(model, objective, batches["train"], one_by_one, seed=plan.training_seed, device=job.device)
    scores = TokenScores(batches["validation"])
    best_epoch = BestEpoch(scores, lambda row: -row["nll"])
    diverged = train(trainer, {"scores": scores, "best": best_epoch}, job)
    if not diverged:
        best_epoch.restore(trainer)
        try:
            calibration, best = _calibration(trainer, batches, plan.temperatures)
        except Diverged:
            diverged = True
        else:
            write_json(job.output / "calibration.json", calibration)
            _translate(job, plan, trainer, vocabulary, pairs["test"].sources, parts["test"], best)

    save_model(trainer.network.cpu(), str(job.output / WEIGHTS))
    write_text(job.output / "vocabulary.json", vocabulary.to_json())
    about = {
        "vocabulary": vocabulary.size,
        "pairs": {split: len(some) for split, some in pairs.items()},
        "too_long": len(parts["train"].labels) - len(pairs["train"]),
        "steps_per_epoch": trainer.steps_per_epoch,
        "selected_epoch": best_epoch.epoch,
        "history": scores.history,
    }
    save_record(job, trainer, diverged=diverged, recipe=plan.recipe, **about)


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


def _calibration(
    trainer: Trainer, batches: dict[SplitName, LengthBatches], temperatures: Sequence[float]
) -> tuple[list[dict[str, Any]], float]:
    """A row for each held-out split and temperature, and the temperature that validation data choose."""

    def rows_of(split: SplitName, asked: set[float]) -> list[dict[str, Any]]:
        rows = calibration_by_temperature(token_logits(trainer, batches[split]), sorted(asked))
        return [{"split": split, **row} for row in rows]

    validation = rows_of("validation", {*TEMPERATURE_GRID, *temperatures})
    best = best_temperature(validation)
    return validation + rows_of("test", {*temperatures, UNSCALED, best}), best


def _translate(
    job: Job,
    plan: TranslationCell,
    trainer: Trainer,
    vocabulary: Vocabulary,
    sources: Ragged,
    test: Part,
    best: float,
) -> None:
    """Write the translations of the test sentences at each temperature, and their BLEU."""
    network: Any = trainer.network
    texts, rows = {}, []
    for at in sorted({*plan.temperatures, UNSCALED, best}):
        tokens = translate(network, sources, plan.search, temperature=at, device=trainer.device)
        texts[str(at)] = vocabulary.decode(tokens)
        rows.append({"temperature": at, **bleu(texts[str(at)], test.for_evaluation()[1])})
    write_json(job.output / "bleu.json", rows)
    write_json(job.output / "translations.json", texts)

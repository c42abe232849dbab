"""Stage train_translation: translating with a network trained by each of three losses (focal paper, appendix K)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from softmax_temperature.params.recipe import Recipe
from softmax_temperature.runner.artifacts import write_json, write_text
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.jobs import Cell, Job, seed_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from softmax_temperature.data.splits import SplitName
    from softmax_temperature.data.splits import ParallelPart
    from softmax_temperature.params import Params
    from softmax_temperature.params.translation import Translation
    from softmax_temperature.training import Trainer
    from softmax_temperature.training.translation.pairs import LengthBatches, SentencePairs
    from softmax_temperature.training.translation.vocabulary import Vocabulary

OUTPUT = Path("data/focal/translation")
ARMS = MappingProxyType({"CE": "cross_entropy", "LS": "label_smoothing", "FL": "focal"})
"""The losses of appendix K, as the paper abbreviates them."""
UNSCALED = 1.0
"""The temperature of a network as it was trained."""


def trainings(section: Translation | None) -> list[tuple[str, int]]:
    """Arm and seed of every training; none where the section is left out."""
    return [] if section is None else [(arm, seed) for arm in ARMS for seed in range(section.seeds)]


def cells(params: Params) -> list[Cell]:
    """One cell per arm and seed.

    The digest of the data set's files is among its parameters: a file that changed is noticed whenever the stage runs.

    Raises:
        InputError: the data set is not there, or its folder is not complete.
    """
    from softmax_temperature.data.translation import translation_digest  # Not on the way to `--help`.

    section = params.focal.translation
    if section is None:
        return []
    digest = translation_digest(section.dataset, (section.source, section.target), root=Path(params.data.root))
    shared = section.model_dump(exclude={"seeds", "smoothing", "gamma"})
    shared |= {"root": params.data.root, "digest": digest, "data_seed": params.seed}
    return [_cell(params, section, shared, arm, seed) for arm, seed in trainings(section)]


def _cell(params: Params, section: Translation, shared: dict[str, Any], arm: str, seed: int) -> Cell:
    from softmax_temperature.losses import objective_module

    options = {"CE": {}, "LS": {"smoothing": section.smoothing}, "FL": {"gamma": section.gamma}}
    parameters = {
        **shared,
        "loss": ARMS[arm],
        "options": options[arm],
        # The seed's, not the cell's: all arms start from the same weights and see the same batches.
        "training_seed": seed_of(params.seed, "focal", "translation", str(seed)),
    }
    return Cell(f"{arm}/{seed}", run, parameters, code=(objective_module(ARMS[arm]),))


def run(
    job: Job,
    *,
    dataset: str,
    source: str,
    target: str,
    root: str,
    digest: str | None,  # noqa: ARG001  # Only a part of the fingerprint.
    train_limit: int | None,
    validation_limit: int | None,
    test_limit: int | None,
    vocabulary: int,
    longest: int,
    network: dict[str, Any],
    recipe: dict[str, Any],
    loss: str,
    options: dict[str, Any],
    temperatures: list[float],
    search: dict[str, Any],
    data_seed: int,
    training_seed: int,
) -> None:
    """Train one network and translate the test sentences.

    Writes `weights.safetensors`; `vocabulary.json`, for the library tokenizers; `calibration.json`, with a row for each
    temperature (as `calibration_by_temperature` returns it, with `split`): on validation data for the whole grid of the
    paper, on test data for those at which test sentences are translated; `bleu.json`, with a row for each of the latter
    (`temperature`, and what `translation.bleu.Score` holds); `translations.json`, the translations by temperature; and
    `record.json`, with a row for each epoch (`TokenScores`). A training that diverged is a result: its record says so,
    its weights are the last finite ones, and nothing is translated.

    Args:
        job: resumes from its checkpoint.
        dataset: its name.
        source: the language to translate from: the ending of its files.
        target: that to translate into, likewise.
        root: the folder of the raw data.
        digest: of the data set's files.
        train_limit: pairs of the training part; None is all.
        validation_limit: of the validation part, likewise.
        test_limit: of the test part, likewise.
        vocabulary: pieces of words at most.
        longest: tokens of each side of a training pair; longer ones are left out.
        network: sizes, as for `TranslationTransformer`.
        recipe: a `Recipe`, as JSON; its batch size counts tokens.
        loss: the name of the objective.
        options: of the objective.
        temperatures: at which the test sentences are translated, beside 1 and the one that validation data choose.
        search: `beam`, `length_penalty`, `extra_length` and `sentences`, as in `params.translation.BeamSearch`.
        data_seed: of what is drawn of the data set; the same for all cells.
        training_seed: of weights, batches and their order, and dropout.
    """
    from safetensors.torch import save_model

    from softmax_temperature.losses import make_objective
    from softmax_temperature.training import Diverged, Trainer, count_parameters, train
    from softmax_temperature.training.translation.network import make_network
    from softmax_temperature.training.translation.training import TokenScores, per_token

    plan = Recipe.model_validate(recipe)
    limits: dict[SplitName, int | None] = {"train": train_limit, "validation": validation_limit, "test": test_limit}
    parts = _parts(dataset, (source, target), limits, Path(root), data_seed)
    data = _Data.of(parts, vocabulary, longest, tokens=plan.batch_size, seed=training_seed)
    model = make_network(data.pieces.size, seed=training_seed, **network)
    objective = per_token(make_objective(loss, options))
    one_by_one = plan.changed({"batch_size": 1})  # The loop's samples are batches already.
    trainer = Trainer(model, objective, data.batches["train"], one_by_one, seed=training_seed, device=job.device)
    scores = TokenScores(data.batches["validation"])
    diverged = train(trainer, {"scores": scores}, job)
    if not diverged:
        try:
            calibration, best = _calibration(trainer, data, temperatures)
        except Diverged:
            diverged = True
        else:
            write_json(job.output / "calibration.json", calibration)
            _translate(job, trainer, data, search, sorted({*temperatures, UNSCALED, best}))

    save_model(trainer.network.cpu(), str(job.output / "weights.safetensors"))
    write_text(job.output / "vocabulary.json", data.pieces.to_json())
    record = {
        "epochs": plan.epochs,
        "planned_epochs": plan.planned_epochs,
        "epochs_done": trainer.epochs_done,
        "micro_batches": trainer.micro_batches,
        "diverged": diverged,
        "parameters": count_parameters(model),
        "vocabulary": data.pieces.size,
        "pairs": {split: len(some) for split, some in data.pairs.items()},
        "too_long": len(parts["train"]) - len(data.pairs["train"]),
        "steps_per_epoch": trainer.steps_per_epoch,
        "history": scores.history,
    }
    write_json(job.output / "record.json", record)


def _parts(
    dataset: str, languages: tuple[str, str], limits: Mapping[SplitName, int | None], root: Path, seed: int
) -> dict[SplitName, ParallelPart]:
    from softmax_temperature.data.translation import limited, read_translation

    parts = read_translation(dataset, languages, root=root, seed=seed)
    return {split: limited(part, limits[split], seed=seed) for split, part in parts.items()}


@dataclass(frozen=True)
class _Data:
    """The sentences as text, as numbers, and in batches."""

    parts: Mapping[SplitName, ParallelPart]
    pieces: Vocabulary
    pairs: Mapping[SplitName, SentencePairs]
    batches: Mapping[SplitName, LengthBatches]

    @classmethod
    def of(
        cls, parts: Mapping[SplitName, ParallelPart], vocabulary: int, longest: int, *, tokens: int, seed: int
    ) -> _Data:
        """Raises InputError if no training pair is short enough."""
        from softmax_temperature.training.translation.pairs import SentencePairs, length_batches
        from softmax_temperature.training.translation.vocabulary import Vocabulary

        pieces = Vocabulary.fit(parts["train"], size=vocabulary)
        texts = {
            split: part.for_evaluation() if split == "test" else part.for_fitting() for split, part in parts.items()
        }
        pairs = {split: SentencePairs(*map(pieces.encode, sides)) for split, sides in texts.items()}
        pairs["train"] = pairs["train"].up_to(longest)
        if not len(pairs["train"]):
            what = f"{longest}, no training pair is so short"
            raise InputError(what, where="focal.translation.longest", remedy="Raise it, or the vocabulary.")
        batches = {split: length_batches(some, tokens=tokens, seed=seed) for split, some in pairs.items()}
        return cls(parts, pieces, pairs, batches)


def _calibration(trainer: Trainer, data: _Data, temperatures: Sequence[float]) -> tuple[list[dict[str, Any]], float]:
    """A row for each held-out split and temperature, and the temperature that validation data choose."""
    from softmax_temperature.scaling import TEMPERATURE_GRID
    from softmax_temperature.training.translation.calibration import best_temperature, calibration_by_temperature
    from softmax_temperature.training.translation.training import token_logits

    def of(split: SplitName, asked: set[float]) -> list[dict[str, Any]]:
        rows = calibration_by_temperature(token_logits(trainer, data.batches[split]), sorted(asked))
        return [{"split": split, **row} for row in rows]

    validation = of("validation", {*TEMPERATURE_GRID, *temperatures})
    best = best_temperature(validation)
    return validation + of("test", {*temperatures, UNSCALED, best}), best


def _translate(
    job: Job, trainer: Trainer, data: _Data, search: Mapping[str, Any], temperatures: Sequence[float]
) -> None:
    """Write translations of the test sentences at each temperature, and their BLEU."""
    from softmax_temperature.training.translation.bleu import bleu
    from softmax_temperature.training.translation.decoding import Search, translate
    from softmax_temperature.training.translation.network import TranslationTransformer

    network, sources = trainer.network, data.pairs["test"].sources
    assert isinstance(network, TranslationTransformer), "run makes no other"
    texts = {
        at: data.pieces.decode(translate(network, sources, Search(**search), temperature=at, device=trainer.device))
        for at in temperatures
    }
    _, references = data.parts["test"].for_evaluation()
    rows = [{"temperature": at, **bleu(translations, references)._asdict()} for at, translations in texts.items()]
    write_json(job.output / "bleu.json", rows)
    write_json(job.output / "translations.json", {str(at): translations for at, translations in texts.items()})

"""Scores of translation: the calibration of next-token predictions over temperatures,
and BLEU (focal, appendix K).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from softmax_temperature.data.splits import SplitName, refuse_test
from softmax_temperature.metrics.calibration import CHUNK, binned_sums, equal_width_bins
from softmax_temperature.params.focal import TranslationTask
from softmax_temperature.scaling import TEMPERATURE_GRID
from softmax_temperature.training.trainer import Callback, Trainer
from softmax_temperature.training.translation.network import translate
from softmax_temperature.training.translation.sentences import PADDING, LengthBatches

if TYPE_CHECKING:
    from softmax_temperature.training.translation.vocabulary import (
        Vocabulary,
    )  # Needs an optional package.

BINS = 15

# Deviation: Vaswani et al. report BLEU of tokenised text with compounds split; the
# focal paper does not say which. Here it is sacrebleu's own: of plain text,
# case-sensitive, tokenised as by mteval-v13a, smoothed where an n-gram never matches.


def bleu(translations: Sequence[str], references: Sequence[str]) -> dict[str, Any]:
    """Of a whole test set: `bleu` (a fraction), `length_ratio` (words over those of the
    references) and `signature`.
    """
    from sacrebleu.metrics.bleu import BLEU  # An optional package.

    metric = BLEU()
    result = metric.corpus_score(list(translations), [list(references)])
    ratio = result.sys_len / result.ref_len
    return {
        "bleu": result.score / 100,
        "length_ratio": ratio,
        "signature": str(metric.get_signature()),
    }


# Deviation: what the calibration error of a translation is of, the paper does not say.
# Here, as Müller et al. (2019) have it, it is that of the next token given the true
# tokens before it, over all target tokens and the sentence's end.


def calibration_by_temperature(
    batches: Iterable[tuple[Tensor, Tensor]], temperatures: Sequence[float]
) -> list[dict[str, Any]]:
    """What each temperature does to the calibration of predictions that are too many
    for the memory.

    `batches` of logits (n, classes) and labels (n,) are read once; `temperatures`
    divide the logits. A row for each: `temperature`, `ece` (15 bins, a fraction), `nll`
    (mean, nats), and the same on all, `accuracy` and `tokens`.
    """
    gaps = torch.zeros(len(temperatures), BINS, dtype=torch.float64)
    losses = torch.zeros(len(temperatures), dtype=torch.float64)
    right = count = 0
    for logits, labels in batches:
        rows = max(1, CHUNK // logits.shape[1])  # Bounds the temporaries.
        for some, truth in zip(logits.split(rows), labels.split(rows), strict=True):
            margins = some.double() - some.double().amax(dim=1, keepdim=True)
            correct = (some.argmax(dim=1) == truth).double()
            of_label = margins.gather(1, truth[:, None]).squeeze(1)
            right, count = right + int(correct.sum()), count + len(truth)
            for number, temperature in enumerate(temperatures):
                sums = torch.exp(margins / temperature).sum(dim=1)
                confidences = 1 / sums  # The predicted class has margin 0.
                gaps[number] += binned_sums(
                    equal_width_bins(confidences, BINS), correct - confidences, BINS
                ).cpu()
                losses[number] += (sums.log() - of_label / temperature).sum().cpu()
    return [
        {
            "temperature": temperature,
            "ece": ece / count,
            "nll": nll / count,
            "accuracy": right / count,
            "tokens": count,
        }
        for temperature, ece, nll in zip(
            temperatures, gaps.abs().sum(1).tolist(), losses.tolist(), strict=True
        )
    ]


def best_temperature(rows: Iterable[dict[str, Any]]) -> float:
    """The temperature of the paper's grid, 0.1 to 10.0, with the least calibration error.

    `rows` are those of the validation data; test data raise LeakError. Of equal
    temperatures the first is chosen.
    """
    on_grid = []
    for row in rows:
        refuse_test(row["split"], "calibration by temperature")
        if row["temperature"] in TEMPERATURE_GRID:
            on_grid.append(row)
    return float(min(on_grid, key=lambda row: row["ece"])["temperature"])


def token_logits(
    trainer: Trainer, batches: LengthBatches
) -> Iterator[tuple[Tensor, Tensor]]:
    """Logits (tokens, vocabulary) of every target token given those before it, and
    labels, a batch at a time.
    """
    for (logits, _), labels in zip(
        trainer.outputs(batches.inputs, 1, batches), batches.labels, strict=True
    ):
        trainer.check_finite(logits)
        yield logits, labels[labels != PADDING].to(logits.device)


UNSCALED = 1.0
"""The temperature of a network as it was trained."""


def evaluate(
    trainer: Trainer,
    task: TranslationTask,
    vocabulary: Vocabulary,
    batches: Mapping[SplitName, LengthBatches],
    references: Sequence[str],
) -> dict[str, Any]:
    """The `calibration` at each temperature, and `translations` of the test sentences
    with their `bleu`.

    On validation data the temperatures are the whole grid of the paper, on test data
    those of the translations. Raises Diverged if logits are not finite.
    """

    def calibration(split: SplitName, asked: set[float]) -> list[dict[str, Any]]:
        rows = calibration_by_temperature(
            token_logits(trainer, batches[split]), sorted(asked)
        )
        return [{"split": batches[split].split, **row} for row in rows]

    validation = calibration("validation", {*TEMPERATURE_GRID, *task.temperatures})
    asked = {*task.temperatures, UNSCALED, best_temperature(validation)}
    found: dict[str, Any] = {
        "calibration": validation + calibration("test", asked),
        "bleu": [],
        "translations": {},
    }
    network: Any = trainer.network
    for at in sorted(asked):
        tokens = translate(
            network,
            batches["test"].pairs.sources,
            task.search,
            temperature=at,
            device=trainer.device,
        )
        texts = found["translations"][str(at)] = vocabulary.decode(tokens)
        found["bleu"].append({"temperature": at, **bleu(texts, references)})
    return found


class TokenScores(Callback):
    """Scores a training on the tokens of `batches` after each epoch: `epoch`, `loss`,
    `nll`, `accuracy` and `ece`.
    """

    def __init__(self, batches: LengthBatches) -> None:
        super().__init__()
        self._batches = batches

    def validation_row(self) -> dict[str, Any]:
        """The scores after the last epoch; LeakError if they are those of test data."""
        refuse_test(self._batches.split, "scores of tokens")
        return self.history[-1]

    def after_epoch(self, trainer: Trainer) -> None:
        """Add the epoch's row; raises Diverged if logits are not finite."""
        [row] = calibration_by_temperature(token_logits(trainer, self._batches), [1.0])
        about = {"epoch": trainer.epochs_done, "loss": trainer.loss}
        self.history.append(
            about | {name: row[name] for name in ("nll", "accuracy", "ece")}
        )

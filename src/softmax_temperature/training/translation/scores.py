"""Scores of translation: calibration of next-token predictions, and BLEU.

Focal paper, appendix K.
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
    # Imported only for type checking, because the module needs an optional package.
    from softmax_temperature.training.translation.vocabulary import Vocabulary

BINS = 15

# Deviation: we report sacrebleu's default BLEU: plain text, case-sensitive, tokenised
# by the rules of mteval-v13a, smoothed if an n-gram never matches. Vaswani et al.
# report BLEU of tokenised text with compounds split; the focal paper does not say which
# BLEU it reports.


def bleu(translations: Sequence[str], references: Sequence[str]) -> dict[str, Any]:
    """Compute BLEU of a whole test set.

    `bleu` is a fraction, `length_ratio` is the translations' number of words divided by
    the references' number of words, and `signature` names the settings of sacrebleu.
    """
    from sacrebleu.metrics.bleu import BLEU  # An optional package.

    metric = BLEU()
    result = metric.corpus_score(list(translations), [list(references)])
    return {
        "bleu": result.score / 100,
        "length_ratio": result.sys_len / result.ref_len,
        "signature": str(metric.get_signature()),
    }


# Deviation: as in Müller et al. (2019), we measure the calibration error of the next
# token given the true tokens before it, over all target tokens and the sentence's end.
# The paper does not say for which predictions it measures the error.


def calibration_by_temperature(
    batches: Iterable[tuple[Tensor, Tensor]], temperatures: Sequence[float]
) -> list[dict[str, Any]]:
    """Compute the ECE and the NLL of the predictions at each of `temperatures`.

    `temperatures` divide the logits. `batches` of logits (n, classes) and labels (n,)
    are read once, one by one, because all together may not fit into memory. Each
    temperature has a row: `temperature`, `ece` (15 bins, a fraction), `nll` (mean,
    nats), and `accuracy` and `tokens`, which are equal in all rows.
    """
    gaps = torch.zeros(len(temperatures), BINS, dtype=torch.float64)
    losses = torch.zeros(len(temperatures), dtype=torch.float64)
    right = 0
    count = 0
    for logits, truth in _pieces(batches):
        margins = logits.double() - logits.double().amax(dim=1, keepdim=True)
        label_margins = margins.gather(1, truth[:, None]).squeeze(1)
        correct = (logits.argmax(dim=1) == truth).double()
        right += int(correct.sum())
        count += len(truth)
        for number, temperature in enumerate(temperatures):
            sums = torch.exp(margins / temperature).sum(dim=1)
            confidences = 1 / sums  # The predicted class has margin 0.
            bins = equal_width_bins(confidences, BINS)
            gaps[number] += binned_sums(bins, correct - confidences, BINS).cpu()
            losses[number] += (sums.log() - label_margins / temperature).sum().cpu()
    errors = gaps.abs().sum(1).tolist()
    rows = []
    for temperature, ece, nll in zip(
        temperatures, errors, losses.tolist(), strict=True
    ):
        rows.append(
            {
                "temperature": temperature,
                "ece": ece / count,
                "nll": nll / count,
                "accuracy": right / count,
                "tokens": count,
            }
        )
    return rows


def _pieces(
    batches: Iterable[tuple[Tensor, Tensor]],
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the batches in smaller pieces, which limits the size of temporaries."""
    for logits, labels in batches:
        rows = max(1, CHUNK // logits.shape[1])
        yield from zip(logits.split(rows), labels.split(rows), strict=True)


def best_temperature(rows: Iterable[dict[str, Any]]) -> float:
    """Choose the temperature of the paper's grid with the lowest calibration error.

    The grid is 0.1, 0.2, ..., 10.0. `rows` come from validation data; test data raise
    LeakError. If several temperatures tie, the first of them is returned.
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
    """Yield logits (tokens, vocabulary) and labels of each batch's target tokens.

    A token's logits are computed from the true tokens before it.
    """
    outputs = trainer.outputs(batches.inputs, 1, batches)
    for (logits, _), labels in zip(outputs, batches.labels, strict=True):
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
    """Measure the calibration at each temperature, and translate the test sentences.

    The keys of the result are `calibration`, `translations` and `bleu`.

    The test sentences are translated at `task.temperatures`, at 1, and at the
    temperature that is best on validation data. On test data the calibration is
    measured at the same temperatures; on validation data it is measured at the paper's
    whole grid and at `task.temperatures`. Raises Diverged if logits are not finite.
    """

    def calibration(split: SplitName, asked: set[float]) -> list[dict[str, Any]]:
        rows = calibration_by_temperature(
            token_logits(trainer, batches[split]), sorted(asked)
        )
        return [{"split": batches[split].split, **row} for row in rows]

    validation = calibration("validation", {*TEMPERATURE_GRID, *task.temperatures})
    asked = {*task.temperatures, UNSCALED, best_temperature(validation)}
    test = calibration("test", asked)
    network: Any = trainer.network
    translations: dict[str, list[str]] = {}
    scores: list[dict[str, Any]] = []
    for temperature in sorted(asked):
        tokens = translate(
            network,
            batches["test"].pairs.sources,
            task.search,
            temperature=temperature,
            device=trainer.device,
        )
        texts = vocabulary.decode(tokens)
        translations[str(temperature)] = texts
        scores.append({"temperature": temperature, **bleu(texts, references)})
    return {
        "calibration": validation + test,
        "bleu": scores,
        "translations": translations,
    }


class TokenScores(Callback):
    """Scores the network on the tokens of `batches` after each epoch.

    A row of `history` has `epoch`, `loss`, `nll`, `accuracy` and `ece`.
    """

    def __init__(self, batches: LengthBatches) -> None:
        super().__init__()
        self._batches = batches

    def validation_row(self) -> dict[str, Any]:
        """Return the last row of `history`; raise LeakError for test data."""
        refuse_test(self._batches.split, "scores of tokens")
        return self.history[-1]

    def after_epoch(self, trainer: Trainer) -> None:
        """Add the epoch's row to `history`; raise Diverged if logits are not finite."""
        [row] = calibration_by_temperature(token_logits(trainer, self._batches), [1.0])
        self.history.append(
            {
                "epoch": trainer.epochs_done,
                "loss": trainer.loss,
                "nll": row["nll"],
                "accuracy": row["accuracy"],
                "ece": row["ece"],
            }
        )

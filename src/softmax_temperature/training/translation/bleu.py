"""BLEU, by sacrebleu."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sacrebleu.metrics.bleu import BLEU

if TYPE_CHECKING:
    from collections.abc import Sequence

# Deviation: Vaswani et al. report BLEU of tokenised text with compounds split; the focal paper does not say which. Here
# it is sacrebleu's own: of plain text, case-sensitive, tokenised as by mteval-v13a, smoothed where an n-gram never
# matches.


class Score(NamedTuple):
    """BLEU and how it came about.

    Attributes:
        bleu: a fraction; usually shown times 100.
        length_ratio: words of the translations over those of the references.
        signature: what sacrebleu did, with its version.
    """

    bleu: float
    length_ratio: float
    signature: str


def bleu(translations: Sequence[str], references: Sequence[str]) -> Score:
    """BLEU of a whole test set, one reference a sentence.

    Raises:
        ValueError: there are not as many references as translations, or none.
    """
    if not 0 < len(references) == len(translations):
        raise ValueError(f"references must be one for each of {len(translations)} translations, got {len(references)}")
    metric = BLEU()
    result = metric.corpus_score(list(translations), [list(references)])
    return Score(result.score / 100, result.sys_len / result.ref_len, str(metric.get_signature()))

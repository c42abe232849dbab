"""Data sets of sentences and their translations: where they come from, and what may be done with which part."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from softmax_temperature.data.farm import FARM, LANGUAGES, read_farm
from softmax_temperature.data.parallel_texts import ParallelTexts
from softmax_temperature.data.sampling import generator_for
from softmax_temperature.data.splits import SPLITS, LeakError
from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from softmax_temperature.data.splits import SplitName

Sentences = tuple[str, ...]

_BY_HAND = MappingProxyType(
    {
        "wmt14_en_de": "Get the German-English corpora of statmt.org/wmt14/translation-task.html: Europarl v7, Common "
        "Crawl and News Commentary v9, one after another, are {folder}/train.en and train.de, without the pairs that "
        "have no sentence on one side; newstest2013 is validation.en and validation.de (3,000 lines), newstest2014 "
        "test.en and test.de (3,003 lines), a sentence a line without the SGML around it.",
    }
)
"""What to put where, of the data sets that have a name here; any other folder of this form will do too."""


@dataclass(frozen=True)
class ParallelPart:
    """One split of one data set, as `splits.Part` before sentences have become numbers.

    Attributes:
        dataset: its name.
        split: which part of it this is.
        sources: n sentences to translate.
        targets: n translations.
    """

    dataset: str
    split: SplitName
    sources: Sentences
    targets: Sentences

    def __post_init__(self) -> None:
        if len(self.sources) != len(self.targets):
            lengths = f"{len(self.sources)} sources, {len(self.targets)} targets"
            raise ValueError(f"{self.dataset}/{self.split}: {lengths}")

    def __len__(self) -> int:
        return len(self.sources)

    def for_vocabulary(self) -> Iterable[str]:
        """Sentences of both languages whose pieces may become a vocabulary.

        Raises:
            LeakError: these are not the training sentences.
        """
        if self.split != "train":
            raise LeakError(f"{self.dataset}: the {self.split} split was asked for to make a vocabulary")
        yield from self.sources
        yield from self.targets

    def for_fitting(self) -> tuple[Sentences, Sentences]:
        """Sources and targets to fit parameters on.

        Raises:
            LeakError: this is the test split.
        """
        if self.split == "test":
            raise LeakError(f"{self.dataset}: the test split was asked for to fit something")
        return self.sources, self.targets

    def for_evaluation(self) -> tuple[Sentences, Sentences]:
        """Sources and targets to report on; any split."""
        return self.sources, self.targets


def translation_digest(name: str, languages: tuple[str, str], *, root: Path) -> str | None:
    """A sha256 over the files of a data set, or None for the one that is generated.

    Raises:
        InputError: it is not there, or its folder is not complete.
    """
    return None if name == FARM else _folder(name, languages, root).digest()


def read_translation(name: str, languages: tuple[str, str], *, root: Path, seed: int) -> dict[SplitName, ParallelPart]:
    """All splits of a data set, in memory.

    Args:
        name: "farm", or that of a folder below `root`.
        languages: the endings of the files, that to translate from first.
        root: the folder of the raw data (data.root).
        seed: draws the sentences of farm; nothing else depends on it here.

    Raises:
        InputError: the data set is not there, or its files are not of the right form.
    """
    if name != FARM:
        folder = _folder(name, languages, root)
        return {split: ParallelPart(name, split, *folder.read(split)) for split in SPLITS}
    if set(languages) != set(LANGUAGES):
        what = f"is in {' and '.join(LANGUAGES)}, not {' and '.join(languages)}"
        _refuse(name, what, "Correct focal.translation.source or focal.translation.target.")
    forward = languages == LANGUAGES
    return {
        split: ParallelPart(name, split, *((english, german) if forward else (german, english)))
        for split, (english, german) in read_farm(seed=seed).items()
    }


def limited(part: ParallelPart, limit: int | None, *, seed: int) -> ParallelPart:
    """So many pairs of a part, drawn at random, or all of them for None and when there are no more."""
    if limit is None or limit >= len(part):
        return part
    order = generator_for(seed, part.dataset, f"{part.split} limit").permutation(len(part))
    rows = np.sort(order[:limit]).tolist()
    sources, targets = (tuple(side[row] for row in rows) for side in (part.sources, part.targets))
    return ParallelPart(part.dataset, part.split, sources, targets)


def _folder(name: str, languages: tuple[str, str], root: Path) -> ParallelTexts:
    folder = ParallelTexts(root, name, languages)
    if not folder.path.is_dir():
        files = ", ".join(f"{split}.{language}" for split in SPLITS for language in languages)
        general = f"Put {files} into {folder.path}, a sentence a line in UTF-8."
        by_hand: Mapping[str, str] = _BY_HAND
        _refuse(name, f"not found in {root}", by_hand.get(name, general).format(folder=folder.path))
    return folder


def _refuse(name: str, what: str, remedy: str) -> NoReturn:
    raise InputError(what, where=f"data set {name}", remedy=remedy)

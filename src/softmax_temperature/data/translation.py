"""Data sets of sentences and their translations: `NAME/PART.LANGUAGE` in UTF-8, for instance `wmt/train.en`.

PART is train, validation or test. Line k of one language is the translation of line k of the other.
"""

from pathlib import Path
from typing import NoReturn

from softmax_temperature.data.catalogue import BY_HAND
from softmax_temperature.data.class_folders import digest_of_files
from softmax_temperature.data.farm import FARM, LANGUAGES, read_farm
from softmax_temperature.data.splits import SPLITS, Part, SplitName
from softmax_temperature.runner.errors import InputError


def translation_digest(name: str, languages: tuple[str, str], *, root: Path) -> str | None:
    """A sha256 over the files of a data set, or None for the one that is generated; a missing one raises InputError."""
    if name == FARM:
        return None
    files = [file.name for split in SPLITS for file in _files(name, languages, root, split)]
    return digest_of_files(root / name, files)


def read_translation(name: str, languages: tuple[str, str], *, root: Path, seed: int) -> dict[SplitName, Part]:
    """All splits of "farm", which `seed` draws, or of a folder below `root` (data.root), in memory.

    Translations are from the first of the `languages`, the endings of the files, to the second.
    """
    if name != FARM:
        return {split: Part.of_pairs(name, split, *_read(_files(name, languages, root, split))) for split in SPLITS}
    if set(languages) != set(LANGUAGES):
        what = f"is in {' and '.join(LANGUAGES)}, not {' and '.join(languages)}"
        _refuse(f"data set {name}", what, "Correct focal.translation.source or focal.translation.target.")
    order = 1 if languages == LANGUAGES else -1
    return {split: Part.of_pairs(name, split, *sides[::order]) for split, sides in read_farm(seed=seed).items()}


def _files(name: str, languages: tuple[str, str], root: Path, split: SplitName) -> tuple[Path, Path]:
    folder = root / name
    if not folder.is_dir():
        files = ", ".join(f"{part}.{language}" for part in SPLITS for language in languages)
        general = f"Put {files} into {folder}, one sentence per line in UTF-8."
        _refuse(f"data set {name}", f"not found in {root}", BY_HAND.get(name, general).format(folder=folder))
    source, target = (folder / f"{split}.{language}" for language in languages)
    for file in (source, target):
        if not file.is_file():
            _refuse(file, "no such file", "Put one sentence per line there, in UTF-8.")
    return source, target


def _read(files: tuple[Path, Path]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    source, target = (_sentences(file) for file in files)
    if len(source) != len(target):
        what = f"has {len(source):,} lines, {files[1].name} {len(target):,}"
        _refuse(files[0], what, "Make line k of one file the translation of line k of the other.")
    return source, target


def _sentences(file: Path) -> tuple[str, ...]:
    """The lines of a file, without white space around them; only a line feed ends one."""
    try:
        lines = file.read_bytes().decode().removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        _refuse(file, f"is not UTF-8 (byte {error.start})", "Save the file in UTF-8.")
    sentences = tuple(line.strip() for line in lines)
    if "" in sentences:
        remedy = "Take out the pairs that have no sentence on one side, in both files."
        _refuse(f"{file}, line {sentences.index('') + 1}", "is empty", remedy)
    return sentences


def _refuse(where: Path | str, what: str, remedy: str) -> NoReturn:
    raise InputError(what, where=str(where), remedy=remedy)

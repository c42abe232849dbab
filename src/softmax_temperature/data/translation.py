"""Data sets of translations: `NAME/PART.LANGUAGE` in UTF-8, for instance
`wmt/train.en`; line k translates line k.
"""

from pathlib import Path

from softmax_temperature.data.catalogue import BY_HAND
from softmax_temperature.data.image_files import digest_of_files
from softmax_temperature.data.phrases import FARM, LANGUAGES, read_farm
from softmax_temperature.data.splits import SPLITS, Part, SplitName
from softmax_temperature.runner.errors import InputError


def translation_digest(
    name: str, languages: tuple[str, str], *, root: Path
) -> str | None:
    """A sha256 over the files of a data set, or None for the one that is generated; a
    missing one raises InputError.
    """
    if name == FARM:
        return None
    files = [
        file.name for pair in _files(name, languages, root).values() for file in pair
    ]
    return digest_of_files(root / name, files)


def read_translation(
    name: str, languages: tuple[str, str], *, root: Path, seed: int
) -> dict[SplitName, Part]:
    """All splits of "farm", which `seed` draws, or of a folder below `root`, from the
    first language to the second.
    """
    if name != FARM:
        found = {
            split: _read(*pair) for split, pair in _files(name, languages, root).items()
        }
    elif set(languages) != set(LANGUAGES):
        remedy = "Correct focal.translation.source or focal.translation.target."
        raise InputError(
            f"is in {' and '.join(LANGUAGES)}", where=f"data set {name}", remedy=remedy
        )
    else:
        order = 1 if languages == LANGUAGES else -1
        found = {split: sides[::order] for split, sides in read_farm(seed=seed).items()}
    return {split: Part.of_all(name, split, *sides) for split, sides in found.items()}


def _files(
    name: str, languages: tuple[str, str], root: Path
) -> dict[SplitName, list[Path]]:
    folder = root / name
    files = {
        split: [folder / f"{split}.{language}" for language in languages]
        for split in SPLITS
    }
    if missing := [
        file.name for pair in files.values() for file in pair if not file.is_file()
    ]:
        general = (
            f"Put {', '.join(missing)} into {folder}, one sentence per line in UTF-8."
        )
        what = f"has no {missing[0]}" if folder.is_dir() else f"not found in {root}"
        raise InputError(
            what,
            where=f"data set {name}",
            remedy=BY_HAND.get(name, general).format(folder=folder),
        )
    return files


def _read(*files: Path) -> tuple[tuple[str, ...], ...]:
    sides = tuple(map(_sentences, files))
    if len({*map(len, sides)}) > 1:
        what = f"has {len(sides[0]):,} lines, {files[1].name} {len(sides[1]):,}"
        remedy = "Make line k of one file the translation of line k of the other."
        raise InputError(what, where=str(files[0]), remedy=remedy)
    return sides


def _sentences(file: Path) -> tuple[str, ...]:
    try:
        lines = file.read_bytes().decode().removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(
            f"is not UTF-8 (byte {error.start})",
            where=str(file),
            remedy="Save it in UTF-8.",
        ) from error
    sentences = tuple(line.strip() for line in lines)
    if "" in sentences:
        remedy = "Take out the pairs that have no sentence on one side, in both files."
        raise InputError(
            "is empty", where=f"{file}, line {sentences.index('') + 1}", remedy=remedy
        )
    return sentences

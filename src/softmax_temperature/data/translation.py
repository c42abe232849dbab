"""Data sets of translations: `NAME/SPLIT.LANGUAGE` in UTF-8, such as `wmt/train.en`.

Line k of one language translates line k of the other.
"""

from pathlib import Path

from softmax_temperature.data.catalogue import BY_HAND
from softmax_temperature.data.farm import FARM, LANGUAGES, read_farm
from softmax_temperature.data.image_files import cannot_be_read, digest_of_files
from softmax_temperature.data.splits import SPLITS, Part, SplitName
from softmax_temperature.runner.errors import InputError, MissingInput

_Sides = tuple[tuple[str, ...], tuple[str, ...]]
"""Sentences, and their translations."""


def require_pairs(name: str, languages: tuple[str, str], *, root: Path) -> None:
    """Raise MissingInput unless the data set is generated or all its files exist."""
    if name != FARM:
        _files(name, languages, root)


def translation_digest(
    name: str, languages: tuple[str, str], *, root: Path
) -> str | None:
    """Compute one sha256 over the files of a data set, or None for a generated one.

    Raises:
        MissingInput: If a file is missing.
    """
    if name == FARM:
        return None
    splits = _files(name, languages, root)
    files = [file.name for pair in splits.values() for file in pair]
    return digest_of_files(root / name, files)


def read_translation(
    name: str, languages: tuple[str, str], *, root: Path, seed: int
) -> dict[SplitName, Part]:
    """Read all splits of "farm" or of a folder.

    Args:
        name: The name of the data set.
        languages: The source and the target language.
        root: The folder with the user's data (the parameter `data.root`).
        seed: The seed of "farm".

    Raises:
        InputError: If a file is missing, is not UTF-8 or has an empty line, or if the
            files of a split differ in their number of lines.
    """
    if name == FARM:
        splits = _generate_farm(languages, seed)
    else:
        files = _files(name, languages, root)
        splits = {split: _read(*pair) for split, pair in files.items()}
    return {
        split: Part.of_all(name, split, sentences, translations)
        for split, (sentences, translations) in splits.items()
    }


def _generate_farm(languages: tuple[str, str], seed: int) -> dict[SplitName, _Sides]:
    if set(languages) != set(LANGUAGES):
        raise InputError(
            f"has only the languages {' and '.join(LANGUAGES)}",
            where=f"data set {FARM}",
            remedy="Correct focal.translation.source or focal.translation.target.",
        )
    splits = read_farm(seed=seed)
    if languages == LANGUAGES:
        return splits
    return {split: (german, english) for split, (english, german) in splits.items()}


def _files(
    name: str, languages: tuple[str, str], root: Path
) -> dict[SplitName, tuple[Path, Path]]:
    """Return the two files of each split; raise MissingInput if one is missing."""
    folder = root / name
    source, target = languages
    files = {
        split: (folder / f"{split}.{source}", folder / f"{split}.{target}")
        for split in SPLITS
    }
    missing = [
        file.name for pair in files.values() for file in pair if not file.is_file()
    ]
    if missing:
        general = (
            f"Put {', '.join(missing)} into {folder}, one sentence per line in UTF-8."
        )
        fault = f"has no {missing[0]}" if folder.is_dir() else f"not found in {root}"
        raise MissingInput(
            fault,
            where=f"data set {name}",
            remedy=BY_HAND.get(name, general).format(folder=folder),
        )
    return files


def _read(source: Path, target: Path) -> _Sides:
    sentences = _sentences(source)
    translations = _sentences(target)
    if len(sentences) != len(translations):
        raise InputError(
            f"has {len(sentences):,} lines, but {target.name} has "
            f"{len(translations):,}",
            where=str(source),
            remedy="Make line k of one file the translation of line k of the other.",
        )
    return sentences, translations


def _sentences(file: Path) -> tuple[str, ...]:
    """Read the lines of `file`, without a byte order mark or empty lines at the end."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise cannot_be_read(file, error) from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"is not UTF-8 (byte {error.start})",
            where=str(file),
            remedy="Save it in UTF-8.",
        ) from error
    lines = text.rstrip("\r\n").split("\n")
    sentences = tuple(line.strip() for line in lines)
    if "" in sentences:
        raise InputError(
            "is empty",
            where=f"{file}, line {sentences.index('') + 1}",
            remedy=("Remove pairs with an empty side from both files."),
        )
    return sentences

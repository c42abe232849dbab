"""Compare a study's results with those of a commit or of another study."""

import csv
import io
import json
import math
import re
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from softmax_temperature.papers.shared.results import CLAIMS, RESULTS
from softmax_temperature.papers.shared.sources import RECORDS
from softmax_temperature.runner.errors import InputError

CLOSE = 1e-6
"""The largest relative difference that rounding in sums can explain."""
NEGLIGIBLE = 1e-12
"""Two numbers that are both closer to 0 than this count as equal, because their
relative difference is meaningless.
"""
SHOWN = 10
"""Maximum number of differences of each kind that the text lists."""

_ENVIRONMENT = PurePosixPath("environment.json")
_DIGEST = re.compile(r"^\.cells\[\d+\]\.(fingerprint$|inputs\.|result$)")

Files = Mapping[PurePosixPath, bytes]
Value = float | str | None


@dataclass(frozen=True)
class Difference:
    """Two numbers that differ.

    Attributes:
        where: The file, and the position of the numbers in it.
        first: The number in the first state.
        second: The number in the second state.
    """

    where: str
    first: float
    second: float

    @property
    def relative(self) -> float:
        """The numbers' absolute difference, divided by the larger absolute value."""
        size = max(abs(self.first), abs(self.second))
        if size < NEGLIGIBLE:
            return 0.0
        if not math.isfinite(size):
            return math.inf
        return abs(self.first - self.second) / size


@dataclass
class Comparison:
    """The differences between two states of a folder of results.

    Attributes:
        files: Number of files in either state.
        equal: Number of files that are equal byte for byte.
        largest: The two numbers with the largest relative difference; None if all
            numbers are equal.
        verdicts: One line for each claim whose verdict differs.
        texts: One line for each text that differs, and for each file whose rows,
            columns or keys differ.
        missing: Files that only one state has.
        pictures: Figures and notebooks whose bytes differ. Such differences do not
            count, because the numbers that they show are compared in the tables.
        processors: The processors of the two states, if they are of different kinds.
        not_run: A sentence that says why the results were not computed in this folder
            with its present parameters; equal files then prove nothing. Empty if the
            results were computed here, or if two studies are compared.
    """

    files: int = 0
    equal: int = 0
    largest: Difference | None = None
    verdicts: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)
    processors: tuple[str, str] | None = None
    not_run: str = ""

    @property
    def agrees(self) -> bool:
        """Whether verdicts, texts and names of files are equal, and numbers agree.

        Numbers agree if their relative difference is at most `CLOSE`. Pictures may
        differ.
        """
        agree = self.largest is None or self.largest.relative <= CLOSE
        return agree and not (self.verdicts or self.texts or self.missing)

    @property
    def reproduced(self) -> bool:
        """Whether the states agree, and this folder's results were computed here."""
        return self.agrees and not self.not_run

    def __str__(self) -> str:
        """One sentence, then the first differences of each kind, one per line."""
        lines = [self._sentence()]
        if self.agrees and self.not_run:
            lines.append(f"  {self.not_run}")
        if self.processors is not None and not self.agrees:
            lines.append(
                "  Different kinds of processors round differently, so training runs "
                "drift apart from the first step. To check the code, compare with "
                "results from the same kind."
            )
        lines += _listed("verdict differs", self.verdicts)
        lines += _listed("only one of the two has", self.missing)
        lines += _listed("text differs", self.texts)
        lines += _listed("picture or notebook differs", self.pictures)
        return "\n".join(lines)

    def _head(self) -> str:
        if self.agrees:
            return "Equal, but not run here" if self.not_run else "Reproduced"
        if self.processors is not None:
            kinds = " and ".join(self.processors)
            return f"Not comparable bit by bit, because they ran on {kinds}"
        if self.verdicts or self.missing:
            return "Not reproduced"
        return "Same verdicts, other numbers or texts"

    def _sentence(self) -> str:
        head = self._head()
        if self.equal == self.files:
            return f"{head}: all {self.files} files are equal byte for byte."
        parts = [f"{self.equal} of {self.files} files are equal byte for byte"]
        if self.largest is not None:
            parts.append(
                "the largest relative difference between numbers in the others is "
                f"{self.largest.relative:.1g} ({self.largest.where})"
            )
        if not self.verdicts:
            parts.append("no verdict differs")
        elif len(self.verdicts) == 1:
            parts.append("1 verdict differs")
        else:
            parts.append(f"{len(self.verdicts)} verdicts differ")
        return f"{head}: {'; '.join(parts)}."


def compare_with_commit(profile: str, revision: str = "HEAD") -> Comparison:
    """Compare results/PROFILE in this folder with the results in a commit.

    Args:
        profile: The name of the study.
        revision: A commit, branch or tag.

    Raises:
        InputError: If there is no Git history, or no such revision or folder in it.
    """
    folder = RESULTS / profile
    committed = _files_of_commit(revision, folder)
    ignored = _ignored(folder)
    current = {
        name: content
        for name, content in _files_of_folder(folder).items()
        if name not in ignored
    }
    return compare(committed, current)


def compare_studies(first: str, second: str) -> Comparison:
    """Compare the folders of two studies in results/.

    Raises:
        InputError: If one of them does not exist.
    """
    return compare(
        _files_of_folder(RESULTS / first), _files_of_folder(RESULTS / second)
    )


def compare(first: Files, second: Files) -> Comparison:
    """Compare the files that have the same name in `first` and `second`.

    A file that only one of the two has is reported as missing.
    """
    names = sorted({*first, *second})
    result = Comparison(files=len(names), processors=_other_processors(first, second))
    for name in names:
        if name not in first or name not in second:
            result.missing.append(str(name))
        elif first[name] == second[name]:
            result.equal += 1
        else:
            _compare_file(name, first[name], second[name], result)
    return result


def _other_processors(first: Files, second: Files) -> tuple[str, str] | None:
    kinds = tuple(_processors(files) for files in (first, second))
    if "" in kinds or kinds[0] == kinds[1]:
        return None
    return kinds[0], kinds[1]


def _processors(files: Files) -> str:
    """The accelerators or processors that computed the results; "" if not recorded."""
    content = files.get(_ENVIRONMENT)
    if content is None:
        return ""
    papers = json.loads(content).values()
    kinds = {_kind(entry["machine"]) for paper in papers for entry in paper["machines"]}
    return ", ".join(sorted(kinds))


def _kind(machine: Mapping[str, str | None]) -> str:
    """The hardware that determines how results are rounded.

    This is an accelerator, or a processor with its instruction set. Libraries choose
    their kernels by processor and instruction set, so different processors with the
    same instruction set may still give different results.
    """
    if machine["accelerator"] is not None:
        return machine["accelerator"]
    return f"{machine['processor']} ({machine['instructions']})"


def _compare_file(
    name: PurePosixPath, first: bytes, second: bytes, result: Comparison
) -> None:
    if name.suffix not in (".csv", ".json"):
        result.pictures.append(str(name))
        return
    if name.name == CLAIMS:
        result.verdicts += _changed_verdicts(json.loads(first), json.loads(second))
    values = dict(_values(name, first))
    other_values = dict(_values(name, second))
    if values.keys() != other_values.keys():
        result.texts.append(f"{name}: different rows, columns or keys")
        return
    for place, value in values.items():
        other_value = other_values[place]
        if isinstance(value, float) and isinstance(other_value, float):
            _note_difference(Difference(f"{name}, {place}", value, other_value), result)
        elif value != other_value and not _depends_on_bits(name, place):
            result.texts.append(f"{name}, {place}: {value!r} and {other_value!r}")


def _note_difference(difference: Difference, result: Comparison) -> None:
    if difference.relative == 0:
        return
    if result.largest is None or difference.relative > result.largest.relative:
        result.largest = difference


def _is_about_time(name: PurePosixPath) -> bool:
    return name.name == _ENVIRONMENT.name


def _depends_on_bits(name: PurePosixPath, place: str) -> bool:
    """Whether the text at `place` is a digest that depends on the last bits of results.

    Such digests may differ, because the numbers that they depend on are compared in the
    other files.
    """
    return name.name == RECORDS and _DIGEST.search(place) is not None


def _changed_verdicts(
    first: list[dict[str, Any]], second: list[dict[str, Any]]
) -> list[str]:
    before = {claim["id"]: claim["verdict"] for claim in first}
    after = {claim["id"]: claim["verdict"] for claim in second}
    return [
        f"{claim}: {verdict} and {after[claim]}"
        for claim, verdict in before.items()
        if after.get(claim, verdict) != verdict
    ]


def _values(name: PurePosixPath, content: bytes) -> Iterator[tuple[str, Value]]:
    """Yield a file's values with their positions; none for `environment.json`.

    That file records times and machines, which may differ.
    """
    if _is_about_time(name):
        return
    text = content.decode("utf-8")
    if name.suffix == ".csv":
        rows = csv.DictReader(io.StringIO(text))
        for number, row in enumerate(rows, start=2):
            for column, value in row.items():
                yield f"line {number}, {column}", _number(value)
    else:
        yield from _json_values(json.loads(text), "")


def _json_values(value: Any, place: str) -> Iterator[tuple[str, Value]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _json_values(part, f"{place}.{key}")
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _json_values(part, f"{place}[{index}]")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield place, float(value)
    else:
        yield place, None if value is None else str(value)


def _number(text: str | None) -> Value:
    try:
        number = float(text or "")
    except ValueError:
        return text
    return text if math.isnan(number) else number


def _listed(kind: str, lines: list[str]) -> list[str]:
    shown = [f"  {kind}: {line}" for line in lines[:SHOWN]]
    if len(lines) > SHOWN:
        shown.append(f"  {kind}: {len(lines) - SHOWN} more")
    return shown


def _files_of_folder(folder: Path) -> dict[PurePosixPath, bytes]:
    if not folder.is_dir():
        raise InputError(
            "no such folder", where=str(folder), remedy="Run `dvc repro` first."
        )
    return {
        PurePosixPath(path.relative_to(folder).as_posix()): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _files_of_commit(revision: str, folder: Path) -> dict[PurePosixPath, bytes]:
    archive = _git("archive", "--format=tar", revision, "--", folder.as_posix())
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        members = [member for member in tar if member.isfile()]
        return {
            PurePosixPath(member.name).relative_to(folder.as_posix()): _content(
                tar, member
            )
            for member in members
        }


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    assert file is not None, "a regular file in an archive has content"
    return file.read()


def _ignored(folder: Path) -> set[PurePosixPath]:
    """The files in `folder` that Git ignores, such as the report."""
    listed = _git(
        "ls-files",
        "-z",
        "--others",
        "--ignored",
        "--exclude-standard",
        folder.as_posix(),
    )
    names = [name for name in listed.decode("utf-8").split("\0") if name]
    return {PurePosixPath(name).relative_to(folder.as_posix()) for name in names}


def _git(*arguments: str) -> bytes:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, check=True)  # noqa: S603, S607
    except FileNotFoundError:
        raise InputError(
            "Git is not installed, so no commit can be read",
            where="git",
            remedy="Install it, or name two studies: --study A --with B.",
        ) from None
    except subprocess.CalledProcessError as error:
        reason = error.stderr.decode("utf-8", errors="replace").strip().splitlines()
        raise InputError(
            reason[-1].removeprefix("fatal: ") if reason else "failed",
            where=f"git {' '.join(arguments)}",
            remedy="Name a commit that has these results, and run this in a clone.",
        ) from None
    return done.stdout

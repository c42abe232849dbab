"""Artifacts: folders that are verified on read and never half-written.

An artifact's `manifest.json` lists the sha256 of every other file. Artifacts contain no
times or machine names, so equal inputs give equal bytes. A damaged file is renamed to
`*.damaged`: DVC, which trusts a file whose time and size are unchanged, then sees that
it is missing and reruns the stage.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO

from softmax_temperature.runner.errors import InputError, disk_faults

if TYPE_CHECKING:
    from torch import Tensor

MANIFEST = "manifest.json"
DAMAGED = ".damaged"
UNFINISHED = ".unfinished"


class ArtifactError(InputError):
    """Raised if something that the pipeline wrote is missing, damaged or unusable."""

    def __init__(
        self,
        what: str,
        where: object,
        remedy: str = "Run `dvc repro` to make it again.",
    ) -> None:
        super().__init__(what, str(where), remedy)


def canonical_json(value: Any) -> str:
    """Convert `value` to JSON with sorted keys, so that equal values give equal text.

    NaN and infinity raise ValueError.
    """
    text = json.dumps(
        value, sort_keys=True, indent=1, allow_nan=False, ensure_ascii=False
    )
    return text + "\n"


def digest_of_text(text: str) -> str:
    """The sha256 of a text's UTF-8 bytes, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def digest_of(value: Any) -> str:
    """The sha256 of a value's canonical JSON."""
    return digest_of_text(canonical_json(value))


def digest_of_file(path: Path) -> str:
    """The sha256 of a file, in hexadecimal; the file may be larger than memory."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Yield a new path; the file or folder made there replaces `path` after the block.

    If the block raises an error, `path` stays as it is.
    """
    with disk_faults(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(
            dir=path.parent,
            prefix=f".{path.name}.",
            suffix=UNFINISHED,
            ignore_cleanup_errors=True,
        ) as temporary:
            new = Path(temporary, "new")
            yield new
            if path.is_dir():
                path.rename(Path(temporary, "old"))
            new.replace(path)


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Open `path` for writing, so that readers see all old or all new bytes.

    This holds even if the writer is killed.
    """
    with _replacing(path) as new, new.open("wb") as file:
        yield file


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a new folder, which replaces the folder `path` when the block ends."""
    with _replacing(path) as new:
        new.mkdir()
        yield new


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` atomically, in UTF-8."""
    with atomic_file(path) as file:
        file.write(text.encode())


def write_json(path: Path, value: Any) -> None:
    """Write `value` to `path` as canonical JSON, atomically."""
    write_text(path, canonical_json(value))


def _sealed(body: dict[str, Any]) -> str:
    return canonical_json({**body, "sha256": digest_of(body)})


def write_sealed(path: Path, body: dict[str, Any]) -> None:
    """Write `body` to `path` as JSON, together with its sha256, atomically."""
    write_text(path, _sealed(body))


def read_sealed(path: Path) -> dict[str, Any]:
    """Read a mapping that `write_sealed` wrote.

    If the content does not match its sha256, the file is renamed and ArtifactError is
    raised.
    """
    with suppress(ValueError, AttributeError, RecursionError):
        text = path.read_text(encoding="utf-8")
        body = dict(json.loads(text).items())
        body.pop("sha256", None)
        if text == _sealed(body):
            return body
    set_aside(path)
    raise ArtifactError("damaged (its sha256 is not the one it records)", path)


def set_aside(path: Path) -> None:
    """Rename a damaged file, if permitted, so that readers and DVC find it missing."""
    with suppress(OSError):
        path.replace(path.with_name(path.name + DAMAGED))


@contextmanager
def new_artifact(folder: Path, *, kind: str, about: dict[str, Any]) -> Iterator[Path]:
    """Yield a new folder, which becomes the artifact `folder` when the block ends.

    `kind` names the maker of the artifact (in the pipeline, the label of the stage);
    `about` describes, in JSON values, what the artifact was made from.
    """
    with atomic_folder(folder) as new:
        yield new
        files = {}
        for path in sorted(new.rglob("*")):
            if path.is_file():
                path.chmod(0o644)
                files[path.relative_to(new).as_posix()] = digest_of_file(path)
        write_sealed(new / MANIFEST, {"kind": kind, "about": about, "files": files})


@dataclass(frozen=True)
class Artifact:
    """A complete artifact; every read first compares the file with its sha256."""

    folder: Path
    kind: str
    about: dict[str, Any]
    files: dict[str, str]

    @property
    def digest(self) -> str:
        """The sha256 of kind and files, which does not depend on the folder."""
        return digest_of({"kind": self.kind, "files": self.files})

    def path(self, name: str) -> Path:
        """Compare the file `name` with the manifest, and return its path.

        If the file is missing or damaged, ArtifactError is raised. A damaged file is
        also renamed.
        """
        path = self.folder / name
        if name not in self.files or not path.is_file():
            raise ArtifactError("missing", path)
        if digest_of_file(path) != self.files[name]:
            set_aside(path)
            raise ArtifactError("damaged (its sha256 is not the recorded one)", path)
        return path

    def json(self, name: str) -> Any:
        """Read the JSON file `name`."""
        return json.loads(self.path(name).read_text(encoding="utf-8"))

    def tensors(self, name: str) -> "dict[str, Tensor]":
        """Read the tensors in the safetensors file `name`, mapped from disk."""
        # Imported here because torch takes seconds to import, and the command line,
        # which imports this module, often does not need it.
        from safetensors.torch import load_file

        return load_file(self.path(name))

    def problems(self) -> list[str]:
        """Describe in one line each file that is missing, damaged or not listed."""
        paths = set()
        for path in self.folder.rglob("*"):
            if path.is_file() and path.suffix != DAMAGED:
                paths.add(path)
        listed = {self.folder / name for name in (MANIFEST, *self.files)}
        lines = [f"{path}: not in the manifest" for path in sorted(paths - listed)]
        for name in sorted(self.files):
            try:
                self.path(name)
            except ArtifactError as error:
                lines.append(f"{error.where}: {error.what}")
        return lines


def open_artifact(folder: Path, *, kind: str | None = None) -> Artifact:
    """Open an artifact by its manifest; its files are verified when they are read.

    Raises ArtifactError if there is no intact manifest, or if the artifact is not of
    the given `kind`.
    """
    if not (folder / MANIFEST).is_file():
        raise ArtifactError("missing or incomplete (no manifest)", folder)
    artifact = Artifact(folder, **read_sealed(folder / MANIFEST))
    if kind not in (None, artifact.kind):
        raise ArtifactError(f"is of kind {artifact.kind!r}, not {kind!r}", folder)
    return artifact


def find_artifacts(root: Path) -> list[Path]:
    """Find the artifact folders at or below `root`, sorted."""
    return sorted(path.parent for path in find_files(root, MANIFEST))


def find_files(root: Path, name: str) -> Iterator[Path]:
    """Yield every file called `name` at or below `root`; links are followed.

    Folders whose names start with a dot, such as unfinished artifacts, are left out. A
    folder reached by several links is visited once.
    """
    visited: set[Path] = set()
    for place, subfolders, files in os.walk(root, followlinks=True):
        resolved = Path(place).resolve()
        if resolved in visited:  # A link may form a loop.
            subfolders.clear()
            continue
        visited.add(resolved)
        subfolders[:] = sorted(
            folder for folder in subfolders if not folder.startswith(".")
        )
        if name in files:
            yield Path(place, name)

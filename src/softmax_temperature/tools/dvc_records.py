"""What DVC keeps: the digests of outputs in `dvc.lock`, and objects in its cache that are named by their own digest.

DVC takes an object of the cache that is read-only for whole without looking at it. Nothing here does.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.reading import read_yaml

LOCK = "dvc.lock"
LOCKS = ".dvc/tmp/rwlock"
_DIGEST = re.compile(r"[0-9a-f]{32}(\.dir)?")
_OBJECT = re.compile(r"[0-9a-f]{30}(\.dir)?")
_REMEDY = "Restore it from Git, or remove it: then `dvc repro` looks at every stage and writes it again."


def recorded_outputs(root: Path) -> dict[str, dict[str, str]]:
    """The digests of the outputs of every stage.

    Args:
        root: of the project.

    Returns:
        Stage to path to MD5, as DVC writes it: that of a folder ends with ".dir". Empty where no stage was run.

    Raises:
        InputError: `dvc.lock` is not as DVC writes it.
    """
    path = root / LOCK
    if not path.is_file():
        return {}
    from dvc.schema import COMPILED_LOCKFILE_SCHEMA  # A second, which only `verify` has to spend.
    from voluptuous import Invalid

    try:
        stages = COMPILED_LOCKFILE_SCHEMA(read_yaml(path, kind="safe")).get("stages", {})
        _check_digests(stages)
    except (InputError, Invalid) as error:
        reason = error.what if isinstance(error, InputError) else error
        raise InputError(f"not as DVC writes it ({reason})", where=str(path), remedy=_REMEDY) from error
    return {name: {out["path"]: out["md5"] for out in stage.get("outs", ())} for name, stage in stages.items()}


def _check_digests(stages: dict[str, Any]) -> None:
    """Refuse what DVC's schema does not: a digest that is missing, or cut short, which can leave a number.

    Raises:
        InputError: a file has none.
    """
    for name, stage in stages.items():
        for file in (*stage.get("deps", ()), *stage.get("outs", ())):
            if not _DIGEST.fullmatch(str(file.get("md5"))):
                raise InputError(f"{file['path']} has no md5", where=name, remedy=_REMEDY)


def md5_of(path: Path) -> str | None:
    """The digest as DVC makes it, of a file, or of the list of a folder's files; None if there is neither."""
    if path.is_file():
        with path.open("rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if not path.is_dir():
        return None
    files = sorted(file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())
    listing = [{"md5": md5_of(path / name), "relpath": name} for name in files]
    return hashlib.md5(json.dumps(listing, sort_keys=True).encode(), usedforsecurity=False).hexdigest() + ".dir"


def cache_folder(root: Path) -> Path | None:
    """Where DVC keeps its objects; None if this is no project of DVC's, or there are none yet.

    Raises:
        InputError: DVC cannot read its settings.
    """
    settings = root / ".dvc"
    if not settings.is_dir():
        return None
    from dvc.config import Config, ConfigError  # The user's and the machine's own settings count too.

    try:
        chosen = Config(dvc_dir=str(settings.resolve()))["cache"].get("dir") or settings / "cache"
    except ConfigError as error:
        raise InputError(str(error), where=str(settings), remedy="Restore the settings from Git.") from error
    folder = Path(chosen) / "files" / "md5"
    return folder if folder.is_dir() else None


def has_whole_locks(root: Path) -> bool:
    """Whether DVC can read who is at work on what; a disk that was full can have cut that short."""
    path = root / LOCKS
    try:
        return not path.is_file() or isinstance(json.loads(path.read_text(encoding="utf-8")), dict)
    except (ValueError, RecursionError):
        return False


def cached_objects(cache: Path) -> list[Path]:
    """Every object of the cache, sorted; what DVC had begun to copy when it was killed has another kind of name."""
    return sorted(path for path in cache.glob("[0-9a-f][0-9a-f]/*") if _OBJECT.fullmatch(path.name))


def is_whole(cached: Path) -> bool:
    """Whether an object of the cache is what its name says."""
    return md5_of(cached) == cached.parent.name + cached.name.removesuffix(".dir")


def listed_files(cache: Path | None, md5: str) -> dict[str, str] | None:
    """The files of a folder that DVC recorded, path to MD5; None if it is a file, or the cache lacks the list."""
    if cache is None or not md5.endswith(".dir"):
        return None
    path = cache / md5[:2] / md5[2:]
    if not path.is_file() or not is_whole(path):
        return None
    return {entry["relpath"]: entry["md5"] for entry in json.loads(path.read_text(encoding="utf-8"))}

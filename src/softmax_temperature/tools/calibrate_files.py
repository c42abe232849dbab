"""The command `calibrate`: a report on logits in files, written as a folder."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from softmax_temperature.papers.shared.plots import save
from softmax_temperature.runner.artifacts import (
    MANIFEST,
    ArtifactError,
    digest_of_file,
    new_artifact,
    open_artifact,
    write_json,
    write_text,
)
from softmax_temperature.runner.errors import InputError, nearest
from softmax_temperature.tools.arrays import Arrays, read_arrays
from softmax_temperature.tools.calibrate import CalibrationReport, Kind, calibrate

KIND = "calibration"
_FORM = "Logits have shape (n, classes), or (networks, n, classes) with names; labels are whole numbers, shape (n,)."
_ELSEWHERE = "Choose another place."


@dataclass(frozen=True)
class LogitsFiles:
    """The files that a user names: logits, perhaps labels apart from them, and the same for validation."""

    logits: Path
    labels: Path | None = None
    validation: Path | None = None
    validation_labels: Path | None = None

    def given(self) -> dict[str, Path]:
        """By role, the files there are."""
        return {role: path for role, path in vars(self).items() if path is not None}


def calibrate_files(
    files: LogitsFiles,
    *,
    kind: Kind = "logits",
    name: str | None = None,
    fit_on: str | None = None,
    bins: int = 15,
    bootstrap: int = 1000,
    seed: int = 0,
    output: Path | None = None,
    html: Path | None = None,
) -> tuple[CalibrationReport, Path]:
    """Write report.json, reliability.png and reliability.svg into a folder; an earlier report there is replaced.

    Args:
        files: npz, npy, safetensors, pt, csv or parquet; perhaps with `validation_logits` and `validation_labels`.
        kind: As in `calibrate`.
        name: Which network, where logits are (networks, n, classes) and there are `names`.
        fit_on: As in `calibrate`.
        bins: As in `calibrate`.
        bootstrap: As in `calibrate`.
        seed: As in `calibrate`.
        output: The folder; by default beside the file.
        html: A page to write, which needs no other file.

    Raises:
        InputError: A file, an array, an option or the folder is not as stated; nothing has been written.
    """
    arrays, validation = _read(files)
    network = _network(files.logits, arrays, name)
    folder = _place(output or files.logits.with_name(f"{files.logits.stem}{_suffix(network)}-calibration"))
    if html is not None and (html.is_dir() or not html.parent.is_dir() or html.resolve().is_relative_to(folder)):
        raise InputError("is no file in a folder that is there and stays", where=str(html), remedy=_ELSEWHERE)
    index = slice(None) if network is None else [str(one) for one in arrays["names"]].index(network)
    own = None if validation is None else (validation["logits"][index], validation["labels"])
    if fit_on in ("half", "all"):
        own = None
    try:
        report = calibrate(
            arrays["logits"][index],
            arrays["labels"],
            kind=kind,
            validation=own,
            fit_on=fit_on,
            bins=bins,
            bootstrap=bootstrap,
            seed=seed,
        )
    except ValueError as error:
        raise InputError(str(error), where=str(files.logits), remedy=_FORM) from error
    sources = {role: {"file": path.name, "sha256": digest_of_file(path)} for role, path in files.given().items()}
    title = files.logits.name if network is None else f"{files.logits.name}, {network}"
    with new_artifact(folder, kind=KIND, about={"sources": sources, "network": network}) as building:
        write_json(building / "report.json", report.data | {"sources": sources, "network": network})
        save(report.plot(title=title), building, "reliability")
        if html is not None:
            write_text(html, report.html(title, sources))
    return report, folder


def _read(files: LogitsFiles) -> tuple[Arrays, Arrays | None]:
    """The arrays `logits`, `labels` and perhaps `names`; and those to fit on, if there are any."""
    if files.validation_labels and not files.validation:
        raise InputError("is given without --validation", where="--validation-labels", remedy="Give both.")
    within = ("validation_logits", "validation_labels")
    arrays = _pair(files.logits, files.labels, optional=("names", *within))
    own = {key.removeprefix("validation_"): arrays.pop(key) for key in within if key in arrays}
    if len(own) == 1:
        raise InputError(f"has {within[0]} or {within[1]} alone", where=str(files.logits), remedy="Save both.")
    if files.validation and own:
        what = f"is given, and {files.logits} holds validation_logits of its own"
        raise InputError(what, where="--validation", remedy="Leave it out.")
    return arrays, _pair(files.validation, files.validation_labels) if files.validation else own or None


def _pair(path: Path, labels: Path | None, *, optional: tuple[str, ...] = ()) -> Arrays:
    required = ("logits",) if labels else ("logits", "labels")
    arrays = read_arrays(path, "logits", required=required, optional=optional)
    return arrays | (read_arrays(labels, "logits", required=("labels",)) if labels else {})


def _network(path: Path, arrays: Arrays, name: str | None) -> str | None:
    """The network to report on; None where the file holds a single, unnamed one."""
    if np.ndim(arrays["logits"]) != 3:
        if name is not None:
            raise InputError("holds one network, without a name", where=str(path), remedy="Leave out --name.")
        return None
    names = [str(one) for one in arrays.get("names", ())]
    if len(names) != len(arrays["logits"]) or len(set(names)) < len(names):
        what = f"logits have shape {np.shape(arrays['logits'])} for {len(names)} names"
        raise InputError(what, where=str(path), remedy=_FORM)
    if name is None and len(names) > 1:
        raise InputError(f"holds {len(names)} networks", where="--name", remedy=f"Choose one: {', '.join(names)}.")
    if name is not None and name not in names:
        raise InputError(f"has no network {name!r}", where=str(path), remedy=nearest(name, names))
    return name or names[0]


def _suffix(network: str | None) -> str:
    return "" if network is None else "-" + re.sub(r"[^\w.-]+", "_", network)


def _place(folder: Path) -> Path:
    """The folder, once it is sure that replacing it loses nothing but an earlier report."""
    folder = folder.resolve()
    if folder == Path.cwd() or (folder.exists() and not folder.is_dir()):
        raise InputError("is the current folder, or a file", where=str(folder), remedy=_ELSEWHERE)
    others: set[str] = {path.name for path in folder.iterdir()} if folder.exists() else set()
    with suppress(ArtifactError):
        others -= {MANIFEST, *open_artifact(folder, kind=KIND).files}
    if others:
        some: Any = ", ".join(sorted(others)[:3])
        raise InputError(f"holds other files ({some}) and would be replaced", where=str(folder), remedy=_ELSEWHERE)
    return folder

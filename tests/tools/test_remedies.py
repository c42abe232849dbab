"""A message names only options of the entry point that the user called."""

import ast
import inspect
import re
from collections.abc import Callable, Mapping
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from typer.testing import CliRunner

import softmax_temperature
from softmax_temperature import (
    Cooling,
    CosineClassifier,
    FocalLoss,
    TemperatureScaler,
    calibrate,
    cosine_classifier,
    metrics,
    scaling,
    suggest_temperature,
)
from softmax_temperature.tools import cli
from softmax_temperature.tools.options import OPTIONS
from softmax_temperature.tools.suggest import SEARCH

ROWS = 240
CLASSES = 5
GENERATOR = np.random.default_rng(0)
LOGITS = 2 * GENERATOR.normal(size=(ROWS, CLASSES))
LABELS = (LOGITS / 1.5 + GENERATOR.gumbel(size=LOGITS.shape)).argmax(axis=1)
PROBS = torch.softmax(torch.tensor(LOGITS), 1).numpy()
QUANTISED = np.clip(np.round(256 * PROBS) - 128, -128, 127)
MASKED = np.where(np.eye(CLASSES)[LABELS] > 0, -np.inf, LOGITS)
HALF = LOGITS.astype(np.float16)
HALF[3, 1] = np.inf
SQUARE = GENERATOR.normal(size=(60, 60))
ACCURATE = LOGITS + 4 * np.eye(CLASSES)[LABELS]
# Scores of the pairs (0, 1), (0, 2), ... of four classes, positive for the first class.
FOUR = 4 * np.eye(4)[LABELS % 4] + GENERATOR.normal(size=(ROWS, 4))
PAIRS = np.stack([FOUR[:, i] - FOUR[:, j] for i, j in combinations(range(4), 2)], 1)
Faults = Mapping[str, tuple[Any, Any]]
# Scores and labels that at least one entry point refuses.
FAULTS: Faults = {
    "probabilities": (PROBS, LABELS),
    "two decimals": (PROBS.round(2), LABELS),
    "three decimals": (PROBS.round(3), LABELS),
    "percentages": (100 * PROBS, LABELS),
    "bytes": (np.round(255 * PROBS), LABELS),
    "int8": (QUANTISED, LABELS),
    "basis points": (np.round(10_000 * PROBS), LABELS),
    "over the rows": (torch.softmax(torch.tensor(LOGITS), 0).numpy(), LABELS),
    "a sum of one": (LOGITS - LOGITS.mean(1, keepdims=True) + 1 / CLASSES, LABELS),
    "one wrong probability": (PROBS + 0.1 * (np.arange(ROWS) == 3)[:, None], LABELS),
    "the largest logits": (np.where(LOGITS < -1, -100, LOGITS), LABELS),
    "copies without one": (np.tile(LOGITS, (2, 1))[1:], np.tile(LABELS, 2)[1:]),
    "votes": (np.round(40 * PROBS) + np.eye(CLASSES)[LABELS], LABELS),
    "sigmoids": (1 / (1 + np.exp(-2 * LOGITS)), LABELS),
    "one sigmoid": (1 / (1 + np.exp(-2 * LOGITS[:, :1])), LABELS % 2),
    "logits": (LOGITS, LABELS),
    "rows that do not sum to one": (PROBS / 2, LABELS),
    "void pixels": (LOGITS, np.where(LABELS == 1, 255, LABELS)),
    "void rows": (LOGITS, np.where(LABELS == 1, -1, LABELS)),
    "a background": (LOGITS, np.where(LABELS == 1, CLASSES, LABELS)),
    "ignored rows": (LOGITS, np.full(ROWS, -100)),
    "labels from one": (LOGITS, LABELS + 1),
    "one class": (LOGITS, np.zeros(ROWS, np.int64)),
    "a rare class": (LOGITS, np.arange(ROWS) // (ROWS - 1)),
    "NaN": (np.where(LOGITS > 4, np.nan, LOGITS), LABELS),
    "overflow": (HALF, LABELS),
    "masked labels": (MASKED, LABELS),
    "decisions": (np.eye(CLASSES)[LABELS], LABELS),
    "labels among scores": (np.column_stack([LOGITS, LABELS]), LABELS),
    "sorted rows": (np.sort(LOGITS, axis=1), LABELS),
    "copies": (np.tile(LOGITS, (2, 1)), np.tile(LABELS, 2)),
    "columns in another order": (4 * np.eye(CLASSES)[LABELS][:, ::-1] + HALF, LABELS),
    "true and false": (LOGITS, LOGITS.argmax(axis=1) == LABELS),
    "several classes": (LOGITS, (LOGITS > 0).astype(np.int64)),
    "texts": (LOGITS, np.array([f"class {label}" for label in LABELS])),
    "too few labels": (LOGITS, LABELS[:-1]),
    "transposed": (LOGITS.T, LABELS),
    "a column of labels": (LOGITS, LABELS[:, None]),
    "few rows": (LOGITS[:20], LABELS[:20]),
    "views": (np.stack([LOGITS, LOGITS]), LABELS),
    "tokens": (LOGITS.reshape(-1, CLASSES, CLASSES), LABELS.reshape(-1, CLASSES)),
    "a row for each class": (SQUARE.T, SQUARE[:, :20].argmax(axis=1)),
    "pairs": (PAIRS, LABELS % 4),
    "a background before the classes": (
        np.column_stack([LOGITS[:, :1] - 20, ACCURATE]),
        LABELS,
    ),
    "ranks": (LOGITS.argsort(axis=1).argsort(axis=1), LABELS),
    "logarithms to base 10": (np.log10(PROBS), LABELS),
    "one-hot labels among scores": (
        np.column_stack([LOGITS, np.eye(CLASSES)[LABELS]]),
        LABELS,
    ),
    "labels one row late": (ACCURATE, np.roll(LABELS, 1)),
    "standardised columns": ((LOGITS - LOGITS.mean(0)) / LOGITS.std(0), LABELS),
    "one column of all classes": (LOGITS.ravel(), np.eye(CLASSES)[LABELS].ravel()),
    "the largest logits among zeros": (
        np.where(LOGITS.argsort(axis=1).argsort(axis=1) < 3, 0, LOGITS),
        LABELS,
    ),
    "rounded validation rows": ((LOGITS + 1).round(3), LABELS),
}


def of_tensors(function: Callable[..., object]) -> Callable[..., object]:
    """A function that converts two arrays to tensors and passes them to `function`."""

    def called(scores: Any, labels: Any) -> object:
        if np.asarray(labels).dtype.kind == "U":
            pytest.skip("a tensor holds no text")
        return function(torch.tensor(scores), torch.tensor(labels))

    return called


@cache
def fitted() -> TemperatureScaler:
    return TemperatureScaler().fit(LOGITS, LABELS)


def focal(logits: Tensor, labels: Tensor) -> Tensor:
    loss: Tensor = FocalLoss(3.0)(logits, labels)  # It checks its first batches only.
    return loss


# For each entry point: a function of scores and labels, and the functions whose
# arguments are the entry point's options.
ENTRIES: dict[str, tuple[Callable[[Any, Any], object], tuple[Any, ...]]] = {
    "calibrate": (calibrate, (calibrate,)),
    "calibrate probs": (
        lambda scores, labels: calibrate(scores, labels, kind="probs"),
        (calibrate,),
    ),
    "validation": (
        lambda scores, labels: calibrate(
            LOGITS + 1, LABELS, validation=(scores, labels)
        ),
        (calibrate,),
    ),
    "fit": (
        lambda scores, labels: TemperatureScaler().fit(scores, labels),
        (TemperatureScaler, TemperatureScaler.fit),
    ),
    "fit of tensors": (
        of_tensors(lambda scores, labels: TemperatureScaler().fit(scores, labels)),
        (TemperatureScaler, TemperatureScaler.fit),
    ),
    "predict": (
        lambda scores, _: fitted().predict(scores),
        (TemperatureScaler.predict,),
    ),
    "wrap": (
        of_tensors(lambda scores, _: fitted().wrap(nn.Identity())(scores)),
        (TemperatureScaler.wrap,),
    ),
    "cool": (
        of_tensors(
            lambda scores, labels: Cooling(nn.Linear(2, CLASSES)).cool(scores, labels)
        ),
        (Cooling, Cooling.cool),
    ),
    "fit_temperature": (
        of_tensors(scaling.fit_temperature),
        (scaling.fit_temperature,),
    ),
    "calibration_report": (
        of_tensors(metrics.calibration_report),
        (metrics.calibration_report,),
    ),
    "expected_calibration_error": (
        of_tensors(metrics.expected_calibration_error),
        (metrics.expected_calibration_error,),
    ),
    "FocalLoss": (
        of_tensors(focal),
        (FocalLoss, FocalLoss.forward),
    ),
    "suggest_temperature": (suggest_temperature, (suggest_temperature,)),
    "CosineClassifier": (
        lambda scores, labels: CosineClassifier(CLASSES, 3, sample=(scores, labels)),
        (CosineClassifier,),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_a_message_in_python_names_only_arguments_of_its_function(
    entry: str, fault: str
) -> None:
    call, functions = ENTRIES[entry]
    try:
        call(*FAULTS[fault])
    except (ValueError, TypeError) as error:
        message = str(error)
    else:
        return
    arguments = {
        name for each in functions for name in inspect.signature(each).parameters
    }
    assert named_arguments(message) <= arguments
    assert named_options(message) == set()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    "command", ["calibrate a.npz", "calibrate a.npz --probs", "suggest a.npz"]
)
@pytest.mark.usefixtures("undrawn")
def test_a_message_of_a_command_names_only_its_options(
    command: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    scores, labels = FAULTS[fault]
    name = "embeddings" if command.startswith("suggest") else "logits"
    np.savez("a.npz", **{name: scores, "labels": labels})

    done = CliRunner().invoke(cli.app, [*command.split(), "--json"])

    message = str(done.exception) if done.exit_code else ""
    program = command.split()[0]
    assert named_options(message) <= options_of(program)
    assert named_arguments(message) == set()


@pytest.mark.parametrize(
    ("command", "option", "fault"),
    [
        ("calibrate", "--probs", "three decimals"),
        ("calibrate", "--probs", "int8"),
        ("calibrate", "--ignore-index 255", "void pixels"),
        ("calibrate", "--ignore-index", "ignored rows"),
        ("calibrate", "--fit-on all", "a rare class"),
    ],
)
def test_a_remedy_of_a_command_is_its_option(
    command: str,
    option: str,
    fault: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    logits, labels = FAULTS[fault]
    np.savez("a.npz", logits=logits, labels=labels)
    done = CliRunner().invoke(cli.app, [command, "a.npz"])
    assert option in str(done.exception)


def test_every_option_in_place_of_an_argument_exists() -> None:
    options = options_of("calibrate") | options_of("suggest")
    assert {option.split()[0] for option in OPTIONS.values()} <= options
    module, name = SEARCH.split(".")
    assert getattr(softmax_temperature, module) is cosine_classifier
    assert callable(getattr(cosine_classifier, name))


def test_the_scaler_fits_what_its_remedies_ask_for() -> None:
    probs = (QUANTISED + 128) / 256
    seen = probs[np.arange(ROWS), LABELS] > 0
    with pytest.raises(ValueError, match=r"add 128, divide by 256.* logarithms"):
        TemperatureScaler().fit(QUANTISED[seen], LABELS[seen])
    with np.errstate(divide="ignore"):
        logits = np.log(probs[seen])
    expected = TemperatureScaler().fit(LOGITS[seen], LABELS[seen]).temperature_
    found = TemperatureScaler().fit(logits, LABELS[seen]).temperature_
    assert found == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(
    "path",
    [
        "scaling.py",
        *(
            f"tools/{name}.py"
            for name in (
                *("advice", "arrays", "calibrate", "columns", "label_maps"),
                *("scaler", "suggest", "decisive_rows"),
            )
        ),
        *("metrics", "losses", "cooling", "cosine_classifier"),
    ],
)
def test_only_functions_of_commands_name_options(path: str) -> None:
    # A function of a command raises InputError, or is called by one that does.
    root = Path(softmax_temperature.__file__).parent / path
    for file in sorted(root.glob("*.py")) if root.is_dir() else [root]:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for part in tree.body:
            code = ast.unparse(part)
            docs = {
                ast.get_docstring(each, clean=False)
                for each in ast.walk(part)
                if isinstance(each, ast.FunctionDef | ast.ClassDef)
            }
            texts = [
                each.value
                for each in ast.walk(part)
                if isinstance(each, ast.Constant) and isinstance(each.value, str)
            ]
            named = [text for text in texts if named_options(text) and text not in docs]
            assert not named or "InputError" in code, (file, named)


def named_arguments(message: str) -> set[str]:
    """The arguments that a message names, apart from those inside function calls."""
    shorter = ""
    while message != shorter:
        shorter = message
        message = re.sub(r"[\w.]+\([^()]*\)", "", shorter)
    words = set(re.findall(r"\b([a-z]+(?:_[a-z]+)+)\b", message))
    known = {word for word in words if hasattr(nn.functional, word)}
    known |= {word for word in words if hasattr(torch, word)}
    return (words - known) | set(re.findall(r"\b([a-z_]+)=(?!=)", message))


def named_options(message: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", message))


@cache
def options_of(command: str) -> set[str]:
    done = CliRunner().invoke(cli.app, [command, "--help"], env={"COLUMNS": "200"})
    return named_options(done.stdout)

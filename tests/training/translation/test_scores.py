"""BLEU equals sacrebleu's; streaming does not change calibration errors."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from softmax_temperature.data.farm import read_farm
from softmax_temperature.metrics import expected_calibration_error
from softmax_temperature.scaling import TEMPERATURE_GRID, fit_temperature
from softmax_temperature.training.translation import scores
from softmax_temperature.training.translation.scores import (
    best_temperature,
    bleu,
    calibration_by_temperature,
)


def test_bleu_is_what_the_program_sacrebleu_prints(tmp_path: Path) -> None:
    _, references = read_farm(seed=0)["test"]
    translations = [
        re.sub(r"\bdie\b", "der", one).replace("ein ", "eine ") for one in references
    ]
    for name, lines in (("translations", translations), ("references", references)):
        (tmp_path / name).write_text(
            "".join(f"{line}\n" for line in lines), encoding="utf-8"
        )
    program = [
        sys.executable,
        "-m",
        "sacrebleu",
        "references",
        "-i",
        "translations",
        "-m",
        "bleu",
        "-b",
        "-w",
        "6",
    ]
    printed = subprocess.run(
        program, cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    score = bleu(translations, references)
    assert 100 * score["bleu"] == pytest.approx(float(printed), abs=1e-6)
    assert 20 < 100 * score["bleu"] < 90


@pytest.fixture
def tokens() -> tuple[torch.Tensor, torch.Tensor]:
    """Overconfident logits of 11 classes, and labels."""
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(700, 11, generator=generator)
    labels = torch.multinomial(
        torch.softmax(logits / 1.7, 1), 1, generator=generator
    ).squeeze(1)
    return logits, labels


@pytest.mark.parametrize("piece", [700, 64, 1])
def test_the_streamed_error_equals_that_of_all_logits_at_once(
    tokens: tuple[torch.Tensor, torch.Tensor],
    piece: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logits, labels = tokens
    monkeypatch.setattr(scores, "CHUNK", 500)
    batches = zip(logits.split(piece), labels.split(piece), strict=True)
    for row in calibration_by_temperature(batches, [0.5, 1.0, 3.3]):
        scaled = logits.double() / row["temperature"]
        assert row["ece"] == pytest.approx(
            expected_calibration_error(scaled.softmax(1), labels).item(), abs=1e-12
        )
        assert row["nll"] == pytest.approx(F.cross_entropy(scaled, labels).item())
        assert row["accuracy"] == pytest.approx(
            (logits.argmax(1) == labels).double().mean().item()
        )
        assert row["tokens"] == 700


def test_the_best_temperature_is_that_of_temperature_scaling(
    tokens: tuple[torch.Tensor, torch.Tensor],
) -> None:
    fitted = fit_temperature(*tokens, criterion="ece", grid=TEMPERATURE_GRID)
    # Values are also computed at temperatures between those of the grid; only
    # temperatures of the grid are chosen.
    rows = calibration_by_temperature(
        [tokens], sorted({*TEMPERATURE_GRID, *(t + 0.05 for t in TEMPERATURE_GRID)})
    )
    validation = [{"split": "validation", **row} for row in rows]
    assert best_temperature(validation) == fitted.temperature
    assert 1.4 < fitted.temperature < 2.1
    # Of equally good temperatures, the first is chosen.
    flat = [
        {"split": "validation", "temperature": at, "ece": 0.1 + (at < 0.5)}
        for at in TEMPERATURE_GRID
    ]
    assert best_temperature(flat) == 0.5

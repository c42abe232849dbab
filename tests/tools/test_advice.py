"""The advice in a calibration report follows from the report's numbers."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB
from typer.testing import CliRunner

from softmax_temperature.tools import cli
from softmax_temperature.tools.advice import Evidence, advise, three_digits
from softmax_temperature.tools.calibrate import CalibrationReport, calibrate

CLEAR = Evidence(
    temperature=2.716,
    low=2.53,
    high=2.91,
    before=0.0862,
    after=0.0416,
    change=(-0.075, -0.029),
    noise_floor=0.03,
    before_low=0.0,
    nll_change=-0.012,
    nll_interval=(-0.03, 0.006),
)
LEAVE = "No miscalibration found; leave the logits as they are: "


def report_of(temperature: float, seed: int, rows: int = 600) -> CalibrationReport:
    """A report on logits z whose labels are drawn from softmax(z / T)."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(rows, 5, generator=generator)
    probs = torch.softmax(logits / temperature, dim=1)
    labels = torch.multinomial(probs, 1, generator=generator).squeeze(1)
    return calibrate(logits, labels, bootstrap=0, seed=seed)


def test_clear_evidence_says_what_to_divide_by_and_what_that_does() -> None:
    advice = advise(CLEAR)
    assert advice.scale
    assert advice.sentence == (
        "Overconfident: divide the logits by 2.72 [2.53, 2.91]; "
        "ECE 8.6 -> 4.2 % (change -4.5 [-7.5, -2.9])."
    )
    # If the ECE is below the noise floor only after scaling, that is no reason not to
    # scale.
    assert advise(CLEAR._replace(noise_floor=0.05)).scale
    under = CLEAR._replace(temperature=0.5, low=0.4, high=0.6)
    assert advise(under).sentence.startswith(
        "Underconfident: divide the logits by 0.500"
    )


def test_an_interval_without_an_upper_end_is_no_reason_to_divide() -> None:
    advice = advise(CLEAR._replace(temperature=106.0, low=35.9, high=float("inf")))
    assert not advice.scale
    assert advice.sentence.startswith(
        "The logits may say nothing about the labels: T = 106 [35.9, inf] may be "
        "infinite. Check that column c holds class c"
    )


def test_scaling_is_rarely_advised_for_shuffled_labels() -> None:
    generator = torch.Generator().manual_seed(0)
    told = 0
    for _ in range(20):
        logits = 3 * torch.randn(300, 3, generator=generator)
        labels = torch.randint(3, (300,), generator=generator)
        text = str(calibrate(logits, labels, bootstrap=0, fit_on="all"))
        told += "divide the logits" in text
    assert told <= 4, "an interval at 90 % excludes a true infinity in one of ten"


def test_no_change_is_written_with_minus_zero() -> None:
    sentence = advise(CLEAR._replace(change=(-0.07, -0.0001))).sentence
    assert sentence.endswith("(change -4.5 [-7.0, -0.01]).")
    # An interval that ends at zero speaks against scaling, so its end must not look
    # like one just below zero.
    sentence = advise(CLEAR._replace(change=(-0.07, 0.0))).sentence
    assert "change -4.5 [-7.0, +0.0] points" in sentence


def test_a_temperature_that_is_not_one_is_not_written_as_one() -> None:
    near = CLEAR._replace(temperature=1.004, low=1.0011, high=1.0072)
    assert advise(near).sentence.startswith(
        "Overconfident: divide the logits by 1.004 [1.001, 1.01]; "
    )
    below = CLEAR._replace(temperature=0.99996, low=0.99992, high=0.999997)
    assert "by 0.99996 [0.9999, 0.999997]" in advise(below).sentence


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [
        (CLEAR._replace(temperature=1.01, low=0.95), "T = 1.01 [0.950, 2.91] may be 1"),
        (CLEAR._replace(low=1.0), "T = 2.72 [1.00, 2.91] may be 1"),
        (CLEAR._replace(high=1.0, low=0.5), "T = 2.72 [0.500, 1.00] may be 1"),
    ],
)
def test_a_temperature_that_may_be_one_leaves_the_logits_as_they_are(
    evidence: Evidence, reason: str
) -> None:
    assert advise(evidence) == (False, f"{LEAVE}{reason}.")


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [
        (
            CLEAR._replace(noise_floor=0.09),
            "an ECE of 8.6 % is not above its noise floor, 9.0 %",
        ),
        (
            CLEAR._replace(noise_floor=0.0862),
            "an ECE of 8.6 % is not above its noise floor, 8.6 %",
        ),
        (
            CLEAR._replace(after=0.0932, change=(-0.01, 0.02)),
            "scaling by T may not lower the ECE (change +0.7 [-1.0, +2.0] points)",
        ),
        (
            CLEAR._replace(change=(-0.09, 0.0)),
            "scaling by T may not lower the ECE (change -4.5 [-9.0, +0.0] points)",
        ),
    ],
)
def test_a_doubt_about_the_error_alone_names_the_temperature_that_likelihood_prefers(
    evidence: Evidence, reason: str
) -> None:
    words = f"by NLL, T = 2.72 [2.53, 2.91], but {reason}; more rows may decide."
    assert advise(evidence) == (False, f"{LEAVE}{words}")


def test_a_temperature_of_other_rows_that_raises_the_error_is_said_to() -> None:
    evidence = CLEAR._replace(after=0.2632, change=(0.155, 0.229))
    words = (
        "by NLL, T = 2.72 [2.53, 2.91], but scaling by T raises the ECE (change +17.7 "
        "[+15.5, +22.9] points); the rows on which T was fitted may differ from these."
    )
    assert advise(evidence) == (False, f"{LEAVE}{words}")


def test_a_miscalibration_that_only_the_likelihood_shows_is_not_denied() -> None:
    evidence = CLEAR._replace(
        change=(-0.09, 0.01), nll_change=-0.103, nll_interval=(-0.199, -0.0174)
    )
    words = (
        "but these rows are too few to advise scaling: T = 2.72 [2.53, 2.91] lowers "
        "the NLL (change -0.103 [-0.199, -0.0174] nats), but scaling by T may not "
        "lower the ECE (change -4.5 [-9.0, +1.0] points). Get more rows, and leave the "
        "logits as they are until then."
    )
    assert advise(evidence) == (False, f"Probably overconfident, {words}")
    # A large ECE is no reason to deny that a temperature helps.
    assert advise(evidence._replace(before_low=0.07)) == advise(evidence)
    under = advise(evidence._replace(temperature=0.5, low=0.4, high=0.6)).sentence
    assert under.startswith("Probably underconfident, ")
    may_be_one = advise(evidence._replace(low=0.9)).sentence
    assert may_be_one.startswith(LEAVE)


def test_few_rows_of_an_overconfident_model_are_not_called_calibrated() -> None:
    told = [report_of(2.0, seed, rows=400) for seed in range(40)]
    denied = [report.data["verdict"].startswith(LEAVE) for report in told]
    probable = [report.data["verdict"].startswith("Probably over") for report in told]
    assert sum(denied) <= 1
    assert sum(probable) >= 5
    calibrated = [report_of(1.0, seed, rows=400) for seed in range(40)]
    assert not any("Probably" in report.data["verdict"] for report in calibrated)


def test_all_doubts_are_named() -> None:
    evidence = CLEAR._replace(low=0.9, noise_floor=0.1, change=(-0.1, 0.1))
    assert advise(evidence).sentence.count("; ") == 3


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.00"),
        (2.716, "2.72"),
        (0.00123, "0.00123"),
        (12.34, "12.3"),
        (944_837.0, "944,837"),
        (1.2e-7, "1.20e-07"),
        (1e7, "1.00e+07"),
        (float("inf"), "inf"),
    ],
)
def test_numbers_have_at_least_three_significant_digits(
    value: float, text: str
) -> None:
    assert three_digits(value) == text


def test_scaling_is_rarely_advised_for_calibrated_models() -> None:
    # We expect no wrong advice in 60 reports. If one report in ten were wrong, the test
    # would still pass with probability 0.14.
    told = [report_of(1.0, seed).data["advice"] for seed in range(60)]
    assert told.count("scale") <= 3
    report = report_of(1.0, 0)
    assert report.data["verdict"].startswith(LEAVE)


def test_scaling_is_advised_for_nearly_all_overconfident_models() -> None:
    told = [report_of(2.5, seed, rows=1500).data["advice"] for seed in range(20)]
    assert told.count("scale") >= 19


@pytest.mark.usefixtures("undrawn")
def test_text_page_and_json_give_the_same_advice(tmp_path: Path) -> None:
    report = report_of(1.0, 0)
    sentence = report.data["verdict"]
    assert str(report).startswith(sentence)
    assert "divide the logits by" not in report.html() + str(report)
    assert sentence.split(":")[0] in report.html()
    file = tmp_path / "logits.npz"
    np.savez(file, logits=report.logits["before"].numpy(), labels=report.labels.numpy())
    options: list[Any] = ["--json", "--bootstrap", 0, "--output", tmp_path / "made"]
    command = ["calibrate", file, *options]
    done = CliRunner().invoke(cli.app, [str(word) for word in command])
    printed = json.loads(done.stdout)
    assert printed["advice"] == "leave"
    assert printed["verdict"].startswith(LEAVE)
    written = json.loads((tmp_path / "made" / "report.json").read_text())
    assert written["verdict"] == printed["verdict"]
    assert replace(report).data["advice"] == "leave"


def test_miscalibration_that_no_temperature_repairs_is_not_denied() -> None:
    sentence = advise(
        CLEAR._replace(low=0.9, high=1.1, temperature=1.0, before_low=0.07)
    ).sentence
    assert sentence.startswith(
        "Miscalibrated, but a temperature is not shown to help; leave the logits as "
        "they are: ECE 8.6 %, at least 7; T = 1.00 [0.900, 1.10] may be 1"
    )
    unsure = advise(CLEAR._replace(low=0.9, high=1.1, before_low=0.02))
    assert unsure.sentence.startswith(LEAVE)
    # Naive Bayes is far too confident, and no temperature corrects its scores.
    images, digits = load_digits(return_X_y=True)
    classifier = GaussianNB().fit(images[:800], digits[:800])
    scores = classifier.predict_joint_log_proba(images[800:])
    report = calibrate(scores, digits[800:], bootstrap=0)
    assert report.data["advice"] == "leave"
    assert report.data["verdict"].startswith("Miscalibrated, but a temperature")

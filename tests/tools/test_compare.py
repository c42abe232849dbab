"""Two states of `results` are compared by their bytes, numbers and verdicts."""

import json
import subprocess
from pathlib import Path

import pytest

from softmax_temperature.runner.errors import InputError
from softmax_temperature.tools.compare import (
    Comparison,
    compare_studies,
    compare_with_commit,
)

RUNS = "network,seed,accuracy\nvgg,0,0.75\nvgg,1,0.5\n"


def write_study(folder: Path, *, runs: str = RUNS, verdict: str = "holds") -> None:
    (folder / "cooling").mkdir(parents=True)
    claims = [{"id": "helps", "verdict": verdict, "value": 0.25}]
    (folder / "cooling" / "claims.json").write_text(json.dumps(claims))
    (folder / "cooling" / "runs.csv").write_text(runs)
    (folder / "cooling" / "figure.svg").write_text("<svg/>")


def compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **other: str
) -> Comparison:
    monkeypatch.chdir(tmp_path)
    write_study(Path("results/mini"))
    write_study(Path("results/other"), **other)
    return compare_studies("mini", "other")


def test_equal_bytes_are_a_reproduction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparison = compared(tmp_path, monkeypatch)
    assert str(comparison) == "Reproduced: all 3 files are equal byte for byte."
    assert comparison.reproduced


def test_last_digits_are_a_reproduction_and_the_largest_difference_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = RUNS.replace("0.75", "0.7500000015").replace("0.5\n", "0.5000000001\n")
    comparison = compared(tmp_path, monkeypatch, runs=runs)
    assert comparison.reproduced
    assert str(comparison) == (
        "Reproduced: 2 of 3 files are equal byte for byte; the largest relative "
        "difference between numbers in the others is 2e-09 (cooling/runs.csv, line 2, "
        "accuracy); no verdict differs."
    )


@pytest.mark.parametrize(
    ("processor", "instructions"),
    [("Xeon", "AVX512"), ("EPYC", "AVX2"), ("EPYC", "AVX512 with bfloat16")],
)
def test_another_kind_of_processor_is_named_where_numbers_differ(
    processor: str, instructions: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    committed = {"processor": "EPYC", "instructions": "AVX512"}
    other = {"processor": processor, "instructions": instructions}
    for study, kind in (("mini", committed), ("other", other)):
        folder = Path("results") / study
        write_study(folder, verdict="holds" if study == "mini" else "inconclusive")
        machine = {"accelerator": None, **kind}
        environment = {"cooling": {"machines": [{"machine": machine}]}}
        (folder / "environment.json").write_text(json.dumps(environment))
    sentence, reason, verdict, *_ = str(compare_studies("mini", "other")).splitlines()
    assert sentence == (
        "Not comparable bit by bit, because they ran on EPYC (AVX512) and "
        f"{processor} ({instructions}): 2 of 4 files are equal byte for byte; "
        "1 verdict differs."
    )
    assert reason.startswith("  Different kinds of processors")
    assert verdict == "  verdict differs: helps: holds and inconclusive"


def test_another_number_with_the_same_verdicts_is_not_a_reproduction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparison = compared(tmp_path, monkeypatch, runs=RUNS.replace("0.75", "0.6"))
    assert not comparison.reproduced
    assert str(comparison).startswith("Same verdicts, other numbers or texts: 2 of 3")
    assert "is 0.2 (cooling/runs.csv, line 2, accuracy)" in str(comparison)


def test_a_changed_verdict_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparison = compared(tmp_path, monkeypatch, verdict="contradicted")
    assert not comparison.reproduced
    assert str(comparison).splitlines()[:2] == [
        "Not reproduced: 2 of 3 files are equal byte for byte; 1 verdict differs.",
        "  verdict differs: helps: holds and contradicted",
    ]


@pytest.mark.parametrize(
    "runs",
    [
        RUNS + "vgg,2,0.5\n",
        RUNS.replace("seed", "draw"),
        RUNS.replace("vgg,0", "gru,0"),
    ],
    ids=["a row more", "another column", "another text"],
)
def test_other_rows_columns_and_texts_are_not_a_reproduction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: str
) -> None:
    comparison = compared(tmp_path, monkeypatch, runs=runs)
    assert not comparison.reproduced
    assert "text differs: cooling/runs.csv" in str(comparison)


def test_a_missing_file_is_not_a_reproduction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_study(Path("results/mini"))
    write_study(Path("results/other"))
    Path("results/other/cooling/runs.csv").unlink()
    comparison = compare_studies("mini", "other")
    assert comparison.missing == ["cooling/runs.csv"]
    assert not comparison.reproduced


def test_pictures_and_minutes_do_not_decide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_study(Path("results/mini"))
    write_study(Path("results/other"))
    Path("results/other/cooling/figure.svg").write_text("<svg></svg>")
    machine = {"accelerator": None, "processor": "EPYC", "instructions": "AVX2"}
    for study, minutes in (("mini", 1), ("other", 2)):
        environment = {"minutes": minutes, "machines": [{"machine": machine}]}
        path = Path("results") / study / "environment.json"
        path.write_text(json.dumps({"cooling": environment}))
    comparison = compare_studies("mini", "other")
    assert comparison.reproduced
    assert comparison.pictures == ["cooling/figure.svg"]


def test_a_folder_is_compared_with_a_commit_and_ignored_files_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_study(Path("results/mini"))
    Path(".gitignore").write_text("results/*/index.html\n")
    commit_everything()
    Path("results/mini/index.html").write_text("a report")
    assert compare_with_commit("mini").equal == 3
    Path("results/mini/cooling/runs.csv").write_text(RUNS.replace("0.75", "0.6"))
    assert not compare_with_commit("mini").reproduced


def test_an_unknown_revision_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_study(Path("results/mini"))
    commit_everything()
    with pytest.raises(InputError, match="git archive"):
        compare_with_commit("mini", "no-such-tag")


def commit_everything() -> None:
    author = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for arguments in (["init", "-q"], ["add", "-A"], [*author, "commit", "-qm", "Run"]):
        subprocess.run(["git", *arguments], check=True)  # noqa: S607


def test_digests_of_results_with_other_last_bits_are_a_reproduction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder, bits in (("mini", "a"), ("other", "b")):
        write_study(Path("results") / folder)
        cell = {"cell": "vgg/0", "result": bits, "inputs": {"images": bits}}
        records = {"cells": [cell | {"fingerprint": bits, "code": "c"}]}
        path = Path("results") / folder / "cooling" / "records.json"
        path.write_text(json.dumps(records))
    comparison = compare_studies("mini", "other")
    assert comparison.reproduced
    path.write_text(json.dumps({"cells": [cell | {"fingerprint": "b", "code": "d"}]}))
    assert not compare_studies("mini", "other").reproduced

"""Unused options and unknown values end a command with a one-line error.

The exit code is 2, and no file is written.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from softmax_temperature.tools import cli

Run = Callable[..., str]
ROWS = 60


@pytest.fixture
def refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """A function that runs a command beside sample files and returns its error."""
    generator = np.random.default_rng(0)
    logits = generator.normal(size=(ROWS, 3))
    labels = np.arange(ROWS) % 3
    arrays = {"logits": logits, "embeddings": logits, "labels": labels}
    np.savez(tmp_path / "saved.npz", **arrays)
    np.savez(
        tmp_path / "both.npz",
        **arrays,
        validation_logits=logits,
        validation_labels=labels,
    )
    np.savez(tmp_path / "from_one.npz", logits=logits, labels=labels + 1)
    np.savez(tmp_path / "transposed.npz", logits=logits.T, labels=labels)
    np.save(tmp_path / "labels.npy", labels)
    (tmp_path / "images").mkdir()
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))

    def run(*arguments: str) -> str:
        monkeypatch.setattr("sys.argv", ["softmax-temperature", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == 2
        assert sorted(tmp_path.rglob("*")) == before
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.count("\n") == 1
        return printed.err

    return run


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            "suggest saved.npz --backbone timm/resnet18",
            "--backbone: is not used: saved",
        ),
        ("suggest saved.npz --download", "--download: is not used: saved.npz is not"),
        ("suggest saved.npz --epochs 3", "--epochs: is not used: only --verify"),
        ("suggest saved.npz --lr 0", "--lr: is not used"),
        ("suggest saved.npz --device cpu", "--device: is not used"),
        ("suggest saved.npz --test saved.npz", "--test: is not used"),
        ("suggest images --labels labels.npy", "--labels: is not used: images is a"),
        ("suggest images --columns a", "--columns: is not used"),
        ("calibrate --sample --labels labels.npy", "--labels: is not used: --sample"),
        ("calibrate --sample --probs", "--probs: is not used"),
        ("calibrate saved.npz --columns z*", "is not a table"),
        ("calibrate saved.npz --validation-labels labels.npy", "needs validation rows"),
        (
            "calibrate saved.npz --validation both.npz --fit-on half",
            "--fit-on: is not used: --validation provides",
        ),
        (
            "calibrate both.npz --fit-on all",
            "holds validation_logits, which cannot be combined with --fit-on",
        ),
    ],
)
def test_an_option_that_nothing_reads_is_refused(
    arguments: str, line: str, refused: Run
) -> None:
    assert line in refused(*arguments.split())


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("calibrate saved.npz --bins 0", "'--bins'"),
        ("calibrate saved.npz --bootstrap -1", "'--bootstrap'"),
        ("calibrate saved.npz --seed -1", "'--seed'"),
        (
            "calibrate saved.npz --fit-on quarter",
            "'quarter' is not one of 'half', 'all'",
        ),
        ("calibrate saved.npz --bin 3", "No such option: --bin"),
        ("calibrat saved.npz", "No such command 'calibrat'"),
        ("calibrate missing/folder", "No such file or folder). Correct the path"),
        ("calibrate images", "is a folder"),
        ("calibrate .", "is a folder"),
        ("calibrate saved.npz --html images", "--html images: is a folder"),
        (
            "calibrate saved.npz --bins 50",
            "fewer than the 50 bins. Give more rows, or fewer",
        ),
        ("calibrate from_one.npz", "They run from 1 to 3: subtract 1"),
        ("calibrate transposed.npz", "look transposed"),
        ("suggest missing --backbone x", "missing: no such file or folder"),
        ("suggest saved.npz --verify --lr 0", "--lr 0.0: is not a valid learning rate"),
        ("suggest saved.npz --verify --device tpu9", "--device tpu9: is not a device"),
    ],
)
def test_each_wrong_value_has_its_own_line(
    arguments: str, line: str, refused: Run
) -> None:
    printed = refused(*arguments.split())
    assert line in printed
    assert "Give finite logits" not in printed


@pytest.mark.usefixtures("undrawn")
def test_columns_of_the_option_are_the_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    table = np.column_stack([generator.normal(size=(ROWS, 3)), np.arange(ROWS) % 2])
    np.savetxt("t.csv", table, delimiter=",", header="a,b,id,label", comments="")
    arguments = ["calibrate", "t.csv", "--columns", "a,b", "--bootstrap", "0"]
    monkeypatch.setattr("sys.argv", ["softmax-temperature", *arguments, "--json"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code in (0, None)
    assert '"classes": 2' in capsys.readouterr().out

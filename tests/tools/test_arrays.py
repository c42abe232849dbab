"""Every type of file gives the same arrays, and what is none of them is refused in one
line.
"""

import pickle
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.numpy import save_file

from softmax_temperature.runner.errors import InputError
from softmax_temperature.tools.arrays import read_arrays, read_rows

LOGITS = np.array([[1.5, -0.5], [0.25, 2.0], [0.0, 1.0]])
LABELS = np.array([0, 1, 1])


def write(path: Path) -> Path:
    table = pd.DataFrame(LOGITS, columns=["a", "b"]).assign(label=LABELS)
    match path.suffix:
        case ".npz":
            np.savez(path, logits=LOGITS, labels=LABELS)
        case ".safetensors":
            save_file({"logits": LOGITS, "labels": LABELS}, path)
        case ".pt":
            torch.save(
                {
                    "preds": torch.tensor(LOGITS).bfloat16(),
                    "targets": torch.tensor(LABELS),
                },
                path,
            )
        case ".csv":
            table.to_csv(path, index=False)
        case ".parquet":
            table.to_parquet(path)
    return path


@pytest.mark.parametrize("ending", [".npz", ".safetensors", ".pt", ".csv", ".parquet"])
def test_every_type_gives_the_same_arrays(ending: str, tmp_path: Path) -> None:
    found, other = read_rows(
        "logits", write(tmp_path / f"saved{ending}"), None, "validation", None, None
    )
    np.testing.assert_array_equal(found["logits"], LOGITS)
    np.testing.assert_array_equal(found["labels"], LABELS)
    assert other is None


def test_parquet_without_pyarrow_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "saved.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"saved\.parquet: cannot be read \(.*pyarrow"):
        read_arrays(path, "logits", required=("logits", "labels"))


def test_labels_and_other_rows_lie_in_the_same_file_or_apart(tmp_path: Path) -> None:
    whole, bare, labels = (
        tmp_path / "whole.npz",
        tmp_path / "bare.npy",
        tmp_path / "labels.csv",
    )
    np.savez(
        whole,
        outputs=LOGITS,
        y_true=LABELS,
        validation_logits=2 * LOGITS,
        validation_labels=LABELS,
    )
    np.save(bare, 2 * LOGITS)
    pd.DataFrame(LABELS).to_csv(
        labels, index=False, header=False
    )  # A table without names is read by position.
    together = read_rows("logits", whole, None, "validation", None, None)
    apart = read_rows(
        "logits", write(tmp_path / "a.npz"), None, "validation", bare, labels
    )
    for found, other in (together, apart):
        assert other is not None
        np.testing.assert_array_equal(found["logits"], LOGITS)
        np.testing.assert_array_equal(other["logits"], 2 * LOGITS)
        np.testing.assert_array_equal(other["labels"], LABELS)
    given = read_rows(
        "logits", whole, None, "validation", write(tmp_path / "b.npz"), None
    )[1]
    assert given is not None
    np.testing.assert_array_equal(
        given["logits"], LOGITS
    )  # The file that is given goes before.
    with pytest.raises(InputError, match="validation rows lack their logits"):
        read_rows("logits", bare, labels, "validation", None, labels)


@pytest.mark.parametrize("name", [None, "id"])
def test_the_index_of_a_data_frame_is_no_class(
    name: str | None, tmp_path: Path
) -> None:
    pd.DataFrame(LOGITS).assign(label=LABELS).rename_axis(name).to_csv(
        tmp_path / "with_index.csv"
    )
    with pytest.raises(
        InputError, match=r"looks like the index of a data frame.*index=False"
    ):
        read_arrays(
            tmp_path / "with_index.csv", "logits", required=("logits", "labels")
        )


def test_a_pickle_is_not_run(tmp_path: Path) -> None:
    marker = tmp_path / "ran"

    class Payload:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (marker.touch.__func__, (marker,))  # type: ignore[attr-defined,return-value]

    (tmp_path / "evil.pt").write_bytes(pickle.dumps({"logits": Payload()}, protocol=2))
    np.save(
        tmp_path / "evil.npy", np.array([Payload()], dtype=object), allow_pickle=True
    )
    for name in ("evil.pt", "evil.npy"):
        with pytest.raises(InputError, match="cannot be read"):
            read_arrays(tmp_path / name, "logits", required=("logits",))
    assert not marker.exists()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("missing.npz", None, "cannot be read .*No such file"),
        ("logits.txt", b"1 2", "unknown file type"),
        ("cut.npz", b"PK\x03\x04 nothing", "cannot be read"),
        ("words.csv", b"a,b,label\nx,1,0\ny,2,1\n", "'a' is not numeric. Leave it out"),
        (
            "names.csv",
            b"a,b,label\n2,1,cat\n1,2,dog\n",
            "'label' is not numeric. Number the classes",
        ),
        ("two.csv", b"label,labels,a\n0,0,1\n", "columns label and labels"),
        ("bare.csv", b"a,b\n0.5,1.5\n0.5,1.5\n", "has no labels"),
    ],
)
def test_what_cannot_be_used_is_refused(
    name: str, content: bytes | None, said: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_arrays(tmp_path / name, "logits", required=("logits", "labels"))

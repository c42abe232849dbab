"""Every type of file gives the same arrays back, and what is not what it should be is refused in one line."""

from __future__ import annotations

import csv
import io
import os
import pickle
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import safetensors.numpy
import safetensors.torch
import torch
from numpy.typing import NDArray

from softmax_temperature.array_files import array_file, csv_files, memory, numpy_files, read_arrays
from softmax_temperature.array_files.reading import KINDS
from softmax_temperature.runner.errors import InputError

Arrays = dict[str, NDArray[Any]]
BOTH = ("logits", "labels")


def arrays(rows: int = 7) -> Arrays:
    generator = np.random.default_rng(0)
    return {"logits": generator.normal(size=(rows, 3)), "labels": np.arange(rows) % 3}


def frame(values: Mapping[str, NDArray[Any]]) -> pd.DataFrame:
    columns = {f"class {number}": column for number, column in enumerate(values["logits"].T)}
    return pd.DataFrame({"label": values["labels"], **columns})


def write_npz(path: Path, values: Arrays) -> None:
    np.savez(path, **values)  # type: ignore[arg-type]  # the stubs take them for options


def write_compressed(path: Path, values: Arrays) -> None:
    np.savez_compressed(path, **values)  # type: ignore[arg-type]


def write_safetensors(path: Path, values: Arrays) -> None:
    safetensors.numpy.save_file(values, path)


def write_csv(path: Path, values: Arrays) -> None:
    frame(values).to_csv(path, index=False)


def write_columns(path: Path, values: Arrays) -> None:
    frame(values).to_parquet(path)


def write_lists(path: Path, values: Arrays) -> None:
    pq.write_table(pa.table({"logits": values["logits"].tolist(), "labels": values["labels"]}), path)


def write_fixed_lists(path: Path, values: Arrays) -> None:
    flat = pa.array(values["logits"].ravel())
    pq.write_table(pa.table({"logits": pa.FixedSizeListArray.from_arrays(flat, 3), "label": values["labels"]}), path)


WRITERS: dict[str, tuple[str, Callable[[Path, Arrays], None]]] = {
    "npz": ("a.npz", write_npz),
    "compressed": ("a.npz", write_compressed),
    "safetensors": ("a.safetensors", write_safetensors),
    "csv": ("a.csv", write_csv),
    "capitals": ("A.CSV", write_csv),
    "columns": ("a.parquet", write_columns),
    "lists": ("a.parquet", write_lists),
    "fixed lists": ("a.parquet", write_fixed_lists),
}


@pytest.mark.parametrize("case", WRITERS)
def test_the_arrays_come_back(tmp_path: Path, case: str) -> None:
    name, write = WRITERS[case]
    write(tmp_path / name, arrays())
    found = read_arrays(tmp_path / name, "logits", required=BOTH)
    for key, array in arrays().items():
        same(found[key], array, exact=is_binary(name))


def is_binary(name: str) -> bool:
    return not name.lower().endswith("csv")


def same(found: NDArray[Any], expected: NDArray[Any], *, exact: bool) -> None:
    """Equal bit for bit, or, from text, up to the last bit that pandas may lose."""
    np.testing.assert_allclose(found, expected, rtol=0 if exact else 1e-15, strict=True)


def test_a_pair_of_npy_files_and_single_columns(tmp_path: Path) -> None:
    for key, array in arrays().items():
        np.save(tmp_path / f"{key}.npy", array)
    frame(arrays())[["label"]].to_csv(tmp_path / "labels.csv", index=False)
    frame(arrays()).drop(columns="label").to_csv(tmp_path / "logits.csv", index=False)
    np.savetxt(tmp_path / "plain.csv", arrays()["logits"], delimiter=",", fmt="%.17g")
    for name, key in (
        ("logits.npy", "logits"),
        ("labels.npy", "labels"),
        ("labels.csv", "labels"),
        ("logits.csv", "logits"),
        ("plain.csv", "logits"),
    ):
        found = read_arrays(tmp_path / name, "logits", required=(key,))
        same(found[key], arrays()[key], exact=is_binary(name))


def test_optional_arrays_are_read_if_they_are_there_and_others_never(tmp_path: Path) -> None:
    write_npz(tmp_path / "a.npz", arrays() | {"names": np.array(["a"]), "objects": np.array([None])})
    found = read_arrays(tmp_path / "a.npz", "logits", required=BOTH, optional=("names", "more"))
    assert sorted(found) == ["labels", "logits", "names"]


def test_a_long_csv_is_read_in_parts(tmp_path: Path) -> None:
    values = arrays(10_000)
    write_csv(tmp_path / "a.csv", values)
    found = read_arrays(tmp_path / "a.csv", "logits", required=BOTH)
    same(found["logits"], values["logits"], exact=False)


def test_bfloat16_comes_as_float32(tmp_path: Path) -> None:
    tensors = {"logits": torch.ones(3, 2, dtype=torch.bfloat16), "labels": torch.arange(3)}
    safetensors.torch.save_file(tensors, tmp_path / "a.safetensors")
    found = read_arrays(tmp_path / "a.safetensors", "logits", required=BOTH)
    assert found["logits"].dtype == np.float32


def refused(path: Path, *required: str) -> str:
    """What the one line says after the file's name."""
    with pytest.raises(InputError) as caught:
        read_arrays(path, "logits", required=required or BOTH)
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith(f"{path}: ")
    return text.removeprefix(f"{path}: ")


@pytest.mark.parametrize("ending", KINDS)
def test_five_gigabytes_of_nothing_are_refused_unread(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"a{ending}"
    path.touch()
    os.truncate(path, 5 * 2**30)
    monkeypatch.setattr(memory, "memory_bytes", lambda: 2**50)
    assert refused(path).startswith("is not a")


@pytest.mark.parametrize("ending", KINDS)
@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9], ids=["empty", "image"])
def test_what_another_file_is_is_said(tmp_path: Path, ending: str, content: bytes) -> None:
    path = tmp_path / f"a{ending}"
    path.write_bytes(content)
    assert refused(path).startswith(("is not ", "is empty"))


@pytest.mark.parametrize("case", ["npz", "compressed", "safetensors", "columns", "lists"])
@pytest.mark.parametrize("share", [0.5, 0.98])
def test_a_file_that_is_cut_short_is_refused(tmp_path: Path, case: str, share: float) -> None:
    name, write = WRITERS[case]
    write(tmp_path / name, arrays(500))
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: int(share * len(whole))])
    assert refused(tmp_path / name).startswith("is not ")


def test_a_npy_file_that_is_cut_short_is_refused_by_its_header(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", arrays()["logits"])
    whole = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(whole[:-8])
    said = refused(tmp_path / "a.npy", "logits")
    assert said.startswith(f"is cut short or damaged: {len(whole) - 8} bytes, and its header promises {len(whole)}")


@pytest.mark.parametrize("case", WRITERS)
def test_numbers_beyond_memory_are_refused_by_header_or_size(
    tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, write = WRITERS[case]
    write(tmp_path / name, arrays(1000))
    monkeypatch.setattr(memory, "memory_bytes", lambda: 4000 * memory.BYTES * memory.COPIES * 2)
    read_arrays(tmp_path / name, "logits", required=BOTH)
    monkeypatch.setattr(memory, "memory_bytes", lambda: 4000 * memory.BYTES * memory.COPIES // 2)
    monkeypatch.setattr(array_file.ArrayFile, "load", lambda *_: pytest.fail("was read"))
    assert "numbers, which would take" in refused(tmp_path / name)


def test_objects_are_not_unpickled(tmp_path: Path) -> None:
    bomb = np.array([Payload(tmp_path / "harm")], dtype=object)
    np.save(tmp_path / "a.npy", bomb, allow_pickle=True)
    write_npz(tmp_path / "a.npz", arrays() | {"labels": bomb})
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(bomb))
    assert refused(tmp_path / "a.npy", "logits").startswith("holds Python objects")
    assert refused(tmp_path / "a.npz").startswith("labels holds Python objects")
    assert refused(tmp_path / "a.pkl").startswith("unknown file type '.pkl'")
    assert not (tmp_path / "harm").exists()


class Payload:
    """Unpickling it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("code", [0x110000, 0xFFFFFFFF, 0xD800])
def test_texts_of_what_are_no_characters_are_refused(tmp_path: Path, order: str, code: int) -> None:
    codes = np.array([ord("a"), code], dtype=f"{order}u4")
    write_npz(tmp_path / "a.npz", arrays() | {"names": codes.view(f"{order}U2")})
    with pytest.raises(InputError, match=r"names is damaged .holds texts with numbers that are no characters"):
        read_arrays(tmp_path / "a.npz", "logits", required=("names",))


def test_texts_in_both_orders_of_bytes_are_read(tmp_path: Path) -> None:
    texts = np.array(["aü", "数😀"])
    write_npz(tmp_path / "a.npz", {"little": texts.astype("<U2"), "big": texts.astype(">U2"), "one": texts[0]})
    found = read_arrays(tmp_path / "a.npz", "logits", required=("little", "big", "one"))
    assert [found[name].tolist() for name in ("little", "big", "one")] == [texts.tolist(), texts.tolist(), "aü"]


def test_a_member_that_is_longer_than_the_archive_says(tmp_path: Path) -> None:
    header = io.BytesIO()
    fields: Any = {"descr": "<f8", "fortran_order": False, "shape": (2**40, 2**20)}
    np.lib.format.write_array_header_1_0(header, fields)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("logits.npy", header.getvalue())
        archive.writestr("labels.npy", b"no array")
    assert refused(tmp_path / "a.npz", "logits").startswith("logits is cut short or damaged: 128 bytes, and its header")
    assert refused(tmp_path / "a.npz", "labels").startswith("labels is not an array that numpy saved")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_member_that_is_compressed_as_numpy_does_not_is_refused(tmp_path: Path, method: int) -> None:
    """A block of these may become a thousand times as large in one step."""
    write_npz(tmp_path / "a.npz", arrays())
    with zipfile.ZipFile(tmp_path / "a.npz") as source, zipfile.ZipFile(tmp_path / "b.npz", "w", method) as archive:
        for name in source.namelist():
            archive.writestr(name, source.read(name))
    assert refused(tmp_path / "b.npz").startswith("logits is compressed in a way that numpy does not use")


def test_a_header_that_is_longer_than_numpy_reads_is_refused(tmp_path: Path) -> None:
    numbers = np.zeros(2, dtype=[("a" * 10_000, "<f8")])
    with (tmp_path / "a.npy").open("wb") as file:
        np.lib.format.write_array(file, numbers, version=(2, 0))
    assert refused(tmp_path / "a.npy", "labels").startswith("is not an array that numpy saved (EOF: reading array head")


def test_an_archive_of_too_many_arrays_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = {f"number {number}": np.zeros(1) for number in range(100)}
    write_npz(tmp_path / "a.npz", arrays() | many)
    read_arrays(tmp_path / "a.npz", "logits", required=BOTH)
    monkeypatch.setattr(numpy_files, "LARGEST_DIRECTORY", 5000)
    assert refused(tmp_path / "a.npz").startswith("cannot be read (Truncated central directory)")


def test_what_is_missing_is_named_beside_what_there_is(tmp_path: Path) -> None:
    write_npz(tmp_path / "a.npz", {"x": np.zeros(3)})
    np.save(tmp_path / "a.npy", np.zeros((3, 2)))
    frame(arrays()).rename(columns={"label": "target"}).to_csv(tmp_path / "a.csv", index=False)
    frame(arrays()).rename(columns={"label": "target"}).to_parquet(tmp_path / "a.parquet")
    frame(arrays())[["label"]].to_csv(tmp_path / "b.csv", index=False)
    assert refused(tmp_path / "a.npz").startswith("has no logits and no labels (it holds: x). Save it with numpy.savez")
    assert refused(tmp_path / "a.npy").startswith("holds one array, which can only be logits, and no labels. Save")
    for ending in ("csv", "parquet"):
        columns = "target, class 0, class 1, class 2"
        assert refused(tmp_path / f"a.{ending}").startswith(f"has no column label or labels (its columns: {columns}).")
    assert refused(tmp_path / "b.csv").startswith("has a column of labels alone, and none of logits")
    assert refused(tmp_path / "none.npz").startswith("no such file")
    assert refused(tmp_path / "weights.pt").startswith("unknown file type '.pt'. Give one of npz, npy, safetensors")
    assert refused(tmp_path / "weights").startswith("has no ending that says what type it is")
    (tmp_path / "folder.npz").mkdir()
    assert refused(tmp_path / "folder.npz").startswith("no such file")


BAD_CSV = {
    "text": ("label,a,b\n0,1.5,cat\n", "cannot be read as a table of numbers (could not convert string to float"),
    "long line": ("label,a,b\n0,1,2\n0,1,2,3\n", "cannot be read as a table of numbers (Error tokenizing data"),
    "all lines long": ("label,a,b\n0,1,2,3\n1,2,3,4\n", "cannot be read as a table of numbers (Length of header"),
    "no label": ("label,a,b\n0,1,2\n,1,2\n", "column label must hold whole numbers, got nan in row 1"),
    "half a label": ("label,a,b\n0.5,1,2\n", "column label must hold whole numbers, got 0.5 in row 0"),
    "two labels": ("label,labels,b\n0,1,2\n", "has two columns of labels (label and labels)"),
    "one name twice": ("label,a,a\n0,1,2\n", "has two columns of one name"),
    "names alone": ("label,a,b\n", "has no rows"),
    "empty line": ("\nlabel,a,b\n", "is empty, or begins with an empty line"),
    "no names": ("0,1.5,2.5\n1,0.5,2.5\n", "has no column label or labels (its columns: 0, 1, 2)"),
}


@pytest.mark.parametrize("case", BAD_CSV)
def test_bad_tables_are_refused(tmp_path: Path, case: str) -> None:
    text, says = BAD_CSV[case]
    (tmp_path / "a.csv").write_text(text)
    assert refused(tmp_path / "a.csv").startswith(says)


LINES = 'label,a,b\n"0","1.5","2"\n'


@pytest.mark.parametrize("rest", ['0,1,"' + "0\n" * 2**20, '0,1,"' + "0" * 2**19, "0,1," + "0" * 2**19, "\n" * 2**21])
def test_lines_that_do_not_end_in_time_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rest: str) -> None:
    monkeypatch.setattr(csv_files, "PART_BYTES", 2**20)
    (tmp_path / "a.csv").write_text(LINES + rest)
    assert refused(tmp_path / "a.csv").startswith("is not a text of short lines")


def test_what_is_read_at_a_time_does_not_limit_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where numbers stand in quotation marks, and a part is one row."""
    values = arrays(20_000)
    frame(values).to_csv(tmp_path / "a.csv", index=False, quoting=csv.QUOTE_ALL)
    monkeypatch.setattr(csv_files, "PART_BYTES", 2**19)
    same(read_arrays(tmp_path / "a.csv", "logits", required=BOTH)["logits"], values["logits"], exact=False)
    (tmp_path / "b.csv").write_text(LINES + "0,1,2\n" * 9)
    monkeypatch.setattr(csv_files, "NUMBER_BYTES", 2**19)
    assert len(read_arrays(tmp_path / "b.csv", "logits", required=BOTH)["labels"]) == 10


def test_a_missing_number_stays_a_nan_for_the_command_to_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("label,a,b\n0,1,2\n1,,2\n1,NaN,3\n")
    found = read_arrays(tmp_path / "a.csv", "logits", required=BOTH)
    assert np.isnan(found["logits"]).tolist() == [[False, False], [True, False], [True, False]]


def test_text_that_is_not_unicode(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("label,größe\n".encode("latin-1"))
    assert refused(tmp_path / "a.csv").startswith("is not text in UTF-8")


BAD_COLUMNS: dict[str, tuple[dict[str, Any], str]] = {
    "text": ({"label": [0, 1], "a": ["x", "y"]}, "column a holds "),
    "missing number": ({"label": [0, 1], "a": pa.array([1.0, None])}, "column a has 1 missing values"),
    "missing label": ({"label": pa.array([0, None]), "a": [1.0, 2.0]}, "column label has 1 missing values"),
    "missing list": ({"label": [0, 1], "logits": [[1.0, 2.0], None]}, "column logits has 1 missing values"),
    "ragged": ({"label": [0, 1], "logits": [[1.0, 2.0], [1.0]]}, "column logits has lists of 1 to 2 numbers"),
    "hole": ({"label": [0, 1], "logits": [[1.0, 2.0], [1.0, None]]}, "column logits has 1 missing values in its lists"),
}


@pytest.mark.parametrize("case", BAD_COLUMNS)
def test_bad_columns_are_refused(tmp_path: Path, case: str) -> None:
    columns, says = BAD_COLUMNS[case]
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    assert refused(tmp_path / "a.parquet").startswith(says)

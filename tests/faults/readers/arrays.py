"""Files of arrays that the commands `calibrate` and `suggest` take."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import safetensors.numpy
from hypothesis import strategies as st
from numpy.typing import NDArray
from softmax_temperature.tools.logits_archive import LogitsArchive, LogitsFiles
from softmax_temperature.tools.suggest.embedded import EmbeddingFiles, read_embedded

from softmax_temperature.runner.errors import InputError
from tests.faults.mutations import edited, exchanged
from tests.faults.readers.reader import Reader

ROWS, CLASSES = 12, 3
LENGTH_BYTES = 8  # Of a safetensors file before its header: how long that is.

Arrays = dict[str, NDArray[Any]]


@cache
def values() -> Arrays:
    matrix = np.random.default_rng(0).normal(size=(ROWS, CLASSES))
    return {"logits": matrix, "embeddings": matrix, "labels": np.arange(ROWS) % CLASSES}


def read_both_ways(ending: str, folder: Path, content: bytes) -> None:
    """As logits and as embeddings, with the labels beside them where the file holds one array."""
    path, labels = folder / f"a{ending}", None
    path.write_bytes(content)
    if ending == ".npy":
        np.save(labels := folder / "labels.npy", values()["labels"])
    refused = None
    for read in (read_logits, read_embeddings):
        try:
            read(path, labels)
        except InputError as error:
            refused = error
    if refused:
        raise refused


def read_logits(path: Path, labels: Path | None) -> None:
    archive = LogitsArchive.open(LogitsFiles(path, labels))
    network = archive.network(None)
    archive.predictions(network, "validation_" if archive.fit_on(None) == "validation" else "")


def read_embeddings(path: Path, labels: Path | None) -> None:
    read_embedded(EmbeddingFiles(path, labels)).with_test(seed=0)


def npy(array: NDArray[Any]) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def npz(arrays: Arrays, *, compressed: bool = False) -> bytes:
    stream = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(stream, **arrays)  # type: ignore[arg-type]  # the stubs take them for options
    return stream.getvalue()


def zipped(members: Mapping[str, bytes]) -> bytes:
    """An archive whose checksums are right, whatever its members are."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def read_member(name: str, folder: Path, content: bytes) -> None:
    arrays = values() | ({"logits": values()["logits"][None]} if name == "names" else {})
    members = {f"{key}.npy": npy(array) for key, array in arrays.items()}
    read_both_ways(".npz", folder, zipped(members | {f"{name}.npy": content}))


def npz_seeds() -> list[bytes]:
    named = {"logits": values()["logits"][None], "names": np.array(["a"])}
    with_validation = values() | {f"validation_{key}": values()[key] for key in ("logits", "labels")}
    return [npz(values()), npz(values(), compressed=True), npz(with_validation), npz(values() | named)]


def safetensors_seeds() -> list[bytes]:
    return [safetensors.numpy.save(values())]


def header_of(content: bytes) -> Any:
    return json.loads(content[LENGTH_BYTES : LENGTH_BYTES + int.from_bytes(content[:LENGTH_BYTES], "little")])


def with_header(content: bytes, header: Any) -> bytes:
    """The same tensors behind another header of the right length; it comes as a JSON value, or as its text."""
    data = content[LENGTH_BYTES + int.from_bytes(content[:LENGTH_BYTES], "little") :]
    text = header if isinstance(header, bytes) else as_text(header)
    return len(text).to_bytes(LENGTH_BYTES, "little") + text + data


def as_text(header: Any) -> bytes:
    return json.dumps(header).encode("utf-8", "surrogatepass")


def described() -> bytes:
    """Tensors whose header holds notes too, which may say anything."""
    return safetensors.numpy.save(values(), {"made": "by hand", "of": "nothing"})


def other_headers(seeds: Sequence[Any]) -> st.SearchStrategy[Any]:
    """Values in which a piece is exchanged, and texts that are edited."""
    return exchanged(seeds) | edited([as_text(header) for header in seeds])


def frame(name: str) -> pd.DataFrame:
    columns = {f"{name} {number}": column for number, column in enumerate(values()["logits"].T)}
    return pd.DataFrame({"label": values()["labels"], **columns})


def csv_seeds() -> list[bytes]:
    table = frame("class")
    return [
        table.to_csv(index=False).encode(),
        table.round(2).to_csv(index=False).encode(),
        b"label,a,b\n0,1,2\n1,2,3\n0,3,1\n",
    ]


def parquet_seeds() -> list[bytes]:
    lists = pa.table({"logits": values()["logits"].tolist(), "label": values()["labels"]})
    repeated = pa.table({"a": [1.0] * ROWS, "b": [2.0] * ROWS, "label": values()["labels"] % 2})
    plain = pa.Table.from_pandas(frame("class"), preserve_index=False)
    return [parquet(plain), parquet(lists), parquet(repeated), parquet(plain, compression="none")]


def parquet(table: pa.Table, **options: Any) -> bytes:
    stream = io.BytesIO()
    pq.write_table(table, stream, **options)
    return stream.getvalue()


TABLE = ("array_files.csv_files._first_lines", "array_files.csv_files.CsvFile._parts")
NPZ = tuple(f"array_files.numpy_files.NpzFile.{name}" for name in ("__init__", "_open", "_archive"))
NPY = tuple(f"array_files.numpy_files.NpyFile.{name}" for name in ("__init__", "load"))
SAFETENSORS = tuple(f"array_files.safetensors_files.SafetensorsFile.{name}" for name in ("__init__", "load"))
PARQUET = (
    *(f"array_files.parquet_files.ParquetFile.{name}" for name in ("__init__", "load")),
    *(f"array_files.parquet_pages.{name}" for name in ("check_footer", "column_pages")),
)

READERS = {
    "npz": Reader(NPZ, npz_seeds, partial(read_both_ways, ".npz")),
    "npz logits": Reader(NPZ, lambda: [npy(values()["logits"])], partial(read_member, "logits")),
    "npz labels": Reader(NPZ, lambda: [npy(values()["labels"])], partial(read_member, "labels")),
    "npz names": Reader(NPZ, lambda: [npy(np.array(["a"]))], partial(read_member, "names")),
    "npy": Reader(NPY, lambda: [npy(values()["logits"])], partial(read_both_ways, ".npy")),
    "safetensors": Reader(SAFETENSORS, safetensors_seeds, partial(read_both_ways, ".safetensors")),
    "safetensors header": Reader(
        SAFETENSORS,
        lambda: [header_of(described())],
        lambda folder, header: read_both_ways(".safetensors", folder, with_header(described(), header)),
        other_headers,
    ),
    "csv": Reader(TABLE, csv_seeds, partial(read_both_ways, ".csv")),
    "parquet": Reader(PARQUET, parquet_seeds, partial(read_both_ways, ".parquet")),
}

"""What somebody else wrote can say what it likes: nothing runs, nothing is unpacked, nothing acts on a page."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from PIL import Image

from softmax_temperature.array_files import memory
from softmax_temperature.array_files.array_file import ArrayFile
from softmax_temperature.data.image_files import inspect_image
from softmax_temperature.data.npz_archives import NpzArchive
from softmax_temperature.networks.backbones.weights import read_weights
from softmax_temperature.papers.html import write_report
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.yaml_files import read_yaml
from softmax_temperature.tools import cli
from softmax_temperature.tools.calibrate import calibrate
from tests.faults.readers.arrays import npy, npz, parquet, values
from tests.faults.readers.results import write_results
from tests.faults.readers.weights import read_checkpoint

GIB = 2**30


class Payload:
    """A pickle that makes a folder when it is opened."""

    def __init__(self, victim: Path) -> None:
        self.victim = victim

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.victim),)


def everything(folder: Path) -> dict[str, int]:
    """Every file and folder, with its size."""
    return {path.relative_to(folder).as_posix(): path.lstat().st_size for path in folder.rglob("*")}


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs the command, which must end with 2, one line, and nothing written; returns the line."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> str:
        before = everything(tmp_path)
        monkeypatch.setattr(sys, "argv", ["softmax-temperature", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == 2
        assert everything(tmp_path) == before
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith("error: ")
        assert said.err.count("\n") == 1
        return said.err

    return run


# ---- pickles

PRETENDING = ("a.npz", "a.npy", "a.safetensors", "a.csv", "a.parquet", "a.pt", "a.pkl")


@pytest.mark.parametrize("name", PRETENDING)
@pytest.mark.parametrize("command", ["calibrate", "suggest"])
def test_a_pickle_that_poses_as_arrays_is_refused(
    tmp_path: Path, refused: Callable[..., str], command: str, name: str
) -> None:
    (tmp_path / name).write_bytes(pickle.dumps(Payload(tmp_path / "victim")))
    assert name in refused(command, name)


def torch_saved(value: Any) -> bytes:
    stream = io.BytesIO()
    torch.save(value, stream)
    return stream.getvalue()


@pytest.mark.parametrize("saved", [pickle.dumps, torch_saved], ids=["pickle", "torch"])
@pytest.mark.parametrize("name", ["weights.safetensors", "weights.pt"])
def test_a_pickle_that_poses_as_weights_is_refused(
    tmp_path: Path, refused: Callable[..., str], saved: Callable[[Any], bytes], name: str
) -> None:
    for label in ("crow", "wren"):
        (tmp_path / "images" / label).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(tmp_path / "images" / label / "a.png")
    (tmp_path / name).write_bytes(saved(Payload(tmp_path / "victim")))
    said = refused("suggest", "images", "--backbone", "torchvision/resnet18", "--weights", name)
    assert f"{name}: is not a whole file of weights" in said


@pytest.mark.filterwarnings("ignore:Detected pickle protocol:UserWarning")
@pytest.mark.parametrize("saved", [pickle.dumps, torch_saved], ids=["pickle", "torch"])
def test_a_pickle_with_the_digest_of_weights_or_of_a_checkpoint_is_not_run(
    tmp_path: Path, saved: Callable[[Any], bytes]
) -> None:
    """Both come as pickles; they are opened for tensors, numbers and text alone."""
    content = saved(Payload(tmp_path / "victim"))
    (tmp_path / "weights.pth").write_bytes(content)
    with pytest.raises(InputError, match="is not a whole file of weights"):
        read_weights(tmp_path / "weights.pth")
    with pytest.raises(InputError, match="is no checkpoint"):
        read_checkpoint(tmp_path, content)
    assert not (tmp_path / "victim").exists()


# ---- archives

OUTSIDE = ("../labels.npy", "/labels.npy", "a/../../labels.npy", "..\\labels.npy")


@pytest.mark.parametrize("name", OUTSIDE)
def test_an_archive_with_names_outside_of_it_is_only_looked_into(
    tmp_path: Path, refused: Callable[..., str], name: str
) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    with zipfile.ZipFile(inner / "a.npz", "w") as archive:
        archive.writestr("logits.npy", npy(values()["logits"]))
        archive.writestr(name, npy(values()["labels"]))
    assert "has no labels (it holds: logits, " in refused("calibrate", "inner/a.npz")


def test_a_link_in_an_archive_is_bytes_like_any_other(tmp_path: Path, refused: Callable[..., str]) -> None:
    (tmp_path / "labels.npy").write_bytes(npy(values()["labels"]))
    link = zipfile.ZipInfo("labels.npy")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("logits.npy", npy(values()["logits"]))
        archive.writestr(link, str(tmp_path / "labels.npy"))
    assert "labels is not an array that numpy saved" in refused("calibrate", "a.npz")


def bomb(path: Path, name: str, shape: tuple[int, ...], kind: str) -> int:
    """An archive with an array of zeros that takes a thousandth of its bytes; returns how many these are."""
    block = 2**20
    header = io.BytesIO()
    fields: Any = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(header, fields)
    rest = int(np.prod(shape)) * np.dtype(kind).itemsize
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open(f"{name}.npy", "w") as file:
        file.write(header.getvalue())
        for start in range(0, rest, block):
            file.write(bytes(min(block, rest - start)))
    assert path.stat().st_size < rest / 500
    return rest


@pytest.fixture
def small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose memory would not hold the bombs, and on which nothing is read."""
    monkeypatch.setattr(memory, "memory_bytes", lambda: 2**26)
    for kind in (ArrayFile, *ArrayFile.__subclasses__()):
        monkeypatch.setattr(kind, "load", lambda *_: pytest.fail("was read"))


@pytest.mark.usefixtures("small_machine")
def test_a_bomb_of_logits_is_refused_by_its_header(tmp_path: Path, refused: Callable[..., str]) -> None:
    bomb(tmp_path / "a.npz", "logits", (2**20, 8), "<f4")
    np.save(tmp_path / "labels.npy", np.zeros(2**20, dtype=np.int8))
    assert "a.npz: holds 8,388,608 numbers, which would take " in refused(
        "calibrate", "a.npz", "--labels", "labels.npy"
    )


@pytest.mark.usefixtures("small_machine")
def test_a_bomb_of_one_endless_text_is_refused_by_its_header(tmp_path: Path, refused: Callable[..., str]) -> None:
    bomb(tmp_path / "a.npz", "logits", (1,), "<U16000000")
    assert "a.npz: holds 8,000,000 numbers" in refused("calibrate", "a.npz", "--labels", "a.npz")


@pytest.mark.usefixtures("small_machine")
def test_a_bomb_of_images_is_refused_by_its_header(tmp_path: Path) -> None:
    bomb(tmp_path / "birds.npz", "x_train", (2**14, 64, 64), "|u1")
    with zipfile.ZipFile(tmp_path / "birds.npz", "a") as archive:
        for name in ("y_train", "x_test", "y_test"):
            archive.writestr(f"{name}.npy", npy(np.zeros(2, dtype=np.int64)))
    with pytest.raises(InputError, match=r"birds\.npz: holds 67,108,9.. numbers, which would take "):
        NpzArchive(tmp_path, "birds").read()


def varint(value: int, length: int = 1) -> bytes:
    """A whole number as headers of Parquet have it, in so many bytes at least."""
    rest, found = 2 * value, bytearray()
    while rest or len(found) < length:
        found.append(rest & 127 | 128)
        rest >>= 7
    found[-1] &= 127
    return bytes(found)


def ragged(numbers: int) -> bytes:
    """A list of two zeros, and one of many."""
    lists = pa.ListArray.from_arrays([0, 2, numbers], pa.array(np.zeros(numbers, dtype=np.int8)))
    return parquet(pa.table({"logits": lists, "label": [0, 1]}))


def in_secret(content: bytes, numbers: int) -> bytes:
    """The same behind a footer that says they are four."""
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    many = varint(numbers)
    assert many in content[start:]
    return content[:start] + content[start:].replace(many, varint(4, len(many)))


def swollen(numbers: int) -> bytes:
    """Zeros in one page, and every header says they are two."""
    zeros = pa.array(np.zeros(numbers, dtype=np.int32))
    content = parquet(pa.table({"logits": zeros, "label": zeros}), use_dictionary=False, compression="zstd")
    return content.replace(varint(numbers), varint(2, len(varint(numbers))))


def texts(rows: int) -> bytes:
    """Labels that are one text of a mebibyte, stored once."""
    labels = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int8)), ["0" * 2**20])
    return parquet(pa.table({"logits": np.zeros(rows), "label": labels}), store_schema=False)


NUMBERS = 2**23 + 2
GROWN = 64
"""Mebibytes; the first two take twice as much where they are decoded before they are looked at, the last a gibibyte."""
READ_BOMBS = """
import json, sys
from pathlib import Path
from softmax_temperature.runner.errors import InputError
from softmax_temperature.tools.logits_archive import LogitsArchive, LogitsFiles

peak = lambda: next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) // 1024
found = {}
for name in sys.argv[1:]:
    before, said = peak(), None
    try:
        LogitsArchive.open(LogitsFiles(Path(name)))
    except InputError as error:
        said = str(error)
    found[name] = [said, peak() - before]
print(json.dumps(found))
"""


def test_bombs_of_parquet_are_refused_in_bounded_memory(tmp_path: Path) -> None:
    lists = f"column logits has {NUMBERS:,} numbers in 2 rows, of which the first has 2"
    bombs = {
        "ragged.parquet": (content := ragged(NUMBERS), lists),
        "in secret.parquet": (in_secret(content, NUMBERS), lists),
        "swollen.parquet": (swollen(20_000), "column logits takes 80,008 bytes for 2 numbers"),
        "texts.parquet": (texts(1_000), "column label holds string, not numbers"),
    }
    sound = parquet(pa.table({"logits": values()["logits"].tolist(), "label": values()["labels"]}))
    (tmp_path / "sound.parquet").write_bytes(sound)  # Read first: what is imported late does not count.
    for name, (content, _) in bombs.items():
        (tmp_path / name).write_bytes(content)
        assert len(content) < 2**16
    found = in_another_process(tmp_path, READ_BOMBS, "sound.parquet", *bombs)
    assert found.pop("sound.parquet")[0] is None
    for name, (_, says) in bombs.items():
        said, grown = found[name]
        assert says in said
        assert grown < GROWN


LONG = 2**27
"""Bytes; more than reading what is refused may take, and some of these files are read twice."""


def long_headers(path: Path) -> None:
    """Arrays whose headers are of spaces."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name in ("logits", "labels"):
            with archive.open(f"{name}.npy", "w") as file:
                file.write(b"\x93NUMPY\x02\x00" + struct.pack("<I", LONG))
                for _ in range(LONG // 2**20):
                    file.write(b" " * 2**20)


def long_hole(path: Path, start: bytes, end: bytes) -> None:
    """Zeros, with something before and behind them."""
    with path.open("wb") as file:
        file.write(start)
        file.truncate(LONG + len(start))
        file.seek(0, os.SEEK_END)
        file.write(end)


def test_what_says_itself_how_long_it_is_is_refused_in_bounded_memory(tmp_path: Path) -> None:
    (tmp_path / "sound.npz").write_bytes(npz(values()))
    (tmp_path / "sound.csv").write_text("label,a,b\n0,1,2\n1,2,1\n")
    sound = parquet(pa.table({"logits": values()["logits"].tolist(), "label": values()["labels"]}))
    (tmp_path / "sound.parquet").write_bytes(sound)
    long_headers(tmp_path / "header.npz")
    long_hole(tmp_path / "directory.npz", b"", struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, LONG, 0, 0))
    where = LONG.to_bytes(8, "little")
    wide = b"PK\6\6" + bytes(36) + where + bytes(8) + b"PK\6\7" + bytes(4) + where + struct.pack("<L", 1)
    long_hole(tmp_path / "wide.npz", b"", wide + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, 2**32 - 1, 0, 0))
    long_hole(tmp_path / "footer.parquet", b"PAR1", LONG.to_bytes(4, "little") + b"PAR1")
    long_hole(tmp_path / "quotation.csv", b"label,a,b\n0,1,0." + b"0" * 2**23 + b'\n0,1,"', b"")
    long_hole(tmp_path / "third line.csv", b'label,a,b\n0,1,2\n0,1,"', b"")
    says = {
        "header.npz": "logits is not an array that numpy saved",
        "directory.npz": "cannot be read",
        "wide.npz": "cannot be read",
        "footer.parquet": f"its footer is said to be {LONG:,} bytes long",
        "quotation.csv": "is not a text of short lines",
        "third line.csv": "is not a text of short lines",
    }
    sound_ones = [f"sound.{ending}" for ending in ("npz", "csv", "parquet")]
    found = in_another_process(tmp_path, READ_BOMBS, *sound_ones, *says)
    assert [found.pop(name)[0] for name in sound_ones] == [None] * 3
    assert {name: grown for name, (_, grown) in found.items() if grown >= GROWN} == {}
    assert {name: said for name, (said, _) in found.items() if says[name] not in said} == {}


def in_another_process(folder: Path, program: str, *arguments: str) -> Any:
    """What a program prints, as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_an_image_of_a_billion_pixels_is_refused(tmp_path: Path) -> None:
    side, row = 40_000, zlib.compressobj(9)
    lines = b"".join(row.compress(bytes(1 + side // 8)) for _ in range(side)) + row.flush()
    (tmp_path / "a.png").write_bytes(png(side, lines))
    assert (tmp_path / "a.png").stat().st_size < 1_000_000
    with pytest.raises(InputError, match=r"a\.png: not a readable image \(Image size \(1600000000 pixels\) exceeds"):
        inspect_image(tmp_path / "a.png", size_limit=64)


def png(side: int, lines: bytes) -> bytes:
    """Black and white, one bit a pixel."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return len(content).to_bytes(4, "big") + kind + content + zlib.crc32(kind + content).to_bytes(4, "big")

    head = side.to_bytes(4, "big") * 2 + bytes([1, 0, 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", lines) + chunk(b"IEND", b"")


# ---- YAML

TAGS = (
    "!!python/object/apply:os.mkdir ['victim']",
    "!!python/object/new:os.mkdir ['victim']",
    "!!python/name:os.mkdir ''",
    "!!python/module:os ''",
    "!<tag:yaml.org,2002:python/object/apply:os.mkdir> ['victim']",
    "!mine {a: 1}",
    "!!binary '&'",
)


@pytest.mark.parametrize("value", TAGS)
@pytest.mark.parametrize("key", ["seed", "profile", "datasets"])
def test_a_tag_constructs_no_object(tmp_path: Path, refused: Callable[..., str], key: str, value: str) -> None:
    (tmp_path / "params.yaml").write_text(f"{key}: {value}\n")
    assert "params.yaml" in refused("plan")


def nine_of_the_last(number: int) -> str:
    return f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 9)}]\n"


@pytest.mark.parametrize("kind", ["rt", "safe"])
@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "a0: &a0 [x]\n" + "".join(map(nine_of_the_last, range(1, 20))),
            "stand for",
        ),
        ("&a {b: [1, *a]}\n", "refers to what it is a part of"),
        ("[" * 2**20, "more than 200 brackets"),
        ("- " * 2_000, "recursion|nested|not allowed"),
        ("a: 2001-13-45\n", "month must be"),
        ("a: " + "9" * 5000, "4300 digits"),
    ],
    ids=["billion laughs", "itself", "deep", "dashes", "date", "digits"],
)
def test_yaml_that_is_more_than_it_looks_like_is_refused(tmp_path: Path, kind: Any, text: str, says: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(InputError, match=says) as caught:
        read_yaml(tmp_path / "a.yaml", kind=kind)
    assert "\n" not in str(caught.value)


# ---- pages

SCRIPT = "</script><script>alert(1)</script>"
HOSTILE = f"\"'><img src=x onerror=alert(1)>{SCRIPT}<!--]]>"


class Acting(HTMLParser):
    """What could act on a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts, self.handlers, self.addresses, self.text = 0, [], [], ""
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.scripts += tag == "script"
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self.addresses += [str(value) for name, value in attrs if name in ("href", "src")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_hostile_names_do_not_act_on_the_calibration_page(tmp_path: Path) -> None:
    named = {"logits": np.stack([values()["logits"]] * 2), "names": np.array([HOSTILE, "other"])}
    path = tmp_path / HOSTILE.replace("/", "|")
    path = path.with_name(path.name + ".npz")
    path.write_bytes(npz(values() | named))
    _, folder = calibrate(path, name=HOSTILE, bins=2, bootstrap=0, output=tmp_path / "out", html=tmp_path / "page.html")
    page = Acting((tmp_path / "page.html").read_text())
    assert (page.scripts, page.handlers) == (0, [])
    assert all(address.startswith("data:image/svg+xml;base64,") for address in page.addresses)
    assert HOSTILE in page.text
    assert path.name in page.text
    drawing = Acting((folder / "reliability.svg").read_text())
    assert (drawing.scripts, drawing.handlers) == (0, [])


def poisoned(value: Any) -> Any:
    """The same JSON value with a hostile end to each of its texts, keys included."""
    if isinstance(value, dict):
        fixed = {"focal", "cells", "parameters", "code", "machines", "cell_minutes", "machine", "versions", *FIELDS}
        return {key if key in fixed else key + HOSTILE: poisoned(inside) for key, inside in value.items()}
    if isinstance(value, list):
        return [poisoned(inside) for inside in value]
    return value + HOSTILE if isinstance(value, str) else value


FIELDS = {
    *("paper", "id", "where", "statement", "criterion", "published", "profile", "value", "sd", "low", "high", "n"),
    *("unit", "verdict", "note", "stage", "cell", "inputs", "result", "fingerprint", "project_seed", "seed"),
}


def test_hostile_text_in_any_file_of_results_does_not_act_on_a_page(tmp_path: Path) -> None:
    results = write_results(tmp_path, {})
    sound = {path.name: Acting(path.read_text()) for path in pages(results)}
    for path in results.rglob("*.json"):
        path.write_text(json.dumps(poisoned(json.loads(path.read_text()))))
    for path in results.rglob("*.csv"):
        table = pd.read_csv(path)
        texts = table.select_dtypes(exclude="number").columns
        table[texts] = table[texts].astype(str) + HOSTILE
        table.rename(columns={"method": f"method{HOSTILE}"}).to_csv(path, index=False)
    notebook = results / "toy/focal/notebook.ipynb"
    notebook.write_text(nbformat.writes(poisoned_notebook(nbformat.read(notebook, as_version=4))))
    drawing = results / "toy/focal/figures/figure-1.svg"
    drawing.write_text(drawing.read_text().replace("<path", f"{SCRIPT}<path onload='alert(1)'"))
    for path in pages(results):
        page = Acting(path.read_text())
        assert page.handlers == [], path
        assert page.scripts == sound[path.name].scripts, path
        assert not [address for address in page.addresses if address.lower().startswith("javascript:")], path
        assert page.tags <= {tag for each in sound.values() for tag in each.tags} | {"em", "strong"}, path
    assert HOSTILE in Acting((results / "index.html").read_text()).text


def pages(results: Path) -> list[Path]:
    write_report(results)
    return sorted(results.rglob("*.html"))


def poisoned_notebook(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    for cell in notebook.cells:
        cell.source += f"\n\n{HOSTILE}\n\n[a link](javascript:alert(1))"
        for output in cell.get("outputs", []):
            for kind in ("text/html", "text/markdown"):
                if kind in output.data:
                    output.data[kind] += f"\n\n{HOSTILE}\n\n[a link](javascript:alert(1))"
    return notebook


# ---- files of ten gigabytes

SIZE = 10 * GIB
PROGRAM = """
import json, sys
from pathlib import Path
from softmax_temperature.data.image_files import inspect_image
from softmax_temperature.data.jsonl_texts import JsonlTexts
from softmax_temperature.data.npz_archives import NpzArchive
from softmax_temperature.data.parallel_texts import ParallelTexts
from softmax_temperature.networks.backbones.weights import read_weights
from softmax_temperature.runner.errors import InputError
from softmax_temperature.tools.logits_archive import LogitsArchive, LogitsFiles
from softmax_temperature.tools.suggest.study import read_study
from softmax_temperature.papers.shared.tables import read_csv
from softmax_temperature.data.word_vectors import read_word_vectors
from softmax_temperature.runner.yaml_files import read_yaml

here = Path()
labels = lambda ending: lambda: LogitsArchive.open(LogitsFiles(here / "logits.npy", here / f"labels{ending}"))
readers = {
    **{f"labels{ending}": labels(ending) for ending in (".npy", ".npz", ".safetensors", ".csv", ".parquet")},
    "birds.npz": lambda: NpzArchive(here, "birds").read(),
    "talk.jsonl": lambda: JsonlTexts(here, "talk").read(),
    "train.en": lambda: ParallelTexts(here, ".", ("en", "de")).read("train"),
    "vectors.txt": lambda: read_word_vectors(here / "vectors.txt", ["the"], width=3),
    "a.png": lambda: inspect_image(here / "a.png", size_limit=None),
    "params.yaml": lambda: read_yaml(here / "params.yaml"),
    "heuristic.json": lambda: read_study(here / "heuristic.json"),
    "table.csv": lambda: read_csv(here / "table.csv"),
    "weights.safetensors": lambda: read_weights(here / "weights.safetensors"),
}
peak = lambda: next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) // 1024
found = {}
for sized in (False, True):  # First small ones, so that what is imported late does not count.
    for name, read in readers.items():
        before = peak()
        if sized:
            (here / name).open("r+b").truncate(int(sys.argv[1]))
        try:
            read()
            said = None
        except InputError as error:
            said = str(error)
        if sized:
            found[name] = [said, peak() - before]
print(json.dumps(found))
"""
MEBIBYTES = 192
"""What reading a file of ten gigabytes may add to a process: the longest line of texts is two thirds of it."""


def test_files_of_ten_gigabytes_are_refused_in_bounded_memory(tmp_path: Path) -> None:
    """Zeros, most of them behind a header that promises as many labels."""
    many = (SIZE - 128) // 8
    np.save(tmp_path / "logits.npy", values()["logits"])
    header = io.BytesIO()
    fields: Any = {"descr": "<i8", "fortran_order": False, "shape": (many,)}
    np.lib.format.write_array_header_1_0(header, fields)
    (tmp_path / "labels.npy").write_bytes(header.getvalue())
    promised = json.dumps({"labels": {"dtype": "I64", "shape": [many], "data_offsets": [0, many * 8]}}).encode()
    promised += b" " * (120 - len(promised))
    (tmp_path / "labels.safetensors").write_bytes(len(promised).to_bytes(8, "little") + promised)
    (tmp_path / "train.de").write_text("ein Satz\n")
    names = ("labels.npz", "labels.csv", "labels.parquet", "birds.npz", "talk.jsonl", "train.en", "vectors.txt")
    for name in (*names, "a.png", "params.yaml", "heuristic.json", "table.csv", "weights.safetensors"):
        (tmp_path / name).touch()
    found = in_another_process(tmp_path, PROGRAM, str(SIZE))
    assert {name: said for name, (said, _) in found.items() if said is None or "\n" in said} == {}
    assert {name: grown for name, (_, grown) in found.items() if grown > MEBIBYTES} == {}
    for ending in (".npy", ".safetensors"):
        assert f"labels has shape ({many},) for 12 rows of logits" in found[f"labels{ending}"][0]

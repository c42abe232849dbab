"""Tiny archives in the published formats are converted to data sets that load."""

import io
import json
import pickle
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from softmax_temperature.data.conversion import CONVERSIONS, convert
from softmax_temperature.data.gaussian_noise import archive_digest
from softmax_temperature.data.segmentation import Form, read_segmentation
from softmax_temperature.data.sources import find_archive
from softmax_temperature.runner.errors import InputError
from softmax_temperature.tools import cli

POST = "From: a@b.c\nSubject: éa\n\n{} body\n\nsecond part\n"


def tar(path: Path, files: Mapping[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def zipped(path: Path, files: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read(name: str, root: Path) -> Any:
    archive = find_archive(name, root=root)
    assert archive is not None
    return archive.read()


def test_imdb(tmp_path: Path) -> None:
    files = {
        f"aclImdb/{part}/{kind}/{number}_{rating}.txt": f"{part} {kind} {number} é"
        for part in ("test", "train")
        for kind, rating in (("pos", 9), ("neg", 2))
        for number in (10, 9)
    }
    others = {
        "aclImdb/imdb.vocab": "the",
        "aclImdb/train/unsup/0_0.txt": "no label",
        "aclImdb/train/urls_pos.txt": "http://",
    }
    contents = {name: text.encode() for name, text in {**others, **files}.items()}
    archive = tar(tmp_path / "aclImdb_v1.tar.gz", contents)
    assert convert("imdb", [archive], tmp_path) == {"train": 4, "test": 4}
    written = rows(tmp_path / "imdb.jsonl")
    assert written[0] == {"split": "train", "label": 0, "text": "train neg 9 é"}
    assert [row["label"] for row in written] == [0, 0, 1, 1] * 2
    assert [row["text"].split()[2] for row in written] == ["9", "10"] * 4
    raw = read("imdb", tmp_path)
    assert raw.class_names == ("0", "1")
    assert len(raw.train.labels) == len(raw.test.labels) == 4


def test_newsgroups_by_date(tmp_path: Path) -> None:
    files = {
        f"20news-bydate-{part}/{group}/{number}": POST.format(number).encode("latin-1")
        for part in ("train", "test")
        for group in ("sci.space", "alt.atheism")
        for number in (2, 1)
    }
    archive = tar(tmp_path / "20news-bydate.tar.gz", files)
    assert convert("newsgroups20", [archive], tmp_path) == {"train": 4, "test": 4}
    raw = read("newsgroups20", tmp_path)
    assert raw.class_names == ("alt.atheism", "sci.space")
    assert raw.train.samples[0] == "1 body\n\nsecond part\n"


def test_all_newsgroups_have_every_fifth_file_for_test(tmp_path: Path) -> None:
    # The published archive has 19 groups of 1,000 files and one of 997.
    files = {
        f"20_newsgroups/{group}/{number}": POST.format(number).encode("latin-1")
        for group, count in (("b", 10), ("a", 9))
        for number in range(100, 100 + count)
    }
    archive = tar(tmp_path / "20news-19997.tar.gz", files)
    counts = convert("newsgroups20_all", [archive], tmp_path)
    assert counts == {"train": 16, "test": 3}
    written = rows(tmp_path / "newsgroups20_all.jsonl")
    test = [row["text"][:3] for row in written if row["split"] == "test"]
    assert test == ["104", "104", "109"]


def test_sst_trees(tmp_path: Path) -> None:
    trees = {
        "train": "(3 (2 A) (4 joy))\n(1 (2 A) (0 bore))\n",
        "dev": "(4 (2 A) (4 hit))\n",
        "test": "(0 (2 A) (0 miss))\n",
    }
    files = {f"trees/{part}.txt": text.encode() for part, text in trees.items()}
    archive = zipped(tmp_path / "trainDevTestTrees_PTB.zip", files)
    counts = convert("sst_trees", [archive], tmp_path)
    assert counts == {"train": 2, "dev": 1, "test": 1}
    raw = read("sst_trees", tmp_path)
    assert raw.form == "trees"
    assert raw.train.labels.tolist() == [1, 0]
    assert raw.validation.labels.tolist() == [1]


def png(labels: NDArray[np.uint8]) -> bytes:
    file = io.BytesIO()
    Image.fromarray(labels).save(file, "png")
    return file.getvalue()


def test_ade20k(tmp_path: Path) -> None:
    labels = np.zeros((16, 32), np.uint8)
    labels[:, 16:] = 150
    files = {"ADEChallengeData2016/sceneCategories.txt": b"a"}
    for part, stem in (("training", "ADE_train_1"), ("validation", "ADE_val_1")):
        picture = io.BytesIO()
        Image.new("RGB", (32, 16), "red").save(picture, "jpeg")
        folder = "ADEChallengeData2016"
        files[f"{folder}/images/{part}/{stem}.jpg"] = picture.getvalue()
        files[f"{folder}/annotations/{part}/{stem}.png"] = png(labels)
    archive = zipped(tmp_path / "ADEChallengeData2016.zip", files)
    assert convert("ade20k", [archive], tmp_path) == {"train": 1, "test": 1}
    form = Form(classes=150, void=255, crop=None, size=None)
    parts = read_segmentation("ade20k", form, root=tmp_path, seed=0)
    assert parts["train"].data.shape == (1, 3, 16, 32)
    # Label 0 is void; labels 1 to 150 become 0 to 149.
    assert set(parts["test"].labels[0, 0, :16].tolist()) == {255}
    assert set(parts["test"].labels[0, 0, 16:].tolist()) == {149}


def batches() -> dict[str, dict[str, Any]]:
    """Two training batches and a validation part; each row has the red values first."""
    generator = np.random.default_rng(0)
    parts = {}
    for name, labels in (
        ("train_data_batch_1", [2, 1]),
        ("train_data_batch_2", [1]),
        ("val_data", [2]),
    ):
        data = generator.integers(256, size=(len(labels), 3 * 64 * 64), dtype=np.uint8)
        parts[name] = {"data": data, "labels": labels}
        if name != "val_data":
            parts[name]["mean"] = data.mean(axis=0)
    return parts


@pytest.mark.parametrize("form", ["pickle", "npz"])
def test_imagenet64(form: str, tmp_path: Path) -> None:
    parts = batches()
    archives = []
    for archive, names in (
        ("Imagenet64_train_part1.zip", ["train_data_batch_1"]),
        ("Imagenet64_train_part2.zip", ["train_data_batch_2"]),
        ("Imagenet64_val.zip", ["val_data"]),
    ):
        files = {}
        for name in names:
            file = io.BytesIO()
            if form == "pickle":
                pickle.dump(parts[name], file)
                files[name] = file.getvalue()
            else:
                np.savez(file, **parts[name])
                files[f"{name}.npz"] = file.getvalue()
        archives.append(zipped(tmp_path / archive, files))
    assert convert("imagenet64", archives, tmp_path) == {"train": 3, "test": 1}
    raw = read("imagenet64", tmp_path)
    assert raw.train.labels.tolist() == [1, 0, 0]
    assert raw.test.labels.tolist() == [1]
    first = parts["train_data_batch_1"]["data"][0].reshape(3, 64, 64)
    assert np.array_equal(raw.train.samples[0], first.transpose(1, 2, 0))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [*(archive.name for archive in archives), "imagenet64.npz"]
    )


def test_cifar10_c(tmp_path: Path) -> None:
    files = {
        f"CIFAR-10-C/{name}.npy": name.encode()
        for name in ("fog", "gaussian_noise", "labels")
    }
    archive = tar(tmp_path / "CIFAR-10-C.tar", files)
    convert("CIFAR-10-C", [archive], tmp_path)
    assert archive_digest(tmp_path)
    assert sorted(path.name for path in (tmp_path / "CIFAR-10-C").iterdir()) == [
        "gaussian_noise.npy",
        "labels.npy",
    ]


class Attack:
    """An object that runs a function when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("hacked",))


def test_a_pickle_that_calls_anything_but_arrays_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = pickle.dumps({"data": Attack(), "labels": [1]})
    archive = zipped(tmp_path / "a.zip", {"train_data_batch_1": content})
    with pytest.raises(InputError, match=r"it calls builtins\.print"):
        convert("imagenet64", [archive], tmp_path)
    assert not capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


@pytest.mark.parametrize("name", CONVERSIONS)
def test_a_wrong_archive_is_refused_and_nothing_is_written(
    name: str, tmp_path: Path
) -> None:
    other = zipped(tmp_path / "other.zip", {"read/me.txt": b"hello"})
    damaged = tmp_path / "damaged.tar.gz"
    damaged.write_bytes(b"not an archive")
    for archive in (other, damaged):
        with pytest.raises(InputError, match=r"is not the published .* Give .*\."):
            convert(name, [archive], tmp_path / "root")
    root = tmp_path / "root"
    assert not root.exists() or not list(root.iterdir())


def test_the_command_says_what_it_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trees = {f"trees/{part}.txt": b"(3 (2 A) (4 joy))" for part in ("train", "dev")}
    trees["trees/test.txt"] = b"(1 (2 A) (0 bore))"
    archive = zipped(tmp_path / "trees.zip", trees)
    for arguments, code, text in (
        (["sst_trees", str(archive)], 0, "sst_trees: 1 train, 1 dev, 1 test"),
        (["sst_tree", str(archive)], 2, "Did you mean 'sst_trees'?"),
    ):
        command = ["softmax-temperature", "convert", *arguments]
        monkeypatch.setattr(sys, "argv", [*command, "--root", str(tmp_path)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert (ended.value.code or 0) == code
        printed = capsys.readouterr()
        assert text in printed.out + printed.err

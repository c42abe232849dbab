"""Sources are searched in a fixed order; an error says which file to put where."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from softmax_temperature.data.archives import JsonlArchive, NpzArchive
from softmax_temperature.data.catalogue import CATALOGUE
from softmax_temperature.data.class_folders import ClassFolders
from softmax_temperature.data.sources import (
    find_archive,
    find_dataset,
    is_built_in,
    require_dataset,
)
from softmax_temperature.data.torchvision_sets import torchvision_names
from softmax_temperature.runner.errors import InputError, MissingInput

BY_HAND = [
    "photoart",
    "pinterest_faces_105",
    "cub200",
    "imagenet_r",
    "fss1000",
    "imagenet_mini",
    "things",
]
PAPER = ["mnist", "cifar10", "dtd", "cifar100", "caltech256", *BY_HAND]


def find(name: str, root: Path, download: bool = False) -> Any:
    return find_dataset(name, root=root, download=download, seed=0)


def test_arrays_come_before_texts_texts_before_folders_and_folders_before_torchvision(
    write_npz: Any, write_folders: Any, write_jsonl: Any, tmp_path: Path
) -> None:
    # If the published archive of IMDB is unpacked, its folders look like class folders
    # of images.
    for name in ("mnist", "imdb"):
        write_folders(name)
        assert isinstance(find_archive(name, root=tmp_path), ClassFolders)
        assert find(name, tmp_path).source["how"] == "class folders in data.root"
        write_jsonl(
            *({"split": "train", "label": label, "text": "words"} for label in "ab"),
            name=name,
        )
        assert isinstance(find_archive(name, root=tmp_path), JsonlArchive)
        write_npz(name)
        assert isinstance(find_archive(name, root=tmp_path), NpzArchive)
        assert find(name, tmp_path).source == {
            "how": "archive in data.root",
            "file": f"{name}.npz",
        }


@pytest.mark.parametrize(
    ("name", "classes"), [("digits", 10), ("glyphs-10", 10), ("phrases", 2)]
)
def test_nothing_in_the_root_changes_a_built_in_data_set(
    write_npz: Any, write_jsonl: Any, tmp_path: Path, name: str, classes: int
) -> None:
    write_npz(name)
    write_jsonl(b"not even JSON", name=name)
    assert find_archive(name, root=tmp_path) is None
    assert len(find(name, tmp_path).class_names) == classes


@pytest.mark.parametrize("name", [name for name in CATALOGUE if not is_built_in(name)])
def test_every_listed_data_set_says_what_to_put_where(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(InputError) as caught:
        find(name, tmp_path)
    message, place = str(caught.value), str(tmp_path / name)
    images = (f"{place}.npz", "x_train", f"{place}/train/CLASS/")
    for needed in (
        f"data set {name}",
        *((f"{place}.jsonl",) if CATALOGUE[name].keys else images),
    ):
        assert needed in message
    if name in torchvision_names():
        assert "data.download: true" in message
    else:
        assert f"{CATALOGUE[name].classes:,} classes" in message
        with pytest.raises(InputError, match="Get "):
            find(name, tmp_path, download=True)


def test_class_counts_are_the_papers(project_root: Path) -> None:
    with (project_root / "data" / "published" / "classifier_temperature.csv").open(
        newline=""
    ) as file:
        counts = [
            float(row["value"])
            for row in csv.DictReader(file)
            if row["metric"] == "classes"
        ]
    # The paper uses DTD (47 classes) and Caltech-256 (256 classes); its names for them
    # differ from ours only in case and hyphens.
    assert sorted(counts) == sorted(CATALOGUE[name].classes for name in PAPER)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("mnits", "or write 'mnist'"),
        ("CIFAR10", "or write 'cifar10'"),
        ("glyph-100", "or write 'glyphs-100'"),
        # The first name is that of a user's own data set, the second that of a public
        # data set that this machine does not have.
        ("my-birds", "Put one of them there; `make data`"),
        ("imagenette", "Put one of them there; `make data`"),
    ],
)
def test_a_missing_data_set_is_named_with_its_folder_and_files(
    tmp_path: Path, name: str, remedy: str
) -> None:
    for look in (
        lambda: find(name, tmp_path),
        lambda: require_dataset(name, root=tmp_path),
    ):
        with pytest.raises(MissingInput) as caught:
            look()
        message = str(caught.value)
        assert message.startswith(f"data set {name}: not found in {tmp_path}")
        assert f"{tmp_path / name}.npz" in message
        assert f"{tmp_path / name}/train/CLASS/" in message
        assert remedy in message


@pytest.mark.parametrize("ending", ["", ".npz", ".jsonl"])
def test_a_link_that_leads_nowhere_is_named(tmp_path: Path, ending: str) -> None:
    (tmp_path / f"birds{ending}").symlink_to(tmp_path / "unmounted" / "birds")
    with pytest.raises(
        MissingInput, match=f"birds{ending} is a link to a file or fold"
    ):
        find("birds", tmp_path)


def test_a_name_that_is_a_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"'\.\./birds' is not a valid name of a data set"
    ):
        find("../birds", tmp_path)


def test_digits_are_scikit_learns_on_the_scale_of_bytes() -> None:
    raw, original = find("digits", Path("nowhere")), load_digits()
    assert np.shape(raw.train.samples) == (1797, 8, 8, 1)
    assert (raw.train.labels == original.target).all()
    np.testing.assert_allclose(
        np.asarray(raw.train.samples)[..., 0], original.images * 255 / 16, atol=0.5
    )
    assert raw.test is None

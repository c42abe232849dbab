"""Archives of arrays are read exactly, and every fault is one error that names the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softmax_temperature.data.npz_archives import NpzArchive
from softmax_temperature.data.raw import RawDataset
from softmax_temperature.runner.errors import InputError


def read(path: Path) -> RawDataset:
    return NpzArchive(path.parent, path.stem).read()


def test_arrays_are_taken_as_they_are(write_npz: Any) -> None:
    path = write_npz(class_names=np.array(["crow", "wren", "tit"]))
    raw, stored = read(path), np.load(path)
    assert raw.class_names == ("crow", "wren", "tit")
    for part, ending in ((raw.train, "train"), (raw.test, "test")):
        assert part is not None
        assert np.array_equal(part.samples, stored[f"x_{ending}"])
        assert np.array_equal(part.labels, stored[f"y_{ending}"])


def test_grey_images_may_lack_the_last_dimension(write_npz: Any) -> None:
    images = np.zeros((12, 5, 4), dtype=np.uint8)
    raw = read(write_npz(x_train=images, x_test=images[:6]))
    assert np.shape(raw.train.samples) == (12, 5, 4, 1)


def test_without_names_the_distinct_labels_are_the_classes(write_npz: Any) -> None:
    raw = read(write_npz(y_train=np.array([5, 9, 30] * 4), y_test=np.array([30, 9, 30, 9, 30, 9], dtype=np.uint8)))
    assert raw.class_names == ("5", "9", "30")
    assert raw.test is not None
    assert raw.test.labels.tolist() == [2, 1, 2, 1, 2, 1]


def test_a_last_class_that_is_absent_from_test_still_counts(write_npz: Any) -> None:
    raw = read(write_npz(y_test=np.zeros(6, dtype=np.int64)))
    assert len(raw.class_names) == 3


def test_without_training_images_the_classes_are_those_of_the_test_part(write_npz: Any) -> None:
    raw = read(
        write_npz(x_train=np.zeros((0, 5, 4, 3), dtype=np.uint8), y_train=np.zeros(0), y_test=np.array([7, 5] * 3))
    )
    assert raw.class_names == ("5", "7")
    assert (len(raw.train.labels), raw.test and raw.test.labels.tolist()) == (0, [1, 0] * 3)


IMAGES = np.zeros((12, 5, 4, 3), dtype=np.uint8)
FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "a missing array": ({"y_test": None}, "has no y_test .it holds: x_train, y_train, x_test"),
    "float images": ({"x_train": IMAGES / 255}, "x_train is float64, not uint8"),
    "channels first": ({"x_train": IMAGES.transpose(0, 3, 1, 2)}, r"x_train has shape \(12, 3, 5, 4\)"),
    "four channels": ({"x_train": np.zeros((12, 5, 4, 4), dtype=np.uint8)}, r"x_train has shape"),
    "flat images": ({"x_train": IMAGES.reshape(12, -1)}, r"x_train has shape \(12, 60\)"),
    "no test images": ({"x_test": IMAGES[:0], "y_test": np.zeros(0, dtype=int)}, r"x_test has shape \(0, 5, 4, 3\)"),
    "two sizes": ({"x_train": IMAGES[:, :4]}, r"differ in image shape: \(4, 4, 3\) and \(5, 4, 3\)"),
    "fewer labels": ({"y_train": np.arange(11) % 3}, r"y_train has shape \(11,\) for 12 images"),
    "labels in a column": ({"y_train": np.zeros((12, 1), dtype=np.int64)}, r"y_train has shape \(12, 1\)"),
    "float labels": ({"y_train": np.zeros(12)}, "y_train is float64, not integers"),
    "one class": ({"y_train": np.ones(12, dtype=int), "y_test": np.ones(6, dtype=int)}, "all images are of one class"),
    "an unknown test class": (
        {"y_test": np.array([0, 1, 2, 0, 1, 7])},
        r"y_test has classes that y_train has not: \[7\]",
    ),
    "objects": ({"x_train": np.array([None] * 12, dtype=object)}, "Object arrays cannot be loaded"),
    "too few names": ({"class_names": np.array(["crow", "wren"])}, "labels from 0 to 2, class_names has 2 names"),
    "a negative label": (
        {"y_test": np.array([0, -1, 2, 0, 1, 2]), "class_names": np.array(["a", "b", "c"])},
        "y_test has labels from -1 to 2",
    ),
    "a named class without images": ({"class_names": np.array(["a", "b", "c", "d"])}, "y_train has no image of d"),
    "a name twice": ({"class_names": np.array(["a", "b", "a"])}, "the same name twice"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_error_that_names_file_and_form(write_npz: Any, fault: str) -> None:
    replaced, message = FAULTS[fault]
    path = write_npz(**replaced)
    with pytest.raises(InputError, match=message) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))
    assert "Save it with numpy.savez" in caught.value.remedy


@pytest.mark.parametrize("kept", [0, 10, -100])
def test_a_truncated_archive_is_refused(write_npz: Any, kept: int) -> None:
    path = write_npz()
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(InputError, match="not readable as an npz archive"):
        read(path)


def test_a_single_array_is_not_an_archive(tmp_path: Path) -> None:
    with (tmp_path / "birds.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(InputError, match="not readable as an npz archive"):
        read(tmp_path / "birds.npz")

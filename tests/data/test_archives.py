"""Archives of arrays, texts and trees are read exactly, and every fault is one error that names the file."""

from typing import Any

import numpy as np
import pytest

from softmax_temperature.data.archives import JsonlArchive, NpzArchive
from softmax_temperature.runner.errors import InputError

IMAGES = np.zeros((12, 5, 4, 3), dtype=np.uint8)


def test_arrays_are_taken_as_they_are(write_npz: Any) -> None:
    path = write_npz(class_names=np.array(["crow", "wren", "tit"]))
    raw, stored = NpzArchive(path).read(), np.load(path)
    assert raw.class_names == ("crow", "wren", "tit")
    for part, ending in ((raw.train, "train"), (raw.test, "test")):
        assert part is not None
        assert np.array_equal(part.samples, stored[f"x_{ending}"])
        assert np.array_equal(part.labels, stored[f"y_{ending}"])


def test_without_names_the_distinct_labels_are_the_classes(write_npz: Any) -> None:
    path = write_npz(y_train=np.array([5, 9, 30] * 4), y_test=np.array([30, 9] * 3, dtype=np.uint8))
    raw = NpzArchive(path).read()
    assert raw.class_names == ("5", "9", "30")
    assert raw.test is not None
    assert raw.test.labels.tolist() == [2, 1] * 3


def test_without_training_images_the_classes_are_those_of_the_test_part(write_npz: Any) -> None:
    raw = NpzArchive(write_npz(x_train=IMAGES[:0], y_train=np.zeros(0), y_test=np.array([7, 5] * 3))).read()
    assert raw.class_names == ("5", "7")
    assert (len(raw.train.labels), raw.test and raw.test.labels.tolist()) == (0, [1, 0] * 3)


ARRAY_FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "a missing array": ({"y_test": None}, "has no y_test .it holds: x_train, y_train, x_test"),
    "float images": ({"x_train": IMAGES / 255}, "x_train is float64, not uint8"),
    "no test images": ({"x_test": IMAGES[:0], "y_test": np.zeros(0, dtype=int)}, r"x_test has shape \(0, 5, 4, 3\)"),
    "two sizes": ({"x_train": IMAGES[:, :4]}, r"differ in image shape: \(4, 4, 3\) and \(5, 4, 3\)"),
    "fewer labels": ({"y_train": np.arange(11) % 3}, r"y_train has shape \(11,\) and is int64, for 12 images"),
    "float labels": ({"y_train": np.zeros(12)}, r"y_train has shape \(12,\) and is float64"),
    "one class": ({"y_train": np.ones(12, dtype=int), "y_test": np.ones(6, dtype=int)}, "all images are of one class"),
    "an unknown test class": ({"y_test": np.array([0, 1, 2, 0, 1, 7])}, "y_test has label 7, .* none of 3 classes"),
    "a class without images": ({"class_names": np.array(["a", "b", "c", "d"])}, "y_train has no image of d"),
}


@pytest.mark.parametrize(("replaced", "message"), ARRAY_FAULTS.values(), ids=ARRAY_FAULTS)
def test_a_fault_of_arrays_names_file_and_form(write_npz: Any, replaced: dict[str, Any], message: str) -> None:
    path = write_npz(**replaced)
    with pytest.raises(InputError, match=message) as caught:
        NpzArchive(path).read()
    assert caught.value.where == str(path)
    assert "Save it with numpy.savez" in caught.value.remedy


def test_a_truncated_archive_is_refused(write_npz: Any) -> None:
    path = write_npz()
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match="not readable as an npz archive"):
        NpzArchive(path).read()


def row(label: Any = 0, text: Any = "words", split: Any = "train", **more: Any) -> dict[str, Any]:
    return {"split": split, "label": label, "text": text, **more}


def tree(root: int, words: str = "so so", split: Any = "train") -> dict[str, Any]:
    first, second = words.split()
    return {"split": split, "tree": f"({root} (2 {first}) (3 {second}))"}


BOTH = (row(0, "no"), row(1, "yes"))


@pytest.mark.parametrize("validation", ["dev", "val", "valid", "validation"])
def test_parts_are_told_apart_and_keep_their_order(write_jsonl: Any, validation: str) -> None:
    rows = [row(1, "b", "test"), row(0, "a"), row(1, "ü 漢 \u2028 🙂"), row(0, "c\n\td", validation)]
    raw = JsonlArchive(write_jsonl(*rows, row(1, "e", source="web"))).read()
    assert (raw.class_names, raw.form) == (("0", "1"), "texts")
    assert raw.train.samples == ("a", "ü 漢 \u2028 🙂", "e")
    assert raw.train.labels.tolist() == [0, 1, 1]
    assert [part and part.samples for part in (raw.validation, raw.test)] == [("c\n\td",), ("b",)]
    assert raw.source == {"how": "archive in data.root", "file": "talk.jsonl", "empty_texts_left_out": 0}


def test_names_are_classes_in_the_order_of_the_alphabet(write_jsonl: Any) -> None:
    raw = JsonlArchive(write_jsonl(row("wren"), row("crow"), row("tit"), row("crow", split="test"))).read()
    assert raw.class_names == ("crow", "tit", "wren")
    assert raw.train.labels.tolist() == [2, 0, 1]
    assert raw.test is not None
    assert raw.test.labels.tolist() == [0]


def test_empty_texts_are_left_out_and_counted(write_jsonl: Any) -> None:
    raw = JsonlArchive(write_jsonl(*BOTH, row(1, "\n\u00a0"))).read()
    assert (len(raw.train.samples), raw.source["empty_texts_left_out"]) == (2, 1)


LINE_FAULTS: dict[str, tuple[Any, str]] = {
    "no JSON": (b'{"split": "train", "label": 0, "text": ', r"is not JSON in UTF-8 \(.*column"),
    "a list": ([1, 2], "has no label, text and split of the stated form"),
    "no text": ({"split": "train", "label": 0}, r"has no label, text and split of the stated form \('text'\)"),
    "an unknown split": (row(split="extra"), r"has no label, text and split of the stated form \('extra'\)"),
    "a text that is a number": (row(text=3), "the text is not a string"),
    "Latin-1": (b'{"split": "train", "label": 0, "text": "K\xe4se"}', "is not JSON in UTF-8 .*0xe4 in position 41"),
    "a label that training has not": (row(2, split="test"), "the label is 2, not one of 2 classes"),
}


@pytest.mark.parametrize(("content", "message"), LINE_FAULTS.values(), ids=LINE_FAULTS)
def test_a_fault_of_a_line_names_file_and_line(write_jsonl: Any, content: Any, message: str) -> None:
    path = write_jsonl(*BOTH, content, row(1, "more"))
    with pytest.raises(InputError, match=message) as caught:
        JsonlArchive(path).read()
    assert caught.value.where == f"{path}, line 3"
    assert "Write one JSON object per line" in caught.value.remedy


LABELS: dict[str, tuple[str, list[Any], str]] = {
    "a gap": ("talk", [row(0), row(1), row(10**30)], "are not all of 0 to 10+"),
    "one class": ("talk", [row("a"), row("a")], "talk.jsonl: all training texts are of one class"),
    "two kinds": ("talk", [row("a"), row(0)], "some labels are numbers and others names"),
    "nothing": ("talk", [], "talk.jsonl: has no row of the split train"),
    "one class of trees": (
        "talk",
        [tree(1), tree(2), tree(4, split="test")],
        "has not both negative and positive sentences",
    ),
    "a malformed tree": ("talk", [tree(1), {"split": "dev", "tree": "(3 (2 a)"}], "line 2: the tree is malformed"),
}


@pytest.mark.parametrize(("name", "rows", "message"), LABELS.values(), ids=LABELS)
def test_labels_that_are_no_classes_are_refused(write_jsonl: Any, name: str, rows: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        JsonlArchive(write_jsonl(*rows, name=name)).read()


def test_roots_become_two_classes_and_neutral_sentences_are_counted(write_jsonl: Any) -> None:
    rows = [tree(label, f"word {label}") for label in (4, 0, 2, 1, 3)]
    raw = JsonlArchive(write_jsonl(*rows, tree(2, split="test"), tree(0, split="test"), tree(3, split="dev"))).read()
    assert (raw.class_names, raw.form) == (("negative", "positive"), "trees")
    assert raw.train.samples == tuple(tree(label, f"word {label}")["tree"] for label in (4, 0, 1, 3))
    assert raw.train.labels.tolist() == [1, 0, 0, 1]
    assert [part and part.labels.tolist() for part in (raw.validation, raw.test)] == [[1], [0]]
    assert raw.source == {"how": "archive in data.root", "file": "talk.jsonl", "neutral_sentences_left_out": 2}

"""Texts and trees of JSON lines are read exactly, and every fault is one error that names the file and the row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from softmax_temperature.data.jsonl import JsonlArchive
from softmax_temperature.data.raw import RawDataset
from softmax_temperature.runner.artifacts import digest_of_file
from softmax_temperature.runner.errors import InputError


def row(label: Any = 0, text: Any = "words", split: Any = "train", **more: Any) -> dict[str, Any]:
    return {"split": split, "label": label, "text": text, **more}


def tree(root: int, words: str = "so so", split: Any = "train", **more: Any) -> dict[str, Any]:
    first, second = words.split()
    return {"split": split, "tree": f"({root} (2 {first}) (3 {second}))", **more}


BOTH = (row(0, "no"), row(1, "yes"))
BOTH_TREES = (tree(1, "bad film"), tree(4, "good film"))


def read(path: Path) -> RawDataset:
    return JsonlArchive(path.parent, path.stem).read()


def test_parts_are_told_apart_and_keep_their_order(write_jsonl: Any) -> None:
    rows = [row(1, "b", "test"), row(0, "a"), row(1, "ü 漢 \u2028 🙂"), row(0, "c\n\td", "dev")]
    raw = read(write_jsonl(*rows, row(1, "e", source="web")))
    assert raw.class_names == ("0", "1")
    assert raw.form == "texts"
    assert raw.train.samples == ("a", "ü 漢 \u2028 🙂", "e")
    assert raw.train.labels.tolist() == [0, 1, 1]
    assert raw.validation is not None
    assert raw.validation.samples == ("c\n\td",)
    assert raw.test is not None
    assert raw.test.samples == ("b",)
    assert raw.source == {"how": "archive in data.root", "file": "talk.jsonl", "empty_texts_left_out": 0}


def test_pooled_texts_are_one_train_part(write_jsonl: Any) -> None:
    pooled = read(write_jsonl(row(1, "t", "test"), *BOTH, row(0, "v", "dev"))).pooled()
    assert pooled.train.samples == ("no", "yes", "v", "t")
    assert pooled.train.labels.tolist() == [0, 1, 0, 1]
    assert (pooled.validation, pooled.test, pooled.source["pooled"]) == (None, None, True)


@pytest.mark.parametrize("name", ["dev", "val", "valid", "validation"])
def test_a_validation_part_has_many_names(write_jsonl: Any, name: str) -> None:
    raw = read(write_jsonl(*BOTH, row(1, "held out", name)))
    assert raw.validation is not None
    assert raw.validation.samples == ("held out",)
    assert raw.test is None


def test_names_are_classes_in_the_order_of_the_alphabet(write_jsonl: Any) -> None:
    raw = read(write_jsonl(row("wren"), row("crow"), row("tit"), row("crow", split="test")))
    assert raw.class_names == ("crow", "tit", "wren")
    assert raw.train.labels.tolist() == [2, 0, 1]
    assert raw.test is not None
    assert raw.test.labels.tolist() == [0]


def test_a_last_line_without_a_line_break_and_carriage_returns_are_read(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_bytes(b"\r\n".join(json.dumps(one).encode() for one in BOTH))
    assert read(path).train.samples == ("no", "yes")
    assert JsonlArchive(tmp_path, "talk").digest() == digest_of_file(path)


def test_empty_texts_of_a_data_set_that_is_known_for_them_are_left_out_and_counted(write_jsonl: Any) -> None:
    groups = [row(f"group {number}", f"text {number}") for number in range(20)]
    raw = read(write_jsonl(*groups, row("group 3", "\n"), row("group 4", "last"), name="newsgroups20"))
    assert raw.train.samples == (*(f"text {number}" for number in range(20)), "last")
    assert raw.source["empty_texts_left_out"] == 1


FAULTS: dict[str, tuple[Any, str]] = {
    "no JSON": (b'{"split": "train", "label": 0, "text": ', r"is not JSON in UTF-8 \(.*column"),
    "an empty line": (b"", "is not JSON"),
    "a list": ([1, 2], r"is \[1, 2\], not a JSON object"),
    "no text": ({"split": "train", "label": 0}, r"has no text \(it holds: split, label\)"),
    "nothing": ({}, r"has no split, label, text \(it holds: nothing\)"),
    "an unknown split": (row(split="extra"), "the split is 'extra', not one of train, test, dev"),
    "a split that is no name": (row(split=["train"]), r"the split is \['train'\], not one of"),
    "a text that is a number": (row(text=3), "the text is 3, not a string"),
    "an empty text": (row(text="\n\u00a0"), "the text is empty"),
    "a label that is true": (row(label=True), "the label is True, neither a whole number nor a name"),
    "a label that is a fraction": (row(label=0.5), "the label is 0.5, neither"),
    "a label that is null": (row(label=None), "the label is None, neither"),
    "Latin-1": (b'{"split": "train", "label": 0, "text": "K\xe4se"}', "is not JSON in UTF-8 .*0xe4 in position 41"),
    "a label that training has not": (row(2, split="test"), "the label is 2, not one of 2 classes"),
    "a name among numbers": (row("2", split="test"), "the label is '2', not one of 2 classes of one kind"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_error_that_names_file_and_row(write_jsonl: Any, fault: str) -> None:
    content, message = FAULTS[fault]
    path = write_jsonl(*BOTH, content, row(1, "more"))
    with pytest.raises(InputError, match=message) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}, row 3: ")
    assert "Write one JSON object per line" in caught.value.remedy


LABELS: dict[str, tuple[list[Any], str]] = {
    "a negative number": ([row(0), row(1), row(-1)], "numbers from -1 to 1, must be all of 0 to 2"),
    "a gap": ([row(0), row(1), row(10**30)], "numbers from 0 to 10+, must be all of 0 to 2"),
    "one class": ([row("a"), row("a")], "talk.jsonl: all training texts are of one class"),
    "no training texts": ([row(0, split="test"), row(1, split="test")], "talk.jsonl: has no row of the split train"),
    "nothing": ([], "talk.jsonl: has no row of the split train"),
}


@pytest.mark.parametrize("fault", LABELS)
def test_labels_that_are_no_classes_are_refused(write_jsonl: Any, fault: str) -> None:
    rows, message = LABELS[fault]
    with pytest.raises(InputError, match=message):
        read(write_jsonl(*rows))


def test_more_or_fewer_classes_than_the_catalogue_has_are_refused(write_jsonl: Any) -> None:
    with pytest.raises(InputError, match="the training texts have 21 labels, not 20"):
        read(write_jsonl(*(row(f"group {number}") for number in range(21)), name="newsgroups20"))
    with pytest.raises(InputError, match="numbers from 0 to 2, must be all of 0 to 1"):
        read(write_jsonl(*BOTH, row(2), name="imdb"))


def test_roots_become_two_classes_and_neutral_sentences_are_counted(write_jsonl: Any) -> None:
    rows = [tree(label, f"word {label}") for label in (4, 0, 2, 1, 3)]
    raw = read(write_jsonl(*rows, tree(2, split="test"), tree(0, split="test"), tree(3, split="dev", label=3)))
    assert raw.class_names == ("negative", "positive")
    assert raw.form == "trees"
    assert raw.train.samples == tuple(tree(label, f"word {label}")["tree"] for label in (4, 0, 1, 3))
    assert raw.train.labels.tolist() == [1, 0, 0, 1]
    assert raw.test is not None
    assert raw.test.labels.tolist() == [0]
    assert raw.validation is not None
    assert raw.validation.samples == (tree(3)["tree"],)
    assert raw.source == {"how": "archive in data.root", "file": "talk.jsonl", "neutral_sentences_left_out": 2}


TREE_FAULTS: dict[str, tuple[Any, str]] = {
    "no tree": ({"split": "train", "text": "a"}, r"has no tree \(it holds: split, text\)"),
    "no string": ({"split": "train", "tree": 3}, "the tree is malformed"),
    "malformed": ({"split": "train", "tree": "(3 (2 a) (2 b)"}, "malformed: 1 brackets are not closed"),
    "another label": (tree(1, label=0), "the label is 0, that of the tree's root 1"),
}


@pytest.mark.parametrize(("fault", "says"), TREE_FAULTS.values(), ids=TREE_FAULTS)
def test_a_fault_of_a_tree_names_file_and_row(write_jsonl: Any, fault: Any, says: str) -> None:
    with pytest.raises(InputError, match=rf"talk\.jsonl, row 3: .*{says}"):
        read(write_jsonl(*BOTH_TREES, fault))


@pytest.mark.parametrize("rows", [(tree(4),), (tree(1), tree(4, split="test")), (tree(1), tree(2))])
def test_a_training_part_without_a_class_is_refused(write_jsonl: Any, rows: Any) -> None:
    with pytest.raises(InputError, match=r"talk\.jsonl: has no (positive|negative) sentence of the split train"):
        read(write_jsonl(*rows))

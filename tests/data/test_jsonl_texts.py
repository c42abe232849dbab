"""Texts of JSON lines are read exactly, and every fault is one error that names the file and the row."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from softmax_temperature.data import jsonl_rows, jsonl_texts
from softmax_temperature.data.jsonl_texts import JsonlTexts
from softmax_temperature.data.raw_texts import RawTextPart, RawTextSet
from softmax_temperature.runner.artifacts import digest_of_file
from softmax_temperature.runner.errors import InputError


def row(label: Any = 0, text: Any = "words", split: Any = "train", **more: Any) -> dict[str, Any]:
    return {"split": split, "label": label, "text": text, **more}


BOTH = (row(0, "no"), row(1, "yes"))


def read(path: Path) -> RawTextSet:
    return JsonlTexts(path.parent, path.stem).read()


def texts(part: RawTextPart | None) -> list[str]:
    assert part is not None
    return list(part.texts.read(range(len(part.texts))))


# ---- what is read


def test_parts_are_told_apart_and_keep_their_order(write_jsonl: Any) -> None:
    rows = [row(1, "b", "test"), row(0, "a"), row(1, "ü 漢 \u2028 🙂"), row(0, "c\n\td", "dev")]
    raw = read(write_jsonl(*rows, row(1, "e", source="web")))
    assert raw.class_names == ("0", "1")
    assert texts(raw.train) == ["a", "ü 漢 \u2028 🙂", "e"]
    assert raw.train.labels.tolist() == [0, 1, 1]
    assert texts(raw.validation) == ["c\n\td"]
    assert texts(raw.test) == ["b"]
    assert raw.source == {"how": "archive in data.root", "file": "talk.jsonl", "empty_texts_left_out": 0}


def test_texts_are_read_in_the_order_asked_for_and_more_than_once(write_jsonl: Any) -> None:
    raw = read(write_jsonl(*(row(number % 2, f"text {number}") for number in range(20))))
    for _ in range(2):
        assert list(raw.train.texts.read([3, 17, 5])) == ["text 3", "text 17", "text 5"]


@pytest.mark.parametrize("name", ["dev", "val", "valid", "validation"])
def test_a_validation_part_has_many_names(write_jsonl: Any, name: str) -> None:
    assert texts(read(write_jsonl(*BOTH, row(1, "held out", name))).validation) == ["held out"]


def test_parts_that_are_not_there_are_none(write_jsonl: Any) -> None:
    raw = read(write_jsonl(*BOTH))
    assert raw.validation is None
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
    assert texts(read(path).train) == ["no", "yes"]


def test_the_digest_is_that_of_the_file(write_jsonl: Any) -> None:
    path = write_jsonl(*BOTH)
    assert JsonlTexts(path.parent, "talk").digest() == digest_of_file(path)


def test_memory_grows_by_numbers_and_not_by_texts(tmp_path: Path) -> None:
    path, count, size = tmp_path / "talk.jsonl", 400, 50_000
    with path.open("w") as file:
        for number in range(count):
            file.write(json.dumps(row(number % 2, f"{number} " + size * "x")) + "\n")
    tracemalloc.start()
    raw = read(path)
    longest = max(len(text) for text in raw.train.texts.read(range(count)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert longest > size
    assert peak < 20 * size < count * size / 10


# ---- empty texts


@pytest.mark.parametrize("text", ["", " ", "\n\t\u00a0\u2003"])
def test_an_empty_text_is_refused(write_jsonl: Any, text: str) -> None:
    path = write_jsonl(*BOTH, row(1, text))
    with pytest.raises(InputError, match=r"talk.jsonl, row 3: the text is empty"):
        read(path)


def test_empty_texts_of_a_data_set_that_is_known_for_them_are_left_out_and_counted(write_jsonl: Any) -> None:
    groups = [row(f"group {number}", f"text {number}") for number in range(20)]
    raw = read(write_jsonl(*groups, row("group 3", "\n"), row("group 4", "last"), name="newsgroups20"))
    assert texts(raw.train) == [*(f"text {number}" for number in range(20)), "last"]
    assert raw.source["empty_texts_left_out"] == 1


# ---- faults of a row

FAULTS: dict[str, tuple[Any, str]] = {
    "no JSON": (b'{"split": "train", "label": 0, "text": ', r"is not JSON \(.*column"),
    "single quotes": (b"{'split': 'train'}", "is not JSON"),
    "an empty line": (b"", "is not JSON"),
    "a list": ([1, 2], r"is \[1, 2\], not a JSON object"),
    "deep nesting": (b"[" * 200_000, "is not JSON"),
    "a number of 5,000 digits": (b'{"split": "train", "text": "a", "label": 1' + b"0" * 5000 + b"}", "is not JSON"),
    "no text": ({"split": "train", "label": 0}, r"has no text \(it holds: 'split', 'label'\)"),
    "no label": ({"split": "train", "text": "a"}, "has no label"),
    "no split": ({"label": 0, "text": "a"}, "has no split"),
    "nothing": ({}, r"has no split, label, text \(it holds: nothing\)"),
    "a tree": (
        {"split": "train", "label": 3, "tree": "(3 (2 The))"},
        r"has no text \(it holds: 'split', 'label', 'tree'\)",
    ),
    "a line break in a key": ({"\n": 0}, r"has no split, label, text \(it holds: '\\n'\)"),
    "an unknown split": (row(split="extra"), "the split is 'extra', not one of train, test, dev"),
    "a split that is no name": (row(split=["train"]), r"the split is \['train'\], not one of"),
    "a text that is a number": (row(text=3), "the text is 3, not a string"),
    "a text that is null": (row(text=None), "the text is None, not a string"),
    "a label that is true": (row(label=True), "the label is True, neither a whole number nor a name"),
    "a label that is a fraction": (row(label=0.5), "the label is 0.5, neither"),
    "a label that is null": (row(label=None), "the label is None, neither"),
    "a label that is empty": (row(label=""), "the label is '', neither"),
    "Latin-1": (b'{"split": "train", "label": 0, "text": "K\xe4se"}', "is not UTF-8 .byte 0xe4 at place 41"),
    "UTF-16": (json.dumps(row()).encode("utf-16"), "is not UTF-8 .byte 0xff at place 0"),
    "half a character": (b'{"split": "train", "label": 0, "text": "a\\ud800"}', "has half a character at place 1"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_error_that_names_file_and_row(write_jsonl: Any, fault: str) -> None:
    content, message = FAULTS[fault]
    path = write_jsonl(*BOTH, content, row(1, "more"))
    with pytest.raises(InputError, match=message) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}, row 3: ")
    assert "Write one JSON object a line" in caught.value.remedy
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 700


def test_a_row_that_memory_could_not_hold_is_refused_before_it_is_read(
    write_jsonl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl_rows, "LONGEST", 1000)
    assert len(read(write_jsonl(*BOTH, row(0, "x" * 900))).train.labels) == 3
    with pytest.raises(InputError, match="row 3: is longer than 1,000 bytes"):
        read(write_jsonl(*BOTH, row(0, "x" * 1000)))


# ---- labels that are no classes


@pytest.mark.parametrize("split", ["train", "dev", "test"])
@pytest.mark.parametrize("label", [-1, 2, 10**30])
def test_a_label_outside_the_two_declared_classes_is_refused(write_jsonl: Any, split: str, label: int) -> None:
    path = write_jsonl(*BOTH, row(0), row(label, split=split), name="imdb")
    with pytest.raises(InputError, match=rf"imdb.jsonl, row 4: the label is {label}, must be 0 or 1\."):
        read(path)


LABELS: dict[str, tuple[list[Any], str]] = {
    "a negative number": ([row(0), row(1), row(-1)], "row 3: the label is -1, must be 0 or 1"),
    "a gap": ([row(0), row(1), row(7), row(3)], "row 3: the label is 7, and no training text has label 2; 0 to 7"),
    "numbers from 1": ([row(1), row(2)], "row 2: the label is 2, and no training text has label 0; 0 to 2"),
    "a number that training has not": ([row(0), row(1), row(2, split="test")], "row 3: the label is 2, must be 0 or 1"),
    "a name that training has not": (
        [row("a"), row("b"), row("c", split="test")],
        "row 3: the label is 'c', which no training text has",
    ),
    "a name among numbers": ([row(0), row(1), row("2")], "row 3: the label is '2', of another kind than 0 before it"),
    "one class": ([row(0), row(0)], "talk.jsonl: all training texts are of one class"),
    "one name": ([row("a"), row("a")], "talk.jsonl: all training texts are of one class"),
    "no training texts": ([row(0, split="test"), row(1, split="test")], "talk.jsonl: has no row of the split train"),
    "nothing": ([], "talk.jsonl: has no row of the split train"),
}


@pytest.mark.parametrize("fault", LABELS)
def test_labels_that_are_no_classes_are_refused(write_jsonl: Any, fault: str) -> None:
    rows, message = LABELS[fault]
    with pytest.raises(InputError, match=message):
        read(write_jsonl(*rows))


def test_a_class_more_than_declared_is_refused_where_it_first_appears(write_jsonl: Any) -> None:
    groups = [row(f"group {number}") for number in range(21)]
    with pytest.raises(InputError, match="row 22: the label is 'group 20', one more than the 20 classes"):
        read(write_jsonl(row("group 0"), *groups, name="newsgroups20"))


def test_labels_without_end_are_no_classes(write_jsonl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl_texts, "_MOST_CLASSES", 5)
    with pytest.raises(InputError, match="row 6: has the 6th distinct label, 'id 5': too many for classes"):
        read(write_jsonl(*(row(f"id {number}") for number in range(9))))


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent.jsonl: cannot be read \(No such file"):
        JsonlTexts(tmp_path, "absent").read()

"""Trees of JSON lines: neutral sentences are left out, and every fault names the file, the row and the place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from softmax_temperature.data.jsonl_texts import JsonlTexts
from softmax_temperature.data.jsonl_trees import JsonlTrees
from softmax_temperature.data.raw_texts import RawTextPart, RawTextSet
from softmax_temperature.data.sources import find_archive, find_dataset
from softmax_temperature.runner.artifacts import digest_of_file
from softmax_temperature.runner.errors import InputError


def row(root: int, words: str = "so so", split: Any = "train", **more: Any) -> dict[str, Any]:
    first, second = words.split()
    return {"split": split, "tree": f"({root} (2 {first}) (3 {second}))", **more}


BOTH = (row(1, "bad film"), row(4, "good film"))


def read(path: Path) -> RawTextSet:
    return JsonlTrees(path.parent, path.stem).read()


def trees(part: RawTextPart | None) -> list[str]:
    assert part is not None
    return list(part.texts.read(range(len(part.texts))))


def test_roots_become_two_classes_and_neutral_sentences_are_counted(write_jsonl: Any) -> None:
    rows = [row(label, f"word {label}") for label in (4, 0, 2, 1, 3)]
    raw = read(write_jsonl(*rows, row(2, split="test"), row(0, split="test"), row(3, split="dev", label=3)))
    assert raw.class_names == ("negative", "positive")
    assert raw.trees
    assert trees(raw.train) == [row(label, f"word {label}")["tree"] for label in (4, 0, 1, 3)]
    assert raw.train.labels.tolist() == [1, 0, 0, 1]
    assert raw.test is not None
    assert raw.test.labels.tolist() == [0]
    assert trees(raw.validation) == [row(3)["tree"]]
    assert raw.source == {"how": "archive in data.root", "file": "talk.jsonl", "neutral_sentences_left_out": 2}


def test_the_digest_is_that_of_the_file(write_jsonl: Any) -> None:
    path = write_jsonl(*BOTH)
    assert JsonlTrees(path.parent, "talk").digest() == digest_of_file(path)


def test_a_file_is_of_trees_if_its_first_row_is(write_jsonl: Any, tmp_path: Path) -> None:
    write_jsonl(*BOTH)
    assert isinstance(find_archive("talk", root=tmp_path), JsonlTrees)
    assert find_dataset("talk", root=tmp_path, download=False, seed=0).trees  # type: ignore[union-attr]
    write_jsonl({"split": "train", "label": 0, "text": 'a "tree"'})
    assert isinstance(find_archive("talk", root=tmp_path), JsonlTexts)


def test_what_to_put_where_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"sst_trees.jsonl \(one JSON object a line: split, tree\)\. Get trainDev"):
        find_dataset("sst_trees", root=tmp_path, download=False, seed=0)


FAULTS: dict[str, tuple[Any, str]] = {
    "no tree": ({"split": "train", "text": "a"}, r"has no tree \(it holds: 'split', 'text'\)"),
    "no split": ({"tree": "(2 a)"}, "has no split"),
    "another split": (row(1, split="holdout"), "the split is 'holdout'"),
    "no string": ({"split": "train", "tree": 3}, "the tree is 3, not a string"),
    "malformed": (
        {"split": "train", "tree": "(3 (2 a) (2 b)"},
        r"malformed: 1 brackets are not closed, at character 15",
    ),
    "another label": (row(1, label=0), "the label is 0, that of the tree's root 1"),
    "no JSON": (b"(3 (2 a) (2 b))", "is not JSON"),
    "no UTF-8": (b'{"split": "train", "tree": "(2 \xff)"}', "is not UTF-8"),
    "half a character": (b'{"split": "train", "tree": "(2 \\ud800)"}', "has half a character at place 3"),
}


@pytest.mark.parametrize(("fault", "says"), FAULTS.values(), ids=FAULTS)
def test_a_fault_names_file_and_row(write_jsonl: Any, fault: Any, says: str) -> None:
    path = write_jsonl(*BOTH, fault)
    with pytest.raises(InputError, match=rf"talk\.jsonl, row 3: .*{says}"):
        read(path)


@pytest.mark.parametrize("rows", [(), (row(4),), (row(1), row(4, split="test")), (row(1), row(2))])
def test_a_training_part_without_a_class_is_refused(write_jsonl: Any, rows: Any) -> None:
    with pytest.raises(InputError, match=r"talk\.jsonl: has no (positive|negative) sentence of the split train"):
        read(write_jsonl(*rows))


def test_a_last_line_without_a_line_break_is_read(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_bytes(b"\n".join(json.dumps(one).encode() for one in BOTH))
    assert len(read(path).train.texts) == 2

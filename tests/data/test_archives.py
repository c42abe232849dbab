"""Archives are read exactly; if one is faulty, an error names the file."""

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
        assert np.array_equal(part.samples, stored[f"x_{ending}"])
        assert np.array_equal(part.labels, stored[f"y_{ending}"])


def test_without_names_the_distinct_labels_are_the_classes(write_npz: Any) -> None:
    path = write_npz(
        y_train=np.array([5, 9, 30] * 4), y_test=np.array([30, 9] * 3, dtype=np.uint8)
    )
    raw = NpzArchive(path).read()
    assert (raw.class_names, raw.test and raw.test.labels.tolist()) == (
        ("5", "9", "30"),
        [2, 1] * 3,
    )
    raw = NpzArchive(
        write_npz(x_train=IMAGES[:0], y_train=np.zeros(0), y_test=np.array([7, 5] * 3))
    ).read()
    assert (raw.class_names, len(raw.train.labels)) == (("5", "7"), 0)
    assert raw.test is not None
    assert raw.test.labels.tolist() == [1, 0] * 3


ARRAY_FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "a missing array": ({"y_test": None}, "has no y_test .it holds: x_train"),
    "float images": ({"x_train": IMAGES / 255}, "x_train is float64"),
    "no test images": (
        {"x_test": IMAGES[:0], "y_test": np.zeros(0, dtype=int)},
        r"x_test is uint8 of shape \(0, 5",
    ),
    "two sizes": (
        {"x_train": IMAGES[:, :4]},
        r"x_train and x_test differ in image shape: \(4, 4, 3\) and \(5, 4, 3\)",
    ),
    "fewer labels": (
        {"y_train": np.arange(11) % 3},
        r"y_train is int64 of shape \(11,\), for 12 images",
    ),
    "one class": (
        {"y_train": np.ones(12, dtype=int), "y_test": np.ones(6, dtype=int)},
        "all images are of one class",
    ),
    "an unknown test class": (
        {"y_test": np.array([0, 1, 2, 0, 1, 7])},
        "y_test has label 7, .* not one of the 3 classes",
    ),
}


@pytest.mark.parametrize(
    ("replaced", "message"), ARRAY_FAULTS.values(), ids=ARRAY_FAULTS
)
def test_an_error_in_arrays_names_the_file_and_the_expected_form(
    write_npz: Any, replaced: dict[str, Any], message: str
) -> None:
    with pytest.raises(
        InputError, match=f"birds.npz: {message}.* Save it with numpy.savez"
    ):
        NpzArchive(write_npz(**replaced)).read()


def test_a_class_name_with_half_of_a_character_is_refused(write_npz: Any) -> None:
    path = write_npz(class_names=np.array(["crow", "wren", "t\ud800"]))
    with pytest.raises(InputError, match="class_names holds an unpaired surrogate"):
        NpzArchive(path).read()


def test_an_archive_that_cannot_be_read_has_no_digest(write_npz: Any) -> None:
    path = write_npz()
    path.unlink()
    with pytest.raises(InputError, match=r"birds\.npz: cannot be read"):
        NpzArchive(path).digest()


def test_a_truncated_archive_is_refused(write_npz: Any) -> None:
    path = write_npz()
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match="is not a readable npz archive"):
        NpzArchive(path).read()


def row(
    label: Any = 0, text: Any = "words", split: Any = "train", **more: Any
) -> dict[str, Any]:
    return {"split": split, "label": label, "text": text, **more}


def tree(root: int, words: str = "so so", split: Any = "train") -> dict[str, Any]:
    first, second = words.split()
    return {"split": split, "tree": f"({root} (2 {first}) (3 {second}))"}


@pytest.mark.parametrize("validation", ["dev", "val", "valid", "validation"])
def test_parts_are_distinguished_and_keep_their_order(
    write_jsonl: Any, validation: str
) -> None:
    rows = [
        row(1, "b", "test"),
        row(0, "a"),
        row(1, "ü 漢 \u2028 🙂"),
        row(0, "c\n\td", validation),
        row(1, "\n\u00a0"),
    ]
    raw = JsonlArchive(write_jsonl(*rows, row(1, "e", source="web"))).read()
    assert (raw.class_names, raw.form) == (("0", "1"), "texts")
    assert (raw.train.samples, raw.train.labels.tolist()) == (
        ("a", "ü 漢 \u2028 🙂", "e"),
        [0, 1, 1],
    )
    assert [part and part.samples for part in (raw.validation, raw.test)] == [
        ("c\n\td",),
        ("b",),
    ]
    assert raw.source == {
        "how": "archive in data.root",
        "file": "talk.jsonl",
        "empty_texts_left_out": 1,
    }


def test_a_byte_order_mark_and_empty_lines_at_the_end_are_dropped(
    write_jsonl: Any,
) -> None:
    path = write_jsonl(row(0, "a"), row(1, "b"), b"", b" \t", b"\r")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert JsonlArchive(path).read().train.samples == ("a", "b")


def test_names_are_classes_in_the_order_of_the_alphabet(write_jsonl: Any) -> None:
    raw = JsonlArchive(
        write_jsonl(row("wren"), row("crow"), row("tit"), row("crow", split="test"))
    ).read()
    assert (raw.class_names, raw.train.labels.tolist()) == (
        ("crow", "tit", "wren"),
        [2, 0, 1],
    )


def test_roots_become_two_classes_and_neutral_sentences_are_counted(
    write_jsonl: Any,
) -> None:
    rows = [tree(label, f"word {label}") for label in (4, 0, 2, 1, 3)]
    raw = JsonlArchive(
        write_jsonl(
            *rows, tree(2, split="test"), tree(0, split="test"), tree(3, split="dev")
        )
    ).read()
    assert (raw.class_names, raw.form) == (("negative", "positive"), "trees")
    assert raw.train.samples == tuple(
        tree(label, f"word {label}")["tree"] for label in (4, 0, 1, 3)
    )
    assert raw.train.labels.tolist() == [1, 0, 0, 1]
    assert [part and part.labels.tolist() for part in (raw.validation, raw.test)] == [
        [1],
        [0],
    ]
    assert raw.source["neutral_sentences_left_out"] == 2


TEXT_FAULTS: dict[str, tuple[list[Any], str]] = {
    "no JSON": (
        [b'{"split": "train", "label": 0, "text": '],
        ", line 3: does not have the required form",
    ),
    "no text": (
        [{"split": "train", "label": 0}],
        r", line 3: does not have the required form .*'text'",
    ),
    "an unknown split": (
        [row(split="extra")],
        r", line 3: does not have the required form .*'extra'",
    ),
    "Latin-1": (
        [b'{"split": "train", "label": 0, "text": "K\xe4se"}'],
        ", line 3: .*0xe4 in position 41",
    ),
    "no label": (
        [row(None)],
        ", line 3: the label is neither a whole number nor a name",
    ),
    "a label that training has not": (
        [row(2, split="test")],
        ", line 3: the label is 2, not one of 2 classes",
    ),
    "a gap": (
        [row(10**30)],
        ": labels of the split train must be 0, 1 and so on.* got 0, 1, 10+",
    ),
    "two kinds": ([row("a")], ": labels of the split train must be .* got 0, 1, 'a'"),
    "an empty line between others": (
        [b"", row()],
        ", line 3: does not have the required form",
    ),
    "half of a character": (
        [b'{"split": "train", "label": 0, "text": "a \\ud800"}'],
        r", line 3: the text holds an unpaired surrogate \('\\ud800'\)",
    ),
    "a name with half of a character": (
        [b'{"split": "train", "label": "\\udcff", "text": "a"}'],
        ", line 3: the label holds an unpaired surrogate",
    ),
    "deep nesting": (
        [b'{"split": "train", "label": 0, "text": ' + 100_000 * b"["],
        r", line 3: does not have the required form \(too deeply nested\)",
    ),
}


@pytest.mark.parametrize(("rows", "message"), TEXT_FAULTS.values(), ids=TEXT_FAULTS)
def test_an_error_in_texts_names_the_file_the_line_and_the_expected_form(
    write_jsonl: Any, rows: list[Any], message: str
) -> None:
    with pytest.raises(
        InputError, match=f"talk.jsonl{message}.*Write one JSON object per line"
    ):
        JsonlArchive(write_jsonl(row(0), row(1), *rows)).read()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "labels of the split train must be .* got none"),
        (
            [tree(1), tree(2), tree(4, split="test")],
            "labels of the split train must be .* got 'negative'",
        ),
        (
            [tree(1), {"split": "dev", "tree": "(3 (2 a)"}],
            "line 2: .*1 unclosed bracket",
        ),
    ],
)
def test_trees_of_one_class_and_malformed_ones_are_refused(
    write_jsonl: Any, rows: list[Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        JsonlArchive(write_jsonl(*rows)).read()

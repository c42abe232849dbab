"""Columns of tables are matched by name and number; errors name any other column."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from softmax_temperature.runner.errors import InputError
from softmax_temperature.tools.arrays import read_arrays, read_rows
from softmax_temperature.tools.files import read_csv
from softmax_temperature.tools.tables import around, around_difference

CLASSES = 11
LOGITS = np.random.default_rng(0).normal(size=(20, CLASSES))
LABELS = np.arange(20) % CLASSES


def table(names: list[str]) -> pd.DataFrame:
    return pd.DataFrame(LOGITS, columns=names).assign(label=LABELS)


def read(
    frame: pd.DataFrame, folder: Path, columns: tuple[str, ...] = ()
) -> dict[str, np.ndarray]:
    path = folder / "table.csv"
    frame.to_csv(path, index=False)
    required = ("logits", "labels")
    return read_arrays(path, "logits", required=required, columns=columns)


@pytest.mark.parametrize("prefix", ["", "logit_", "z"])
@pytest.mark.parametrize("first", [0, 1])
def test_classes_are_in_the_order_of_their_numbers(
    prefix: str, first: int, tmp_path: Path
) -> None:
    frame = table([f"{prefix}{first + number}" for number in range(CLASSES)])
    by_text = sorted(frame.columns)  # As text: 0, 1, 10, 2, ...
    assert by_text != list(frame.columns)
    arrays = read(frame[by_text], tmp_path)
    np.testing.assert_allclose(arrays["logits"], LOGITS)
    np.testing.assert_array_equal(arrays["labels"], LABELS)


@pytest.mark.parametrize("name", ["id", "fold", "pred", "confidence"])
def test_another_numeric_column_is_not_a_class(name: str, tmp_path: Path) -> None:
    frame = table([f"logit_{number}" for number in range(CLASSES)])
    frame[name] = np.random.default_rng(1).permutation(20)
    with pytest.raises(InputError, match=f"'{name}' are neither .* --columns such as"):
        read(frame, tmp_path)
    chosen = read(frame, tmp_path, ("logit_*",))
    np.testing.assert_allclose(chosen["logits"], LOGITS)


def test_columns_without_numbers_are_chosen_in_the_order_of_the_option(
    tmp_path: Path,
) -> None:
    frame = pd.DataFrame(LOGITS[:, :2], columns=["cat", "dog"]).assign(label=LABELS % 2)
    with pytest.raises(InputError, match="'cat', 'dog' are neither"):
        read(frame, tmp_path)
    chosen = read(frame, tmp_path, ("dog", "cat"))
    np.testing.assert_allclose(chosen["logits"], LOGITS[:, 1::-1])
    with pytest.raises(InputError, match=r"no column 'dgo' .* Did you mean 'dog'"):
        read(frame, tmp_path, ("cat", "dgo"))
    with pytest.raises(InputError, match="'cat' is named twice"):
        read(frame, tmp_path, ("cat", "cat"))


@pytest.mark.parametrize(
    "name", ["id", "index", "conf", "c_id", "counted", "c_patient"]
)
def test_a_pattern_of_columns_chooses_classes_only(name: str, tmp_path: Path) -> None:
    rows = 40
    scores = np.random.default_rng(0).normal(size=(rows, 3)).round(3)
    frame = pd.DataFrame(scores, columns=["c_cat", "c_dog", "c_eel"])
    frame = frame.assign(**{name: np.arange(rows) % 7, "label": np.arange(rows) % 3})
    if name == "counted":
        frame[name] = np.arange(rows) + 5.0
    for pattern in ("*", "c*"):
        if name.startswith(pattern[:-1]):
            fault = rf"matches '{name}'( \([a-z ]+\))?, which do not"
            with pytest.raises(InputError, match=fault):
                read(frame, tmp_path, (pattern,))
    np.testing.assert_array_equal(read(frame, tmp_path, ("c_???",))["logits"], scores)
    # A column that is named in full is taken as a class.
    chosen = read(frame, tmp_path, (name, "c_???"))
    assert chosen["logits"].shape == (rows, 4)


def test_a_column_that_equals_the_labels_of_another_file_is_refused(
    tmp_path: Path,
) -> None:
    rows = np.column_stack([LOGITS.round(4), LABELS])
    np.savetxt(tmp_path / "bare.csv", rows, fmt="%.6g", delimiter=",")
    np.savetxt(tmp_path / "y.csv", LABELS, fmt="%d")
    frame = pd.DataFrame(rows).set_axis(
        [f"c{letter}" for letter in "abcdefghijkl"], axis=1
    )
    frame.to_csv(tmp_path / "named.csv", index=False)
    equals = r"'{}' \(equals the labels in every row\)\. Remove them, .*--columns"
    for matrix in ("logits", "embeddings"):
        for name, file, columns in (
            ("11", "bare.csv", ()),
            ("cl", "named.csv", ("c?",)),
            ("cl", "named.csv", tuple(map(str, frame))),
        ):
            arguments = (matrix, tmp_path / file, tmp_path / "y.csv", "test")
            with pytest.raises(InputError, match=equals.format(name)):
                read_rows(*arguments, None, None, columns=columns)
    read_rows(*arguments, None, None, columns=("c[a-k]",))
    with pytest.raises(InputError, match=equals.format("species")):
        read(
            table([f"logit_{number}" for number in range(CLASSES)]).assign(
                species=1.0 * LABELS
            ),
            tmp_path,
            ("logit_*", "species"),
        )


def test_a_numbered_column_of_whole_numbers_is_a_class_with_a_pattern_too(
    tmp_path: Path,
) -> None:
    frame = table([f"logit_{number}" for number in range(CLASSES)])
    for whole in (np.arange(20) % 3, -3 * (np.arange(20) % 2)):
        given = frame.assign(logit_1=whole)
        plain = read(given, tmp_path)["logits"]
        for pattern in ("logit_*", "*"):
            np.testing.assert_array_equal(
                read(given, tmp_path, (pattern,))["logits"], plain
            )


def test_a_column_that_summarises_the_others_is_no_class_of_a_table(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        rng.normal(size=(40, 3)).round(4), columns=["ant", "bee", "cow"]
    )
    frame = frame.assign(best=frame.max(axis=1), label=np.arange(40) % 3)
    for columns in (("*",), ("ant", "bee", "cow", "best")):
        with pytest.raises(InputError, match=r"'best' \(equals the largest of the"):
            read(frame, tmp_path, columns)
    # In a table of embeddings, the same column is one more dimension.
    frame.to_csv(tmp_path / "e.csv", index=False)
    required = ("embeddings", "labels")
    found = read_arrays(
        tmp_path / "e.csv", "embeddings", required=required, columns=("*",)
    )
    assert found["embeddings"].shape == (40, 4)


def test_a_name_comes_before_a_pattern(tmp_path: Path) -> None:
    names = ["prob[ant]", "proba", "what?", "whats"]
    frame = pd.DataFrame(LOGITS[:, :4], columns=names).assign(label=LABELS % 4)
    found = read(frame, tmp_path, ("what?", "prob[ant]"))["logits"]
    np.testing.assert_allclose(found, LOGITS[:, [2, 0]])


def test_fractions_under_the_name_of_labels_are_a_class(tmp_path: Path) -> None:
    frame = pd.DataFrame(LOGITS[:, :2], columns=["NonTarget", "Target"])
    frame["label"] = LABELS % 2
    found = read(frame, tmp_path, ("NonTarget", "Target"))
    np.testing.assert_allclose(found["logits"], LOGITS[:, :2])
    np.testing.assert_array_equal(found["labels"], LABELS % 2)
    frame["Target"] = np.arange(20)
    with pytest.raises(InputError, match="Target and label, and each could be"):
        read(frame, tmp_path, ("NonTarget", "Target"))


def test_classes_of_which_some_are_numbered_are_named_one_by_one(
    tmp_path: Path,
) -> None:
    names = ["W", "N1", "N2", "N3", "R"]
    frame = pd.DataFrame(LOGITS[:, :5], columns=names).assign(label=LABELS % 5)
    with pytest.raises(
        InputError, match=r"If they are classes, .*--columns W,N1,\.\.\.; otherwise"
    ):
        read(frame, tmp_path)
    np.testing.assert_allclose(
        read(frame, tmp_path, tuple(names))["logits"], LOGITS[:, :5]
    )


def test_a_column_of_lists_is_told_apart_from_text(tmp_path: Path) -> None:
    path = tmp_path / "lists.parquet"
    pd.DataFrame({"logits": LOGITS.tolist(), "label": LABELS}).to_parquet(path)
    required = ("logits", "labels")
    with pytest.raises(InputError, match="'logits' holds a list") as refused:
        read_arrays(path, "logits", required=required)
    assert "np.stack(table['logits'])" in str(refused.value)
    assert "commas" not in str(refused.value)
    words = pd.DataFrame({"logit_0": ["a", "b"], "logit_1": 1.0, "label": 0})
    words.to_parquet(path)
    with pytest.raises(InputError, match=r"'logit_0' is not numeric.*plain numbers\.$"):
        read_arrays(path, "logits", required=required)


def test_a_label_column_and_a_file_of_labels_are_refused_together(
    tmp_path: Path,
) -> None:
    frame = table([f"logit_{number}" for number in range(CLASSES)])
    frame.rename(columns={"label": "true_label"}).to_csv(
        tmp_path / "t.csv", index=False
    )
    np.save(tmp_path / "labels.npy", LABELS)
    arguments = ("logits", tmp_path / "t.csv", tmp_path / "labels.npy", "validation")
    with pytest.raises(
        InputError, match="'true_label', but --labels also gives labels"
    ):
        read_rows(*arguments, None, None)


@pytest.mark.parametrize(
    ("names", "fault"),
    [
        ([0, 1, 3], "do not count from 0 or 1 without a gap"),
        ([2, 3, 4], "do not count from 0 or 1 without a gap"),
        (["a0", "a1", "b0"], r"several groups of numbered columns: 'a\*', 'b\*'"),
    ],
)
def test_numbers_have_one_prefix_and_no_gap(
    names: list[object], fault: str, tmp_path: Path
) -> None:
    frame = pd.DataFrame(LOGITS[:, :3], columns=names).assign(label=LABELS % 3)
    with pytest.raises(InputError, match=fault):
        read(frame, tmp_path)


def test_a_binary_classifier_has_one_column_that_says_so(tmp_path: Path) -> None:
    frame = pd.DataFrame({"logit": LOGITS[:, 0], "label": LABELS % 2})
    np.testing.assert_allclose(read(frame, tmp_path)["logits"], LOGITS[:, :1])
    with pytest.raises(InputError, match="'confidence' are neither"):
        read(frame.rename(columns={"logit": "confidence"}), tmp_path)


@pytest.mark.parametrize("form", ["%.18e", "%.3f"])
def test_a_file_without_names_loses_no_row(form: str, tmp_path: Path) -> None:
    same = np.vstack([np.full(CLASSES, 0.5), LOGITS])  # pandas would rename duplicates.
    np.savetxt(tmp_path / "bare.csv", same, fmt=form, delimiter=",")
    found = read_arrays(tmp_path / "bare.csv", "logits", required=("logits",))
    assert found["logits"].shape == same.shape


def test_labels_come_only_from_a_column_named_label(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": np.arange(20)[::-1], "label": LABELS})
    frame.to_csv(tmp_path / "labels.csv", index=False)
    found = read_arrays(tmp_path / "labels.csv", "logits", required=("labels",))
    np.testing.assert_array_equal(found["labels"], LABELS)
    frame[["id"]].to_csv(tmp_path / "ids.csv", index=False)
    with pytest.raises(
        InputError, match=r"has no column named label \(its columns: 'id'"
    ):
        read_arrays(tmp_path / "ids.csv", "logits", required=("labels",))


@pytest.mark.parametrize("columns", [(), ("logit_*",)])
@pytest.mark.parametrize(
    "names", ["logit_0,logit_1, logit_0,label", "logit_0,logit_1,label,label"]
)
def test_two_columns_of_one_name_are_refused(
    names: str, columns: tuple[str, ...], tmp_path: Path
) -> None:
    # pandas would rename the second column to logit_0.1, which a pattern would take for
    # the column of a class.
    path = tmp_path / "twice.csv"
    path.write_text(f"{names}\n" + "1.5,0.5,1,0\n" * 20)
    with pytest.raises(
        InputError, match=r"two columns '(logit_0|label)'.*its own name"
    ):
        read_arrays(path, "logits", required=("logits", "labels"), columns=columns)


@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("0.25,1.5,2.5", "has 3 fields, but the first line has 2. Name every"),
        ("2,5,1,25", "has 4 fields, but .* decimal points"),
        ("0.25,1.5,", "has 3 fields and ends with a comma, .* End no line with a"),
        ("0.25,1.5,,", "has 4 fields and ends with a comma, .* End no line with a"),
        ("0.25,,1.5", "has 3 fields, but the first line has 2. Name every"),
    ],
)
def test_a_line_with_more_fields_than_names_is_named(
    tmp_path: Path, row: str, fault: str, before: int
) -> None:
    path = tmp_path / "logits.csv"
    lines = ["logit_0,logit_1", *["0.5,2.5"] * before, "", row, row, ""]
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match=f"line {before + 3} {fault}"):
        read_csv(path)


def test_repeated_row_names_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "logits.csv"
    path.write_text("logit_0,logit_1\na,0.25,1.5\na,0.25,1.5")
    with pytest.raises(InputError, match="line 2 has 3 fields, but the first line has"):
        read_csv(path)


def test_decimal_commas_between_semicolons_are_refused_with_their_remedy(
    tmp_path: Path,
) -> None:
    path = tmp_path / "logits.csv"
    path.write_text("logit_0;logit_1\n2,5;1,25\n2,5;1,25")
    with pytest.raises(InputError, match="Separate columns with commas, and write dec"):
        read_csv(path)


@pytest.mark.parametrize(
    "lines",
    [
        ("logit_0,logit_1,", "0.25,1.5,", "0.5,-1,"),
        ("logit_0,logit_1,", "0.25,1.5", "0.5,-1"),
        ("0.25,1.5,", "0.5,-1,"),
    ],
    ids=["every line", "the header", "no header"],
)
def test_commas_at_the_end_of_every_line_make_no_column(
    lines: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "logits.csv"
    path.write_text("\n".join(lines))
    arrays = read_arrays(path, "logits", required=("logits",))
    assert arrays["logits"].tolist() == [[0.25, 1.5], [0.5, -1]]


def test_a_missing_number_at_the_end_of_the_first_line_stays_missing(
    tmp_path: Path,
) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("0.25,1.5,\n0.5,-1,1\n")
    assert read_csv(path).isna().to_numpy().tolist() == [
        [False, False, True],
        [False] * 3,
    ]


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        (0, "a, b, c, d, e, ..."),
        (3, "a, b, c, d, e, ..."),
        (4, "..., d, e, f, g, h"),
        (7, "..., d, e, f, g, h"),
    ],
)
def test_names_are_shown_around_the_place_that_matters(place: int, shown: str) -> None:
    assert around("abcdefgh", place) == shown
    assert around("abc", place) == "a, b, c"


def test_orders_are_shown_around_their_first_difference() -> None:
    names = [f"class {letter}" for letter in "abcdefghij"]
    swapped = [*names[:7], names[8], names[7], names[9]]
    assert around_difference(names, swapped) == (
        "..., class f, class g, class h, class i, class j",
        "..., class f, class g, class i, class h, class j",
    )
    assert around_difference(names[:2], names) == (
        "class a, class b",
        "class a, class b, class c, class d, class e, ...",
    )


@pytest.mark.parametrize("names", [("1", "2"), ('"a"', '"b"')])
def test_named_rows_as_r_writes_them_are_read(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    path = tmp_path / "logits.csv"
    first, second = names
    lines = ['"logit_0","logit_1"', f"{first},0.25,1.5", f"{second},0.5,-1"]
    path.write_text("\n".join(lines))
    assert read_csv(path).to_numpy().tolist() == [[0.25, 1.5], [0.5, -1]]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
def test_the_header_of_a_joined_file_is_named_with_its_line(
    end: str, tmp_path: Path
) -> None:
    path = tmp_path / "joined.csv"
    part = end.join(["logit_0, logit_1,label"] + ["1.5,0.5,1", "0.5,2.5,0"] * 15) + end
    path.write_bytes((part + part).encode())
    lines = path.read_text().splitlines()
    line = 1 + lines.index("logit_0, logit_1,label", 1)
    fault = rf"header again in line {line}\b.*Remove that line"
    with pytest.raises(InputError, match=fault):
        read_arrays(path, "logits", required=("logits", "labels"))
    lines.pop(line - 1)
    path.write_text("\n".join(lines))
    table = read_arrays(path, "logits", required=("logits", "labels"))
    assert table["logits"].shape == (60, 2)


def test_a_label_of_another_name_and_a_score_have_a_remedy_that_works(
    tmp_path: Path,
) -> None:
    path = tmp_path / "table.csv"
    frame = pd.DataFrame({"logit_0": [1.5] * 9, "logit_1": 0.5, "gt": 1})
    frame.to_csv(path, index=False)
    required = ("logits", "labels")
    with pytest.raises(InputError, match=r"Name the column of labels `label`\. Remove"):
        read_arrays(path, "logits", required=required)
    frame.rename(columns={"gt": "label"}).to_csv(path, index=False)
    assert read_arrays(path, "logits", required=required)["labels"].tolist() == [1] * 9
    # If a column of scores holds probabilities, the option --probs is enough.
    pd.DataFrame({"score": [0.25] * 9, "label": 1}).to_csv(path, index=False)
    found = read_arrays(path, "probs", required=("probs", "labels"))
    assert found["probs"].shape == (9, 1)


@pytest.mark.parametrize("columns", [(), ("*.0",)])
@pytest.mark.parametrize("prefix", ["", "logit_"])
def test_columns_numbered_by_fractions_are_classes(
    prefix: str, columns: tuple[str, ...], tmp_path: Path
) -> None:
    frame = table([f"{prefix}{number}.0" for number in range(CLASSES)])
    by_text = sorted(frame.columns)  # As text: 0.0, 1.0, 10.0, 2.0, ...
    found = read(frame[by_text], tmp_path, columns)
    np.testing.assert_allclose(found["logits"], LOGITS)
    np.testing.assert_array_equal(found["labels"], LABELS)
    thresholds = table([f"t0.{number}" for number in range(CLASSES)])
    np.testing.assert_allclose(read(thresholds, tmp_path)["logits"], LOGITS)


def test_a_line_of_numbers_that_count_as_fractions_is_a_header(tmp_path: Path) -> None:
    path = tmp_path / "bare.csv"
    pd.DataFrame(LOGITS, columns=np.arange(CLASSES) * 1.0).to_csv(path, index=False)
    found = read_arrays(path, "logits", required=("logits",))
    np.testing.assert_allclose(found["logits"], LOGITS)
    # A first line of only two such numbers is no header: it holds probabilities.
    np.savetxt(path, np.eye(2)[[0, 1, 1]], fmt="%.1f", delimiter=",")
    found = read_arrays(path, "probs", required=("probs",))
    np.testing.assert_array_equal(found["probs"], np.eye(2)[[0, 1, 1]])


IDS = {
    "text": np.array([f"i{row:02}" for row in range(20)]),
    "numbers": np.arange(20) * 3 + 7,
    "floats": np.arange(20) * 3.0 + 7,
}
ORDER = np.r_[:4, 19:3:-1]  # The rows from row 4 on are reversed.
LOGIT_NAMES = [f"logit_{number}" for number in range(CLASSES)]


def read_pair(
    folder: Path, ending: str, scores: pd.DataFrame, labels: pd.DataFrame
) -> dict[str, np.ndarray]:
    """Write scores and labels to two files, and read them by the pattern `logit_*`."""
    paths = (folder / f"lo{ending}", folder / f"la{ending}")
    for path, frame in zip(paths, (scores, labels), strict=True):
        if ending == ".csv":
            frame.to_csv(path, index=False)
        else:
            frame.to_parquet(path)
    columns = ("logit_*",)
    found, _ = read_rows("logits", *paths, "validation", None, None, columns=columns)
    return found


def keyed(keys: dict[str, np.ndarray]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A table of scores and a table of labels, both with the columns in `keys`."""
    scores = pd.DataFrame(LOGITS, columns=LOGIT_NAMES).assign(**keys)
    return scores, pd.DataFrame({"label": LABELS}).assign(**keys)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize("kind", list(IDS))
def test_two_files_whose_common_key_has_another_order_are_refused(
    kind: str, ending: str, tmp_path: Path
) -> None:
    scores, labels = keyed({"image_id": IDS[kind]})
    found = read_pair(tmp_path, ending, scores, labels)
    np.testing.assert_array_equal(found["labels"], LABELS)
    reordered = labels.take(ORDER).reset_index(drop=True)
    with pytest.raises(InputError) as refused:
        read_pair(tmp_path, ending, scores, reordered)
    assert str(refused.value) == (
        f"{tmp_path / f'lo{ending}'}, {tmp_path / f'la{ending}'}: have the same column "
        "'image_id' in different orders, from row 4 on. Sort both files by it."
    )
    # Validation rows may also be a pair of files.
    pair = (tmp_path / f"lo{ending}", tmp_path / f"la{ending}")
    good = (tmp_path / "good.csv", tmp_path / "labels.csv")
    scores.to_csv(good[0], index=False)
    labels.to_csv(good[1], index=False)
    with pytest.raises(InputError, match="'image_id' in different orders"):
        read_rows("logits", *good, "validation", *pair, columns=("logit_*",))


def test_two_files_of_which_one_lacks_rows_of_the_other_are_refused(
    tmp_path: Path,
) -> None:
    scores, labels = keyed({"image_id": IDS["numbers"]})
    for other in (labels.replace({"image_id": {IDS["numbers"][2]: 1000}}), labels[:2]):
        with pytest.raises(
            InputError, match=r"values in column 'image_id', from row 2"
        ):
            read_pair(tmp_path, ".csv", scores, other)


def test_columns_that_are_no_common_key_may_differ(tmp_path: Path) -> None:
    scores, labels = keyed(
        {"seconds": LOGITS[:, 0], "fold": np.arange(20) % 5, "id": IDS["numbers"]}
    )
    labels = labels.assign(
        seconds=LOGITS[::-1, 0], fold=np.arange(20)[::-1] % 5, id=np.arange(20) + 500
    )
    found = read_pair(tmp_path, ".csv", scores, labels)
    np.testing.assert_allclose(found["logits"], LOGITS)
    np.testing.assert_array_equal(found["labels"], LABELS)


@pytest.mark.parametrize(
    ("name", "shown"), [(None, "index"), ("image_id", "column 'image_id'")]
)
def test_a_stored_index_of_another_order_is_refused(
    name: str | None, shown: str, tmp_path: Path
) -> None:
    index = pd.Index(IDS["numbers"], name=name)
    scores, labels = (frame.set_index(index) for frame in keyed({}))
    read_pair(tmp_path, ".parquet", scores, labels)
    fault = f"have the same {shown} in different orders, from row 4 on"
    with pytest.raises(InputError, match=fault):
        read_pair(tmp_path, ".parquet", scores, labels.take(ORDER))
    # The index is a key even without --columns.
    paths = (tmp_path / "lo.parquet", tmp_path / "la.parquet")
    with pytest.raises(InputError, match=fault):
        read_rows("logits", *paths, "validation", None, None)
    # pandas' default index says nothing about the samples.
    default = labels.take(ORDER).reset_index(drop=True)
    read_pair(tmp_path, ".parquet", scores.set_index(pd.Index(ORDER)), default)


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("0.1,0.2,-", r"'logit_2' is not numeric: row 20 holds '-'\. .*cut off"),
        ("-,0.2,0.3,1", r"'logit_0' is not numeric: row 20 holds '-'\. .*cut off"),
        ("0.1,0.2,0.3,n", r"'label' is not numeric: row 20 holds 'n'\. .*cut off"),
        (
            "#REF!,0.2,0.3,1\n1,1,1,1",
            r"'logit_0' .*: row 20 holds '#REF!'\. Correct or remove such rows",
        ),
        (
            "n.d.,0.2,0.3,1\nn.d.,1,1,1",
            r"'logit_0' .*: row 20 holds 'n.d.' \(2 such rows\)\. Correct",
        ),
    ],
)
def test_a_cell_that_is_no_number_is_named(end: str, said: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(LOGITS[:, :3], columns=["logit_0", "logit_1", "logit_2"])
    text = frame.assign(label=LABELS % 3).to_csv(index=False)
    path = tmp_path / "table.csv"
    path.write_text(text + end, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        read_arrays(path, "logits", required=("logits", "labels"))

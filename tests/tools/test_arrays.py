"""Every file type gives the same arrays; an unusable file gives a one-line error."""

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.numpy import save_file
from torch import Tensor

from softmax_temperature import TemperatureScaler, metrics
from softmax_temperature.metrics.checks import ArgumentError
from softmax_temperature.metrics.scores import brier_score
from softmax_temperature.runner.errors import InputError
from softmax_temperature.tools.arrays import (
    check_frame,
    checked_logits,
    read_arrays,
    read_rows,
)
from softmax_temperature.tools.calibrate import calibrate
from softmax_temperature.tools.label_maps import labelled_rows
from softmax_temperature.tools.suggest import suggest_temperature

LOGITS = np.array([[1.5, -0.5], [0.25, 2.0], [0.0, 1.0]])
LABELS = np.array([0, 1, 1])


def write(path: Path) -> Path:
    columns = ["logit_0", "logit_1"]
    table = pd.DataFrame(LOGITS, columns=columns).assign(label=LABELS)
    match path.suffix:
        case ".npz":
            np.savez(path, logits=LOGITS, labels=LABELS)
        case ".safetensors":
            save_file({"logits": LOGITS, "labels": LABELS}, path)
        case ".pt":
            torch.save(
                {
                    "preds": torch.tensor(LOGITS).bfloat16(),
                    "targets": torch.tensor(LABELS),
                },
                path,
            )
        case ".csv":
            table.to_csv(path, index=False)
        case ".parquet":
            table.to_parquet(path)
    return path


@pytest.mark.parametrize("ending", [".npz", ".safetensors", ".pt", ".csv", ".parquet"])
def test_every_type_gives_the_same_arrays(ending: str, tmp_path: Path) -> None:
    found, other = read_rows(
        "logits", write(tmp_path / f"saved{ending}"), None, "validation", None, None
    )
    np.testing.assert_array_equal(found["logits"], LOGITS)
    np.testing.assert_array_equal(found["labels"], LABELS)
    assert other is None


def test_parquet_without_pyarrow_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "saved.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        InputError, match=r"saved\.parquet: cannot be read without .*pyarrow"
    ):
        read_arrays(path, "logits", required=("logits", "labels"))


def test_labels_and_other_rows_may_be_in_one_file_or_in_several(tmp_path: Path) -> None:
    whole, bare, labels = (
        tmp_path / "whole.npz",
        tmp_path / "bare.npy",
        tmp_path / "labels.csv",
    )
    np.savez(
        whole,
        outputs=LOGITS,
        y_true=LABELS,
        validation_logits=2 * LOGITS,
        validation_labels=LABELS,
    )
    np.save(bare, 2 * LOGITS)
    pd.DataFrame(LABELS).to_csv(
        labels, index=False, header=False
    )  # If columns have no names, they are read by position.
    together = read_rows("logits", whole, None, "validation", None, None)
    apart = read_rows(
        "logits", write(tmp_path / "a.npz"), None, "validation", bare, labels
    )
    for found, other in (together, apart):
        assert other is not None
        np.testing.assert_array_equal(found["logits"], LOGITS)
        np.testing.assert_array_equal(other["logits"], 2 * LOGITS)
        np.testing.assert_array_equal(other["labels"], LABELS)
    other_file = write(tmp_path / "b.npz")
    with pytest.raises(
        InputError,
        match=r"validation_labels, but .*b.npz also gives .* Omit --validation",
    ):
        read_rows("logits", whole, None, "validation", other_file, None)
    with pytest.raises(InputError, match="validation rows have no logits"):
        read_rows("logits", bare, labels, "validation", None, labels)


@pytest.mark.parametrize("name", [None, "id"])
def test_the_index_of_a_data_frame_is_not_a_class(
    name: str | None, tmp_path: Path
) -> None:
    pd.DataFrame(LOGITS).assign(label=LABELS).rename_axis(name).to_csv(
        tmp_path / "with_index.csv"
    )
    with pytest.raises(
        InputError, match=r"looks like the index of a data frame.*index=False"
    ):
        read_arrays(
            tmp_path / "with_index.csv", "logits", required=("logits", "labels")
        )


def test_a_pickle_is_not_run(tmp_path: Path) -> None:
    marker = tmp_path / "ran"

    class Payload:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (marker.touch.__func__, (marker,))  # type: ignore[attr-defined,return-value]

    (tmp_path / "evil.pt").write_bytes(pickle.dumps({"logits": Payload()}, protocol=2))
    np.save(
        tmp_path / "evil.npy", np.array([Payload()], dtype=object), allow_pickle=True
    )
    for name in ("evil.pt", "evil.npy"):
        with pytest.raises(InputError, match="cannot be read"):
            read_arrays(tmp_path / name, "logits", required=("logits",))
    assert not marker.exists()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("missing.npz", None, "cannot be read .*No such file"),
        ("logits.txt", b"1 2", "unknown file type"),
        ("cut.npz", b"PK\x03\x04 nothing", "cannot be read"),
        ("words.csv", b"a,b,label\nx,1,0\ny,2,1\n", "'a' is not numeric. Remove it"),
        (
            "names.csv",
            b"a,b,label\n2,1,cat\n1,2,dog\n",
            "'label' is not numeric. Number the classes",
        ),
        ("two.csv", b"label,labels,a\n0,0,1\n", "columns label and labels"),
        ("bare.csv", b"z0,z1\n0.5,1.5\n0.5,1.5\n", "has no labels"),
        ("ending", b"1 2", "has no ending. Save it as one of npz"),
        ("rows.csv", b"z0,z1,label\n", "has no rows"),
    ],
)
def test_what_cannot_be_used_is_refused(
    name: str, content: bytes | None, said: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_arrays(tmp_path / name, "logits", required=("logits", "labels"))


def test_a_folder_and_a_missing_file_are_named_as_such(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        read_arrays(tmp_path, "logits", required=("logits",))
    with pytest.raises(InputError, match="No such file or folder"):
        read_arrays(tmp_path / "folder", "logits", required=("logits",))


@pytest.mark.parametrize("ending", ["npy", "npz", "pt"])
def test_no_remedy_advises_to_unpickle(ending: str, tmp_path: Path) -> None:
    objects = np.array([{"logits": 1}], dtype=object)
    path = tmp_path / f"objects.{ending}"
    if ending == "pt":
        torch.save({"logits": objects}, path)
    elif ending == "npz":
        np.savez(path, logits=objects)
    else:
        np.save(path, objects)
    with pytest.raises(InputError, match="Save plain arrays of numbers") as refused:
        read_arrays(path, "logits", required=("logits",))
    assert "allow_pickle" not in str(refused.value)
    assert "weights_only" not in str(refused.value)


def test_probabilities_are_found_by_their_name_and_asked_for_by_an_option(
    tmp_path: Path,
) -> None:
    np.savez(tmp_path / "p.npz", probs=LOGITS, labels=LABELS)
    arrays, _ = read_rows("probs", tmp_path / "p.npz", None, "validation", None, None)
    np.testing.assert_array_equal(arrays["probs"], LOGITS)
    with pytest.raises(InputError, match=r"has no logits \(it holds: probs.*--probs"):
        read_arrays(tmp_path / "p.npz", "logits", required=("logits", "labels"))


def test_two_arrays_that_may_both_be_the_logits_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "two.npz", outputs=LOGITS, preds=LOGITS, labels=LABELS)
    with pytest.raises(InputError, match="outputs and preds, and each could be"):
        read_arrays(tmp_path / "two.npz", "logits", required=("logits", "labels"))


def test_one_hot_rows_have_exactly_one_1() -> None:
    one_hot = np.eye(2)[[0, 1, 1]]
    assert checked_logits(LOGITS, one_hot)[1].tolist() == [0, 1, 1]
    assert checked_logits(LOGITS, one_hot.astype(bool))[1].tolist() == [0, 1, 1]
    for row, ones in (([1, 1], 2), ([0, 0], 0)):
        rows = np.array([[1, 0], row, [0, 1]])
        with pytest.raises(ValueError, match=f"one-hot, got {ones} ones in row 1"):
            checked_logits(LOGITS, rows)
        with pytest.raises(ValueError, match=f"one-hot, got {ones} ones in row 1"):
            suggest_temperature(LOGITS, rows)


@pytest.mark.parametrize(
    ("labels", "remedy"),
    [
        (LABELS + 1, r"in \[0, 2\), got 2. They run from 1 to 2: subtract 1"),
        (LABELS - 1, r"got -1. Leave rows without .*ignore_index=-1.*-1 to 0, add 1"),
        (np.array([0, 1, 255]), r"got 255. Leave rows without .*ignore_index=255"),
        (np.array([-1, 1, 1]), r"got -1 and 1. Replace -1 by 0"),
        (np.array(["cat", "dog", "dog"]), r"got 'cat'. Number the classes"),
        (np.array(["0", "1", "1"]), r"got '0'. Convert them: .*astype\(int"),
        (LABELS.astype(object), r"\(object\). Convert them: labels.astype\(int"),
        (np.array([None, 0, 1]), r"got None \(object\). Number the classes"),
        (LABELS + 0.5, "whole numbers, got 0.5"),
        (np.array([0, 1, np.inf]), "whole numbers, got inf"),
        (np.array([0, 1, 2**63], dtype=np.uint64), "whole numbers, got 9223372"),
        (LOGITS, "or be one-hot, got float64"),
        (LABELS[:2], r"shape \(3,\), one per row, got \(2,\)"),
        (np.append(LABELS, 0), "one label too many; check whether a header was read"),
    ],
)
def test_each_fault_of_labels_has_its_own_remedy(labels: Any, remedy: str) -> None:
    with pytest.raises(ValueError, match=remedy):
        checked_logits(LOGITS, labels)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16])
def test_labels_that_wrapped_around_are_refused(dtype: type) -> None:
    # 1,000 classes do not fit in eight bits, so class 256 became class 0. 70,000
    # classes do not fit in 16 bits.
    classes = 70_000 if dtype == np.uint16 else 1000
    original = np.linspace(0, classes - 1, 40).astype(np.int64)
    original[-1] = np.iinfo(dtype).max if dtype != np.int8 else 200
    logits = np.broadcast_to(np.linspace(-5, 5, classes), (len(original), classes))
    with pytest.raises(ValueError, match=r"larger numbers have wrapped around.*int64"):
        checked_logits(logits, original.astype(dtype))
    assert checked_logits(logits, original)[1].tolist() == original.tolist()
    # A narrow type may hold the labels if only the first of many classes occur.
    few = np.arange(len(original)) % 100
    assert checked_logits(logits, few.astype(dtype))[1].tolist() == few.tolist()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_lists_of_tensors_are_rows(dtype: torch.dtype) -> None:
    table = torch.tensor(LOGITS, dtype=dtype)
    rows = [row.clone().requires_grad_() for row in table]
    read, labels = checked_logits(rows, list(torch.tensor(LABELS)))
    assert read.tolist() == table.tolist()
    assert labels.tolist() == LABELS.tolist()


def draw_probs(rows: int = 600, scale: float = 3.0) -> tuple[Tensor, Tensor]:
    """Float64 logits of shape (rows, 5), and labels drawn at a temperature of 2."""
    generator = torch.Generator().manual_seed(0)
    logits = scale * torch.randn(rows, 5, generator=generator, dtype=torch.float64)
    probs = torch.softmax(logits / 2, 1)
    return logits, torch.multinomial(probs, 1, generator=generator).squeeze(1)


def test_probabilities_without_a_number_for_the_label_are_refused() -> None:
    # If zeros were accepted, each would become the logarithm of the smallest float64,
    # and the temperature would be in the hundreds.
    logits, labels = draw_probs()
    probs = logits.softmax(1)
    votes = torch.distributions.Multinomial(300, probs)
    torch.manual_seed(0)
    sharp = (2 * logits).softmax(1)
    forms = {
        "votes of 300 trees": votes.sample() / 300,
        "five decimals": (1e5 * sharp).round() / 1e5,
        "sparse": (logits - logits.amax(1, keepdim=True) + 1).clamp(min=0),
        "half precision": (8 * logits).softmax(1).half(),
        "too sharp for float32": (40 * logits).softmax(1).float(),
    }
    forms["sparse"] = forms["sparse"] / forms["sparse"].sum(1, keepdim=True)
    for name, form in forms.items():
        with pytest.raises(ValueError, match=r"of the label are 0 in \d+ of 600") as e:
            checked_logits(form, labels, "probs")
        assert "Give the logits" in str(e.value), name


def test_few_probabilities_that_underflowed_are_read() -> None:
    logits, labels = draw_probs(20_000, 20.0)
    probs = logits.softmax(1).float()
    probs[0] = torch.tensor([0, 1, 1e-40, 0, 0])
    labels[0] = 0
    read, _ = checked_logits(probs, labels, "probs")
    assert read[0, 0].item() == pytest.approx(np.log(2.0**-149))
    # A float64 array that was computed in float32 has zeros where float32 underflowed.
    wide, _ = checked_logits(probs.double(), labels, "probs")
    assert wide.equal(read)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_probability_of_class_1_that_rounds_to_1_has_a_small_complement(
    dtype: torch.dtype,
) -> None:
    margins = torch.linspace(-30, 60, 4000, dtype=torch.float64)
    column = margins.sigmoid().to(dtype)
    labels = (margins > 0).long()
    labels[-1] = 0
    read, _ = checked_logits(column, labels, "probs")
    # The complement is at most a quarter of the distance from 1 to the next number,
    # whereas the smallest number is 2^-149 or 2^-1074.
    assert read[-1, 0].item() == pytest.approx(np.log(torch.finfo(dtype).eps / 4))


@pytest.mark.parametrize("kind", ["logits", "probs"])
@pytest.mark.parametrize("classes", [2, 5, 10])
def test_a_softmax_as_int8_is_neither_logits_nor_probabilities(
    kind: str, classes: int
) -> None:
    generator = np.random.default_rng(0)
    logits = 4 * generator.normal(size=(200, classes))
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = probs.argmax(axis=1)
    labels[::5] = 0
    quantised = np.clip(np.round(256 * probs) - 128, -128, 127)
    for values in (quantised.astype(np.int8), quantised.astype(np.float32)):
        with pytest.raises(ValueError, match=r"quantised softmax.* Add 128, divide"):
            checked_logits(values, labels, kind)
    with pytest.raises(ValueError, match="quantised softmax"):
        TemperatureScaler().fit(quantised, labels)


def test_arrays_may_be_read_backwards() -> None:
    logits = np.random.default_rng(0).normal(size=(300, 3))
    labels = logits.argmax(axis=1)
    labels[::3] = 0
    expected = TemperatureScaler().fit(logits, labels).temperature_
    for table, classes in (
        (logits[::-1], labels[::-1]),
        (logits[:, ::-1], 2 - labels),
        (np.asfortranarray(logits), labels),
    ):
        fitted = TemperatureScaler().fit(table, classes).temperature_
        assert fitted == pytest.approx(expected, rel=1e-6)
        assert checked_logits(table, classes)[0].shape == (300, 3)


def test_whole_numbers_may_be_logits_of_two_classes() -> None:
    first = np.round(8 * np.random.default_rng(0).normal(size=200))
    logits = np.stack([first, -first], axis=1)
    labels = (np.arange(200) % 5 == 0).astype(int)
    assert checked_logits(logits, labels)[0].shape == (200, 2)


@pytest.mark.parametrize("fill", [-1e4, -65504.0, -1e9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_number_that_masks_all_but_the_best_classes_is_no_logit_of_a_label(
    fill: float, dtype: type
) -> None:
    logits, labels = drawn_rows(300)
    third = np.sort(logits, axis=1)[:, [-3]]
    best: Any = np.where(logits < third, fill, logits).astype(dtype)
    masked = best[np.arange(300), labels] == np.float32(fill)
    assert masked.any()
    row = int(masked.argmax())
    for call in (calibrate, TemperatureScaler().fit):
        with pytest.raises(ArgumentError, match=f"row {row}, .* as that of masked"):
            call(best, labels)
    # If every label is among the best classes, the fit is the same as with -inf.
    kept = best[~masked], labels[~masked]
    infinite = np.where(kept[0] < fill / 2, -np.inf, kept[0])
    expected = TemperatureScaler().fit(infinite, kept[1]).temperature_
    found = TemperatureScaler().fit(*kept).temperature_
    assert found == pytest.approx(expected, rel=1e-6)


def test_clipped_logits_and_confident_mistakes_are_logits_of_labels() -> None:
    logits, labels = drawn_rows(300)
    checked_logits(logits.clip(min=0), labels)
    checked_logits(logits.clip(min=-100), labels)
    worst = logits.copy()
    worst[0, labels[0]] = -1e6
    checked_logits(worst, labels)


@pytest.mark.parametrize("fill", [-100.0, -1000.0])
def test_a_number_in_place_of_all_but_the_largest_logits_is_no_logit_of_a_label(
    fill: float,
) -> None:
    logits, labels = drawn_rows(300)
    fifth = np.sort(logits, axis=1)[:, [-5]]
    best = np.where(logits < fifth, fill, logits - logits.max())
    outside = best[np.arange(300), labels] == fill
    assert outside.any()
    for call in (calibrate, TemperatureScaler().fit):
        with pytest.raises(ArgumentError, match=f"row {int(outside.argmax())}, .* as "):
            call(best, labels)
    infinite = np.where(best == fill, -np.inf, best)[~outside]
    expected = TemperatureScaler().fit(infinite, labels[~outside]).temperature_
    found = TemperatureScaler().fit(best[~outside], labels[~outside]).temperature_
    assert found == pytest.approx(expected, rel=1e-6)


def test_logits_clipped_anywhere_are_logits_of_labels() -> None:
    logits, labels = drawn_rows(300)
    for least in (-100, -20, -5, -1):
        checked_logits((10 * logits).clip(min=least), labels)
        checked_logits(np.round(10 * logits).clip(min=least), labels)
    unused = logits.copy()
    unused[:, :2] = -1000
    checked_logits(unused, labels)


@pytest.mark.parametrize(("copies", "dropped"), [(2, 8), (4, 1), (3, 25)])
def test_copies_without_the_last_batch_are_refused(copies: int, dropped: int) -> None:
    logits, labels = drawn_rows(300)
    rows = np.tile(logits, (copies, 1))[:-dropped]
    classes = np.tile(labels, copies)[:-dropped]
    fault = f"of 300 samples {copies} times"
    with pytest.raises(ValueError, match=fault):
        calibrate(rows, classes)
    with pytest.raises(ValueError, match=fault):
        calibrate(rows, classes, fit_on="all")


def test_rounded_scores_and_a_few_copies_are_no_repeated_evaluation() -> None:
    logits, labels = drawn_rows(3000, 2)
    calibrate(np.round(logits), labels, bootstrap=0)
    calibrate(np.r_[logits, logits[:2000]], np.r_[labels, labels[:2000]], bootstrap=0)


def rounded_below_zero() -> tuple[Any, Any]:
    """Float32 probabilities whose last class is one minus the others, and labels."""
    logits, labels = draw_probs(2000, 6.0)
    probs = logits.float().softmax(1)
    probs[:, 4] = 1 - probs[:, :4].sum(1)
    seen = probs.gather(1, labels[:, None])[:, 0] > 0
    assert (probs[seen] < 0).any()
    return probs[seen], labels[seen]


def test_probabilities_that_rounding_moved_out_of_the_interval_are_read() -> None:
    probs, labels = rounded_below_zero()
    clipped = probs.clamp(min=0)
    for kind in (probs, probs.numpy(), probs.half(), probs.bfloat16()):
        read, _ = checked_logits(kind, labels, "probs")
        assert read.isfinite().all()
    read, _ = checked_logits(probs, labels, "probs")
    expected, _ = checked_logits(clipped, labels, "probs")
    assert read.tolist() == expected.tolist()
    for metric in (
        metrics.expected_calibration_error,
        metrics.classwise_calibration_error,
        metrics.adaptive_calibration_error,
        brier_score,
    ):
        assert metric(probs, labels) == metric(clipped, labels)
    column = probs[:, :4].sum(1)
    above = torch.where(column > 0.9, column + 2.4e-7, column)
    assert above.max() > 1
    binary = (labels < 4).long()
    read, _ = checked_logits(above, binary, "probs")
    expected, _ = checked_logits(above.clamp(max=1), binary, "probs")
    assert read.tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_probability_may_miss_0_by_the_rounding_of_its_own_type(
    dtype: torch.dtype,
) -> None:
    unit = torch.finfo(dtype).eps
    probs = torch.tensor([[0.5, 0.25, 0.25]] * 40, dtype=dtype)
    probs[7] = torch.tensor([1, unit, -unit])
    labels = [0] * 40
    # A file may store the numbers in a wider type.
    for table in (probs, probs.float()):
        logits, _ = checked_logits(table, labels, "probs")
        assert logits.isfinite().all()
    with pytest.raises(ValueError, match="in row 7, class 2"):
        checked_logits(probs.float() * 0.999, labels, "probs")


def test_one_wrong_probability_is_named_without_a_circular_remedy() -> None:
    probs, labels = rounded_below_zero()
    probs[7, 2], probs[7, 3] = -0.02, 1.02
    with pytest.raises(ValueError, match=r"got -0.02 in row 7, class 2\. Correct") as e:
        checked_logits(probs, labels, "probs")
    assert "omit" not in str(e.value)
    with pytest.raises(ValueError, match=r"got 1.3 in row 1\. Correct such rows"):
        checked_logits(torch.tensor([0.2, 1.3, 0.7]), [0, 1, 1], "probs")


def test_quantised_logits_of_one_class_are_no_predicted_classes() -> None:
    logits, labels = drawn_rows(600, 2)
    raw = logits[:, 1] - logits[:, 0]
    quantised = np.clip(np.round(4 * raw), -128, 127).astype(np.int8)
    pair = np.stack([np.zeros(600), quantised], axis=1)
    expected = TemperatureScaler().fit(pair, labels).temperature_
    for form in (quantised[:, None], quantised[:, None].astype(np.float32)):
        assert TemperatureScaler().fit(form, labels).temperature_ == expected
    found = calibrate(quantised, labels, bootstrap=0, fit_on="all").temperature
    assert found == pytest.approx(expected)
    # An array of few distinct numbers is also read as logits if some are below -1.
    coarse = np.round(raw).clip(-3, 3).astype(np.int8)
    logits_of_one, _ = checked_logits(coarse, labels)
    assert logits_of_one[:, 1].tolist() == coarse.tolist()
    for classes in (labels, 2 * labels - 1, labels[:9], labels[:, None].astype(float)):
        with pytest.raises(ValueError, match="look like predicted classes"):
            calibrate(classes, labels[: len(classes)], bootstrap=0)
    many = np.arange(600) % 50
    with pytest.raises(ValueError, match="look like predicted classes"):
        calibrate(many, many)


def test_batches_of_different_sizes_in_a_tuple_are_not_taken_for_outputs() -> None:
    logits, labels = draw_probs()
    batches = (logits[:256], logits[256:512], logits[512:])
    with pytest.raises(ValueError, match="a tuple has parts of different shapes"):
        calibrate(batches, labels)


@pytest.mark.parametrize("make", [np.asarray, torch.as_tensor])
def test_the_outputs_of_a_network_in_a_tuple_are_named(make: Any) -> None:
    logits, labels = draw_probs()
    states = make(np.zeros((600, 20, 8)))
    fault = r"a tuple of \(600, 5\), \(600, 20, 8\)\. Give the part with the logits"
    for call in (calibrate, TemperatureScaler().fit):
        with pytest.raises(ValueError, match=fault):
            call((make(logits), states), labels)
        with pytest.raises(
            ValueError, match=r"a tuple of a tuple, \(600,\)\. Give the"
        ):
            call(((make(logits), states), make(labels)), labels)


def test_masked_entries_have_a_remedy_that_runs() -> None:
    labels = np.ma.masked_equal(np.arange(40) % 3, 2)
    logits = np.random.default_rng(0).normal(size=(40, 3))
    with pytest.raises(ValueError, match=r"array\[~array\.mask\]\.data"):
        checked_logits(logits, labels)
    assert labels[~labels.mask].data.shape == (27,)
    table = np.ma.masked_greater(logits, 1)
    with pytest.raises(ValueError, match=r"array\[~array\.mask\.any\(axis=1\)\]"):
        checked_logits(table, np.arange(40) % 3)


@pytest.mark.parametrize(
    ("probs", "remedy"),
    [
        (100 * np.array([[0.2, 0.8]] * 3), "sum of 100 in row 0. Divide each row by"),
        (np.array([[0.2, 0.5]] * 3), "sum of 0.7 in row 0. Divide each row by its sum"),
        (np.array([[-0.2, 0.5]] * 3), r"in row 0. If these are logits, omit kind"),
        (np.eye(2)[[0, 1, 1]], "look like predicted classes. Give the scores"),
        (np.array([1.0, 0.0] * 20), "look like predicted classes. Give the scores"),
    ],
)
def test_each_fault_of_probabilities_has_its_own_remedy(
    probs: Any, remedy: str
) -> None:
    with pytest.raises(ValueError, match=remedy):
        checked_logits(probs, np.arange(len(probs)) % 2, "probs")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ({"x": LOGITS, "y": LABELS}, r"has no logits \(it holds: x, y\)"),
        (
            {"logits": [torch.ones(2, 3)], "labels": [torch.ones(2)]},
            r"\(it holds: logits, a list, labels, a list\). .*torch.cat joins",
        ),
        ({"out": {"logits": torch.ones(2, 3)}}, r"\(it holds: out, a dict\)"),
    ],
)
def test_what_a_file_holds_is_listed_as_it_is(
    content: dict[str, Any], fault: str, tmp_path: Path
) -> None:
    path = tmp_path / "content.pt"
    saved = {
        name: torch.from_numpy(value) if isinstance(value, np.ndarray) else value
        for name, value in content.items()
    }
    torch.save(saved, path)
    with pytest.raises(InputError, match=fault):
        read_rows("logits", path, None, "validation", None, None)


def test_logits_of_another_form_are_named() -> None:
    for logits, labels, fault in (
        (LOGITS.T, LABELS, "look transposed"),
        (LABELS, LOGITS, "look swapped, .* Give the scores first"),
        (LOGITS[:, 0], LOGITS, "look swapped"),
        (np.eye(2)[LABELS], LABELS, "predicted classes"),
        (LOGITS > 0, LABELS, r"must be numbers of shape \(n, classes\), got bool"),
    ):
        with pytest.raises(ValueError, match=fault):
            checked_logits(logits, labels)
    with pytest.raises(ValueError, match="kind must be 'logits' or 'probs', got 'prob"):
        checked_logits(LOGITS, LABELS, "prob")


def test_rounded_probabilities_of_zero_for_a_label_have_no_temperature() -> None:
    probs = np.array([[0.25, 0.75], [1.0, 0.0]] * 20)
    labels = np.array([0, 0] * 20)
    assert checked_logits(probs, labels, "probs")[0].shape == (40, 2)
    with pytest.raises(ValueError, match="rounded to 2 decimals, so the label"):
        checked_logits(probs, 1 - labels, "probs")


@pytest.mark.parametrize("name", ["labels", "targets"])
def test_an_archive_with_labels_and_a_file_of_labels_are_refused_together(
    name: str, tmp_path: Path
) -> None:
    np.savez(tmp_path / "own.npz", logits=LOGITS, **{name: LABELS})
    np.save(tmp_path / "y.npy", LABELS)
    paths = (tmp_path / "own.npz", tmp_path / "y.npy")
    with pytest.raises(InputError, match=rf"holds {name}, but .*y.npy also gives"):
        read_rows("logits", *paths, "validation", None, None)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_logits_are_not_copied(dtype: type) -> None:
    logits = LOGITS.astype(dtype)
    table, _ = checked_logits(logits, LABELS)
    assert np.shares_memory(table.numpy(), logits)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("form", ["read-only", "reversed", "big-endian", "by columns"])
def test_arrays_of_any_layout_are_read_alike(form: str) -> None:
    logits = np.random.default_rng(0).standard_normal((8, 3)).astype(np.float32)
    forms = {
        "read-only": np.frombuffer(logits.tobytes(), np.float32).reshape(8, 3),
        "reversed": logits[::-1, ::-1].copy()[::-1, ::-1],
        "big-endian": logits.astype(">f4"),
        "by columns": np.asfortranarray(logits),
    }
    table, _ = checked_logits(forms[form], np.arange(8) % 3)
    assert table.tolist() == logits.tolist()


SPARSE = torch.eye(3).to_sparse()


@pytest.mark.parametrize(
    ("logits", "fault"),
    [
        (SPARSE, "sparse, quantised or without data"),
        (torch.empty(3, 2, device="meta"), "sparse, quantised or without data"),
        ((LOGITS, LABELS, {}), r"a tuple of \(3, 2\), .*such as predictions\[0\]"),
        (LOGITS.astype(object), r"got object .*such as array.astype\(float\)"),
        (LOGITS > 0, r"got bool .*such as array.astype\(float\)"),
    ],
)
def test_anything_but_a_plain_array_is_refused(logits: Any, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        checked_logits(logits, LABELS)


def test_tensors_of_eight_bits_are_read_as_their_numbers() -> None:
    eight_bits = torch.tensor(LOGITS).to(torch.float8_e4m3fn)
    table, _ = checked_logits(eight_bits, LABELS)
    assert table.tolist() == LOGITS.tolist()  # Eight bits hold these logits exactly.


def test_flags_are_labels_only_of_two_classes() -> None:
    assert checked_logits(LOGITS, LABELS == 1)[1].tolist() == LABELS.tolist()
    with pytest.raises(ValueError, match="are true or false, but there are 3 classes"):
        checked_logits(np.hstack([LOGITS, LOGITS[:, :1]]), LABELS == 1)


# torch raises this warning when it loads a sparse tensor.
@pytest.mark.filterwarnings("ignore:Validating sparse tensor invariants:UserWarning")
def test_files_of_other_encodings_and_layouts_are_refused_in_one_line(
    tmp_path: Path,
) -> None:
    sparse = tmp_path / "sparse.pt"
    torch.save({"logits": SPARSE, "labels": torch.arange(3)}, sparse)
    encoded = tmp_path / "encoded.csv"
    encoded.write_text("logit_0,logit_1,label\n1,2,0\n", encoding="utf-16")
    for path, fault in (
        (sparse, "sparse, quantised or without data"),
        (encoded, "Save it as text in UTF-8"),
    ):
        with pytest.raises(InputError, match=fault):
            read_rows("logits", path, None, "validation", None, None)


def test_a_file_of_sparse_tensors_gives_one_line_without_warnings(
    tmp_path: Path,
) -> None:
    # torch.load warns about such tensors before we refuse them; in the tests a warning
    # is an error.
    path = tmp_path / "sparse.pt"
    torch.save({"logits": SPARSE, "labels": torch.arange(3)}, path)
    with pytest.raises(InputError, match="sparse, quantised or without data"):
        read_rows("logits", path, None, "validation", None, None)


@pytest.mark.parametrize(
    ("logits", "labels", "said"),
    [
        (LOGITS.ravel(), LABELS, r"look flattened, got 6 numbers .*shape \(3, 2\)\.$"),
        ({"logits": LOGITS}, LABELS, "got one dict. Give one of its entries"),
    ],
)
def test_scores_in_another_container_or_order_are_named(
    logits: Any, labels: Any, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        checked_logits(logits, labels)


def test_labels_of_a_binary_network_may_be_floats_in_a_column() -> None:
    column = LOGITS[:, 1:].astype(np.float64) + 0.5
    table, labels = checked_logits(column, LABELS[:, None].astype(np.float32))
    assert table[:, 1].tolist() == column[:, 0].tolist()
    assert labels.tolist() == LABELS.tolist()


@pytest.mark.parametrize(
    ("labels", "remedy"),
    [
        (np.zeros(24, int), r"Join the batches: logits\.reshape\(-1, 5\)\."),
        (np.zeros(6, int), "such as the mean of several views"),
        (np.zeros((6, 4), int), r"logits\.movedim\(-1, 1\) for a tensor"),
    ],
)
def test_logits_in_batches_or_views_have_their_own_remedy(
    labels: Any, remedy: str
) -> None:
    with pytest.raises(ValueError, match=remedy):
        labelled_rows(np.zeros((6, 4, 5)), labels, -100)


@pytest.mark.parametrize("fit_on", ["half", "all"])
def test_samples_that_all_occur_several_times_are_refused(fit_on: str) -> None:
    logits, labels = drawn_rows(300)
    with pytest.raises(ArgumentError, match="each of 300 samples 4 times"):
        calibrate(np.tile(logits, (4, 1)), np.tile(labels, 4), fit_on=fit_on)
    # A loader that fills its last batch repeats a few samples.
    padded = np.concatenate([logits, logits[:5]]), np.concatenate([labels, labels[:5]])
    calibrate(*padded, fit_on=fit_on, bootstrap=0)
    # Few different scores are allowed: they may come from the leaves of a tree.
    calibrate(
        np.tile(logits[:10], (4, 1)),
        np.tile(np.arange(10), 4),
        bootstrap=0,
        fit_on="all",
    )


def test_labels_that_count_from_1_are_refused_without_the_largest() -> None:
    grades = np.arange(5)
    generator = np.random.default_rng(0)
    severity = generator.normal(1.2, 2.0, 900)
    logits = -((severity[:, None] - grades) ** 2)
    labels = (logits / 1.5 + generator.gumbel(size=logits.shape)).argmax(1)
    rows = labels < 4
    logits, labels = logits[rows], labels[rows]
    for fitted in (calibrate, TemperatureScaler().fit):
        with pytest.raises(ArgumentError, match="if they count from 1"):
            fitted(logits, labels + 1)
    frame = pd.DataFrame(logits, columns=range(1, 6))
    with pytest.raises(ArgumentError, match="if they count from 1"):
        calibrate(frame, pd.Series(labels + 1))
    # Samples without class 0 are read as they are.
    calibrate(logits[labels > 0], labels[labels > 0], bootstrap=0)


@pytest.mark.parametrize(
    ("dtype", "classes", "fitting"),
    [(torch.bfloat16, 400, 256), (torch.float16, 3000, 2048)],
)
def test_labels_that_their_type_has_rounded_are_refused(
    dtype: torch.dtype, classes: int, fitting: int, tmp_path: Path
) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(200, classes, generator=generator)
    labels = logits.argmax(1)
    labels[::2] = torch.randint(classes - 1, (100,), generator=generator)
    labels[0] = 1
    rounded = labels.to(dtype)
    for fitted in (calibrate, TemperatureScaler().fit):
        with pytest.raises(ArgumentError, match="rounds whole numbers"):
            fitted(logits, rounded)
    torch.save({"logits": logits, "labels": rounded}, tmp_path / "rows.pt")
    with pytest.raises(InputError, match="rounds whole numbers"):
        read_arrays(tmp_path / "rows.pt", "logits", required=("logits", "labels"))
    exact = labels < fitting
    scaler = TemperatureScaler()
    right = scaler.fit(logits[exact], labels[exact]).temperature_
    assert scaler.fit(logits[exact], rounded[exact]).temperature_ == right


def test_columns_with_text_after_the_number_are_in_numerical_order(
    tmp_path: Path,
) -> None:
    logits, labels = drawn_rows(100, classes=12)
    table = pd.DataFrame(logits, columns=[f"class_{c}_logit" for c in range(12)])
    with pytest.raises(ArgumentError, match="not in numerical order"):
        calibrate(table[sorted(table.columns)], labels)
    path = tmp_path / "rows.csv"
    table[sorted(table.columns)].assign(label=labels).to_csv(path, index=False)
    arrays = read_arrays(
        path, "logits", required=("logits", "labels"), columns=["class_*_logit"]
    )
    np.testing.assert_allclose(arrays["logits"], logits)


def drawn_rows(rows: int, classes: int = 10) -> tuple[Any, Any]:
    """Logits, and labels drawn from their softmax at temperature 1.6."""
    generator = np.random.default_rng(0)
    logits = generator.normal(0, 4, (rows, classes))
    noise = generator.gumbel(size=logits.shape)
    return logits, (logits / 1.6 + noise).argmax(1)


@pytest.mark.parametrize(
    "entry",
    [
        calibrate,
        lambda pair, labels: TemperatureScaler().fit(pair, labels),
        suggest_temperature,
    ],
)
@pytest.mark.parametrize("make", [np.asarray, torch.as_tensor])
def test_a_pair_in_place_of_one_array_is_refused(entry: Any, make: Any) -> None:
    logits, labels = draw_probs()
    fault = (
        r"a tuple of two, of shapes \(600, 5\) and \(600,\)\. Pass scores and labels"
    )
    with pytest.raises(ValueError, match=fault):
        entry((make(logits), make(labels)), labels)


def test_two_tables_in_a_tuple_are_not_maps() -> None:
    logits, labels = draw_probs()
    with pytest.raises(ValueError, match=r"hold 2 tables of shape \(600, 5\)"):
        calibrate((logits, logits), labels)


def test_a_truncated_table_of_probabilities_is_named_as_one() -> None:
    logits, labels = draw_probs()
    probs = logits.softmax(1)
    some = labels < 4
    with pytest.raises(ValueError, match=r"Columns may be missing: give one for every"):
        checked_logits(probs[some, :4], labels[some], "probs")
    largest = probs.topk(3)[0]
    with pytest.raises(ValueError, match=r"Columns may be missing: give one for every"):
        checked_logits(largest, labels.clamp(max=2), "probs")
    for whole in (100 * probs, 0.5 * probs, probs + 0.1 * probs[:, :1]):
        with pytest.raises(
            ValueError, match=r"in row \d+\. Divide each row by its sum"
        ):
            checked_logits(whole, labels, "probs")
    with pytest.raises(ValueError, match="the softmax of logits over all classes"):
        brier_score(probs[some, :4], labels[some])


@pytest.mark.parametrize("place", [0, 5])
@pytest.mark.parametrize("summary", ["largest", "confidence", "energy"])
def test_a_column_that_summarises_the_others_is_refused(
    summary: str, place: int
) -> None:
    generator = np.random.default_rng(0)
    logits = 3 * generator.normal(size=(300, 5))
    labels = (logits + generator.gumbel(size=logits.shape)).argmax(axis=1)
    sums = np.exp(logits).sum(axis=1)
    column = {
        "largest": logits.max(axis=1),
        "confidence": np.exp(logits.max(axis=1)) / sums,
        "energy": -np.log(sums),
    }[summary]
    table = np.insert(logits, place, column, axis=1)
    numbers = labels + 1 if place == 0 else labels
    with pytest.raises(ValueError, match=rf"column {place} equals the .* Leave it out"):
        checked_logits(table, numbers)
    checked_logits(logits, labels)
    checked_logits(np.insert(logits, place, 0, axis=1), numbers)


def test_one_diverged_row_makes_no_column_a_summary() -> None:
    generator = np.random.default_rng(0)
    logits = 3 * generator.normal(size=(300, 5))
    labels = (logits + generator.gumbel(size=logits.shape)).argmax(axis=1)
    logits[77] = [-1e7, 1e7, 0, 0, 0]
    checked_logits(logits, labels)
    frame = pd.DataFrame(logits, columns=[f"logit_{place}" for place in range(5)])
    check_frame(frame, labels, "logits")


def test_percentages_in_one_column_are_named_as_they_were_given() -> None:
    percentages = 100 * torch.rand(500, generator=torch.Generator().manual_seed(0))
    labels = (percentages > 50).long()
    message = (
        rf"probs must be numbers in \[0, 1\], got {percentages[0]:.6g} in row 0. "
        "Divide percentages by 100."
    )
    with pytest.raises(ArgumentError, match=message):
        calibrate(percentages, labels, kind="probs")


def test_negated_log_probabilities_are_named_with_the_way_back() -> None:
    logits = torch.randn(500, 10, generator=torch.Generator().manual_seed(0))
    surprisals = -logits.double().log_softmax(1)
    labels = torch.arange(500) % 10
    with pytest.raises(ArgumentError, match=r"negated log-probabilities, give exp\(-"):
        calibrate(surprisals, labels, kind="probs")

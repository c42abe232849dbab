"""Tests the focal stages on documents and trees: vectors, best epoch and tables."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from softmax_temperature.papers.focal import collect
from softmax_temperature.papers.focal.study import CLASSIFICATION, MAIN, read
from softmax_temperature.papers.focal.tables import by_loss
from softmax_temperature.papers.shared.files import read_csv
from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import digest_of_file, open_artifact
from softmax_temperature.stages.fetch import fetch
from softmax_temperature.stages.focal import train_focal
from softmax_temperature.stages.focal_evaluation import evaluate_focal
from tests.pipeline.whole_runs import (
    changed,
    collect_without_claims,
    finish,
    fitted,
    run,
    run_stages,
    stored,
    weights,
    with_kills,
    with_other_test_data,
)

RESULTS, VECTORS = Path("results/tiny/focal"), Path("raw/vectors.txt")
WIDTH, WORDS = (
    4,
    ("good", "bad", "film", "plot", "the", "not"),
)  # The words of the data that have vectors.
RECIPE: dict[str, Any] = {
    "epochs": 3,
    "planned_epochs": 6,
    "batch_size": 8,
    "optimizer": "adagrad",
    "lr": 0.05,
    "weight_decay": 0.0,
    "schedule": {"name": "constant"},
    "reduction": "mean",
    "clip_norm": None,
    "crop_padding": 0,
    "mean": None,
    "std": None,
}
pytestmark = pytest.mark.usefixtures("in_project")


def write_data() -> None:
    """Write 48 training, 16 dev and 24 test sentences, plain and parsed.

    Also write word vectors for most of their words.
    """
    VECTORS.parent.mkdir(exist_ok=True)
    texts, trees = [], []
    for split, count in (("train", 48), ("dev", 16), ("test", 24)):
        for number in range(count):
            good, topic = number % 2, ("film", "plot")[number // 2 % 2]
            word, label = ("bad", "good")[good], 1 + 2 * good
            texts.append(
                {
                    "split": split,
                    "label": good,
                    "text": f"the {topic} is {word}, {number} .",
                }
            )
            inside = f"({label} (2 is) ({label} {word}))"
            if number % 3 == 0:
                inside, label = f"({4 - label} (2 not) {inside})", 4 - label
            trees.append(
                {"split": split, "tree": f"({label} (2 (2 the) (2 {topic})) {inside})"}
            )
    for name, rows in (("reviews", texts), ("parsed", trees)):
        VECTORS.with_name(f"{name}.jsonl").write_text(
            "\n".join(json.dumps(row) for row in rows)
        )
    lines = [
        f"{word} {' '.join([f'{place + 0.5}'] * WIDTH)}"
        for place, word in enumerate(WORDS)
    ]
    VECTORS.write_text("\n".join([*lines, "unrelated 1 2 3 4"]))


@pytest.fixture(scope="module")
def params(tiny: Params) -> Params:
    sizes = {"vocabulary_size": 20, "embedding": WIDTH}
    text = {"vocabulary": 20, "length": 12, "keep": "start"}
    common = {
        "arms": ["CE", "FLSD-53"],
        "text": text,
        "select": "best_validation",
        "recipe": RECIPE,
    }
    reviews, parsed = (
        {"dataset": name, "network": name, **common} for name in ("reviews", "parsed")
    )
    parsed |= {"printed_dataset": "SST Binary", "printed_network": "Tree-LSTM"}
    changes: dict[str, Any] = {
        "data/root": "raw",
        "datasets": {"reviews": {}, "parsed": {}},
        "papers": ["focal"],
        "networks/": {
            "reviews": {
                "architecture": "text_cnn",
                "arguments": {**sizes, "filters": 4, "width": 2, "dense": 4},
            },
            "parsed": {
                "architecture": "tree_lstm",
                "arguments": {**sizes, "hidden": 4},
            },
        },
        "focal/seeds": 1,
        "focal/translation": None,
        "focal/watching/every": 9,  # This must not limit the choice of the best epoch.
        "focal/tasks": {
            "reviews": reviews,
            "reviews-frozen": reviews
            | {"embeddings": {"file": VECTORS.name, "step": 0.0}},
            "parsed": parsed | {"embeddings": {"file": VECTORS.name, "step": 0.5}},
        },
    }
    return changed(tiny, changes)


@pytest.fixture(scope="module")
def project(make_project: Callable[[str], Path], params: Params) -> Path:
    def work() -> None:
        write_data()
        run_stages(params, collect)
        collect_without_claims(params, collect)

    return finish(make_project("texts"), work)


def record(task: str, arm: str = "CE") -> dict[str, Any]:
    found: dict[str, Any] = stored(train_focal, f"{task}/{arm}/0", "record")
    return found


def test_the_record_counts_words_with_vectors_and_frozen_ones_are_no_parameters() -> (
    None
):
    learned, frozen, tuned = (
        record(task)["embeddings"] for task in ("reviews", "reviews-frozen", "parsed")
    )
    assert (learned["file"], learned["covered"]) == (None, None)
    # The 18 words are: the, film, plot, is, bad, good, the comma, the full stop, and
    # numbers. Five of them have vectors.
    assert frozen["words"] == learned["words"] == 18
    assert frozen["covered"] == pytest.approx(5 / 18)
    assert 5 / 18 < frozen["covered_tokens"] < 1  # All five are frequent.
    assert (tuned["words"], tuned["covered"]) == (7, pytest.approx(6 / 7))
    assert frozen["sha256"] == digest_of_file(VECTORS)
    still, moved = (
        weights(train_focal, f"{task}/CE/0")["embedding.weight"]
        for task in ("reviews-frozen", "parsed")
    )
    assert {tuple(row) for row in still.tolist()} >= {
        (place + 0.5,) * WIDTH for place in range(5)
    }
    assert (
        record("reviews")["parameters"] - record("reviews-frozen")["parameters"]
        == still.numel()
    )
    assert not {tuple(row) for row in moved.tolist()} & {
        (place + 0.5,) * WIDTH for place in range(6)
    }


def test_the_epoch_that_validation_data_choose_is_evaluated_and_the_last_one_too() -> (
    None
):
    runs = read(RESULTS)
    accuracy = runs.measured("accuracy")
    evaluated = runs.measured("temperature", split="test")
    for number, row in runs.select(CLASSIFICATION).iterrows():
        own = accuracy[accuracy["run"] == number]
        by_epoch = own.set_index(["split", "epoch"])["value"]
        splits = ("train", "validation", "test")
        assert set(by_epoch.index) == {(name, e) for name in splits for e in (1, 2, 3)}
        assert row["selected_epoch"] == by_epoch["validation"].idxmax()
        epochs = set(evaluated[evaluated["run"] == number]["epoch"])
        assert epochs == {row["selected_epoch"], 3}
        cell = row["evaluation_cell"].removeprefix("focal/evaluation/")
        for scores in stored(evaluate_focal, cell, "runs"):
            is_last = scores["evaluated"] == "last"
            epoch = 3 if is_last else row["selected_epoch"]
            assert scores["accuracy"] == pytest.approx(by_epoch["test", epoch])


def test_tables_say_where_words_come_from() -> None:
    main = read(RESULTS).select(MAIN).drop_duplicates("experiment")
    embeddings = main.set_index("experiment")["embeddings"]
    frozen, tuned = (
        record(task)["embeddings"]["covered_tokens"]
        for task in ("reviews-frozen", "parsed")
    )
    parsed = f"vectors.txt, 85.7% of 7 words, {tuned:.1%} of the text, tuned"
    assert embeddings.to_dict() == {
        "reviews": "learned",
        "reviews-frozen": (
            f"vectors.txt, 27.8% of 18 words, {frozen:.1%} of the text, frozen"
        ),
        "parsed": parsed,
    }
    wide = by_loss(read_csv(RESULTS / "tables" / "table_1.csv"))
    row = wide[
        (wide["dataset"] == "SST Binary") & (wide["embeddings"].fillna("") != "")
    ].iloc[0]
    shown = parsed.replace("%", " %")
    assert (row["embeddings"], row["differs"]) == (shown, "3 of 6 epochs")


@pytest.mark.parametrize("task", ["reviews", "parsed"])
def test_an_interrupted_training_ends_with_the_same_bytes(
    task: str, params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = train_focal.output / task / "FLSD-53/0"
    whole = open_artifact(folder).files
    monkeypatch.chdir(tmp_path)
    write_data()
    run(params, fetch, [task])
    assert with_kills(lambda: run(params, train_focal, [f"{task}/FLSD-53/0"]), 2) == [
        1,
        2,
        3,
    ]
    assert open_artifact(folder).files == whole


def test_the_chosen_epoch_of_trees_does_not_move_with_the_test_data(
    project: Path,
    params: Params,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cell = "parsed/CE/0"
    files = ("weights.safetensors", "record.json", "history.json")
    expected = fitted(train_focal, cell, *files)
    scores = stored(train_focal, cell, "history")
    monkeypatch.chdir(with_other_test_data(project, tmp_path))
    write_data()
    run(params, train_focal, [cell])
    assert fitted(train_focal, cell, *files) == expected
    assert stored(train_focal, cell, "history") != scores


def test_a_changed_file_of_vectors_is_noticed(params: Params) -> None:
    before, content = (
        {cell.name: cell.parameters for cell in train_focal.cells(params)},
        VECTORS.read_text(),
    )
    VECTORS.write_text(content + "\n. 1 1 1 1")
    after = {cell.name: cell.parameters for cell in train_focal.cells(params)}
    VECTORS.write_text(content)
    stale = {
        f"{task}/{arm}/0"
        for task in ("reviews-frozen", "parsed")
        for arm in ("CE", "FLSD-53")
    }
    assert {name for name in before if before[name] != after[name]} == stale

"""The stages of the focal paper on documents and parse trees: word vectors, the best epoch, and what tables say."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from softmax_temperature.papers.focal import tables
from softmax_temperature.papers.focal.collect import STAGES, collect
from softmax_temperature.papers.focal.records import read_records
from softmax_temperature.papers.shared.tables import read_csv
from softmax_temperature.params import Params, validate
from softmax_temperature.runner.artifacts import digest_of_file, open_artifact
from softmax_temperature.runner.cells import CellsFailed, run_cells
from softmax_temperature.stages import fetch, train_focal
from softmax_temperature.training import BestEpoch

RESULTS = Path("results/tiny/focal")
WIDTH, WORDS = 4, ("good", "bad", "film", "plot", "the", "not", "is", ".")
COVERED = 6  # Of these words the file below has the first six.
TEXT = {"vocabulary": 20, "length": 12, "keep": "start"}
RECIPE = {"epochs": 3, "planned_epochs": 6, "batch_size": 8, "optimizer": "adagrad", "lr": 0.05, "weight_decay": 0.0}
RECIPE |= {"schedule": {"name": "constant"}, "reduction": "mean", "clip_norm": None, "crop_padding": 0}
RECIPE |= {"mean": None, "std": None}


def write_data(root: Path) -> None:
    """48 training, 16 dev and 24 test sentences, plain and parsed, and vectors for most of their words."""
    root.mkdir(parents=True, exist_ok=True)
    texts, trees = [], []
    for split, count in (("train", 48), ("dev", 16), ("test", 24)):
        for number in range(count):
            good, topic = number % 2, ("film", "plot")[number // 2 % 2]
            word, label = ("bad", "good")[good], 1 + 2 * good
            texts.append({"split": split, "label": good, "text": f"the {topic} is {word}, {number} ."})
            inside = f"({label} (2 is) ({label} {word}))"
            if number % 3 == 0:
                inside, label = f"({4 - label} (2 not) {inside})", 4 - label
            trees.append({"split": split, "tree": f"({label} (2 (2 the) (2 {topic})) {inside})"})
    for name, rows in (("reviews", texts), ("parsed", trees)):
        (root / f"{name}.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    lines = [f"{word} {' '.join([f'{place + 0.5}'] * WIDTH)}" for place, word in enumerate(WORDS[:COVERED])]
    (root / "vectors.txt").write_text("\n".join([*lines, "unrelated 1 2 3 4"]))


def make_params(tiny: Params) -> Params:
    content = tiny.model_dump()
    content["data"]["root"] = "raw"
    content["datasets"] |= {"reviews": {}, "parsed": {}}
    sizes = {"vocabulary_size": 20, "embedding": WIDTH}
    content["networks"] |= {
        "cnn": {"architecture": "text_cnn", "arguments": {**sizes, "filters": 4, "width": 2, "dense": 4}},
        "tree": {"architecture": "tree_lstm", "arguments": {**sizes, "hidden": 4}},
    }
    common = {"arms": ["CE", "FLSD-53"], "text": TEXT, "select": "best_validation", "recipe": RECIPE}
    printed = {"printed_dataset": "SST Binary", "printed_network": "Tree-LSTM"}
    content["focal"]["seeds"] = 1
    content["focal"]["watching"]["every"] = 9  # Which the search for the best epoch must not heed.
    content["focal"]["tasks"] = {
        "reviews": {"dataset": "reviews", "network": "cnn", **common},
        "reviews-frozen": {
            "dataset": "reviews",
            "network": "cnn",
            **common,
            "embeddings": {"file": "vectors.txt", "step": 0.0},
        },
        "parsed": {
            "dataset": "parsed",
            "network": "tree",
            **common,
            **printed,
            "embeddings": {"file": "vectors.txt", "step": 0.5},
        },
    }
    return validate(content, where="texts")


def prepare(params: Params) -> None:
    write_data(Path("raw"))
    cells = [cell for cell in fetch.cells(params) if cell.name in {"reviews", "parsed"}]
    run_cells(cells, output=fetch.OUTPUT, compute=params.compute, seed=params.seed)


def run(params: Params, stage: Any) -> None:
    run_cells(stage.cells(params), output=stage.OUTPUT, compute=params.compute, seed=params.seed)


@pytest.fixture(scope="module")
def params(tiny: Params) -> Params:
    return make_params(tiny)


@pytest.fixture(scope="module")
def project(make_project: Callable[[str], Path], params: Params) -> Path:
    folder = make_project("texts")
    before = Path.cwd()
    os.chdir(folder)
    try:
        prepare(params)
        for stage in STAGES[1:]:
            run(params, stage)
        collect(params, RESULTS)
    finally:
        os.chdir(before)
    return folder


@pytest.fixture(autouse=True)
def _in_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)


def record(cell: str) -> dict[str, Any]:
    found: dict[str, Any] = open_artifact(train_focal.OUTPUT / cell).json("record.json")
    return found


def test_the_record_says_which_words_have_vectors() -> None:
    learned, frozen, tuned = (record(f"{task}/CE/0")["embeddings"] for task in ("reviews", "reviews-frozen", "parsed"))
    assert (learned["file"], learned["covered"]) == (None, None)
    # the, film, plot, is, bad, good, the comma, the point, and numbers: 18 words in all, of which five have vectors.
    assert frozen["words"] == learned["words"] == 18
    assert frozen["covered"] == pytest.approx(5 / 18)
    assert 5 / 18 < frozen["covered_tokens"] < 1  # Those five are among the frequent ones.
    assert (tuned["words"], tuned["covered"]) == (7, pytest.approx(6 / 7))
    assert frozen["sha256"] == digest_of_file(Path("raw/vectors.txt"))


def weights(cell: str) -> torch.Tensor:
    return open_artifact(train_focal.OUTPUT / cell).tensors("weights.safetensors")["embedding.weight"]


def test_frozen_vectors_are_those_of_the_file_and_no_parameters() -> None:
    rows = weights("reviews-frozen/CE/0")
    assert {tuple(row) for row in rows.tolist()} >= {(place + 0.5,) * WIDTH for place in range(5)}
    assert record("reviews/CE/0")["parameters"] - record("reviews-frozen/CE/0")["parameters"] == rows.numel()
    moved = weights("parsed/CE/0")
    assert not {tuple(row) for row in moved.tolist()} & {(place + 0.5,) * WIDTH for place in range(6)}


@pytest.mark.parametrize("task", ["reviews", "parsed"])
def test_what_is_evaluated_is_the_epoch_that_validation_data_choose(task: str) -> None:
    for arm in ("CE", "FLSD-53"):
        artifact = open_artifact(train_focal.OUTPUT / task / arm / "0")
        history = pd.DataFrame(artifact.json("history.json"))
        assert set(history["split"]) == {"train", "validation", "test"}
        validation = history[history["split"] == "validation"].set_index("epoch")["accuracy"]
        assert validation.index.tolist() == [1, 2, 3]
        epoch = record(f"{task}/{arm}/0")["selected_epoch"]
        assert epoch == validation.idxmax()
        logits = artifact.tensors("logits.safetensors")
        for split in ("validation", "test"):
            accuracy = (logits[f"{split}.logits"].argmax(1) == logits[f"{split}.labels"]).double().mean().item()
            then = history[(history["split"] == split) & (history["epoch"] == epoch)]["accuracy"].item()
            assert accuracy == pytest.approx(then)


def test_the_last_epoch_is_evaluated_too() -> None:
    records = read_records(RESULTS)
    test = records.history[records.history["split"] == "test"]
    last = test[test["epoch"] == 3].merge(
        records.runs.query("evaluated == 'last' and scaling == 'none'"), on=["task", "arm", "seed"]
    )
    assert len(last) == len(records.trainings)
    assert last["accuracy_x"].tolist() == pytest.approx(last["accuracy_y"].tolist())
    assert last["ece"].tolist() == pytest.approx(last["expected_calibration_error"].tolist(), abs=1e-5)


def test_tables_say_where_words_come_from_and_stand_beside_the_printed_numbers() -> None:
    records = read_records(RESULTS)
    found = records.tasks.set_index("task")["embeddings"]
    frozen, tuned = (record(f"{task}/CE/0")["embeddings"]["covered_tokens"] for task in ("reviews-frozen", "parsed"))
    parsed = f"vectors.txt, 85.7% of 7 words, {tuned:.1%} of the text, tuned"
    assert found.to_dict() == {
        "reviews": "learned",
        "reviews-frozen": f"vectors.txt, 27.8% of 18 words, {frozen:.1%} of the text, frozen",
        "parsed": parsed,
    }
    wide = tables.wide(read_csv(RESULTS / "tables" / "table_1.csv"))
    row = wide[(wide["dataset"] == "SST Binary") & (wide["embeddings"].fillna("") != "")].iloc[0]
    assert row["embeddings"] == parsed
    assert row["differs"] == "3 of 6 epochs"
    assert wide.query("dataset == '20 Newsgroups'")["status"].str.contains("not run: profile text_cpu").any()
    claim = next(
        row for row in json.loads((RESULTS / "claims.json").read_text()) if row["id"] == "flsd-53-calibrates-on-texts"
    )
    assert claim["n"] == 3
    assert not (RESULTS / "tables" / "panels.safetensors").exists()


def files(cell: str) -> dict[str, str]:
    return dict(open_artifact(train_focal.OUTPUT / cell).files)


@pytest.mark.parametrize("task", ["reviews", "parsed"])
def test_an_interrupted_training_ends_with_the_same_bytes(
    make_project: Callable[[str], Path], params: Params, monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    whole = files(f"{task}/FLSD-53/0")
    monkeypatch.chdir(make_project(f"interrupted-{task}"))
    prepare(params)
    original, interrupted = BestEpoch.after_epoch, []

    def stop_once(best: BestEpoch, trainer: Any) -> None:
        original(best, trainer)
        if trainer.epochs_done == 2 and not interrupted:
            interrupted.append(task)
            raise KeyError("as if it were killed")

    monkeypatch.setattr(BestEpoch, "after_epoch", stop_once)
    cells = [cell for cell in train_focal.cells(params) if cell.name == f"{task}/FLSD-53/0"]
    with pytest.raises(CellsFailed, match="as if it were killed"):
        run_cells(cells, output=train_focal.OUTPUT, compute=params.compute, seed=params.seed)
    run_cells(cells, output=train_focal.OUTPUT, compute=params.compute, seed=params.seed)
    assert files(f"{task}/FLSD-53/0") == whole


# ---- refusals


def changed(params: Params, task: str, **values: Any) -> Params:
    content = params.model_dump()
    content["focal"]["tasks"] = {task: content["focal"]["tasks"][task] | values}
    return validate(content, where="changed")


def test_a_changed_file_of_vectors_is_noticed(params: Params) -> None:
    before = {cell.name: dict(cell.parameters) for cell in train_focal.cells(params)}
    path, content = Path("raw/vectors.txt"), Path("raw/vectors.txt").read_text()
    path.write_text(content + "\n. 1 1 1 1")
    after = {cell.name: dict(cell.parameters) for cell in train_focal.cells(params)}
    path.write_text(content)
    assert {name for name in before if before[name] != after[name]} == {
        f"{task}/{arm}/0" for task in ("reviews-frozen", "parsed") for arm in ("CE", "FLSD-53")
    }


def test_a_task_on_texts_has_to_say_how_they_are_read(params: Params) -> None:
    wrong = changed(params, "reviews", text=None, arms=["CE"])
    with pytest.raises(CellsFailed, match=r"data set reviews: holds texts\. Give the task `text`"):
        run(wrong, train_focal)

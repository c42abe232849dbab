"""The translation stage, from files of sentences to the tables of the paper, on the smallest parameters."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer

from softmax_temperature.data.phrases import read_farm
from softmax_temperature.metrics import expected_calibration_error
from softmax_temperature.papers.focal.collect import COLUMNS, translation_tables
from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.runner.cells import CellsFailed
from softmax_temperature.runner.errors import InputError
from softmax_temperature.scaling import TEMPERATURE_GRID
from softmax_temperature.stages import focal_appendices
from softmax_temperature.stages.focal_appendices import TRANSLATION_ARMS as ARMS
from softmax_temperature.stages.focal_appendices import train_translation
from softmax_temperature.training.translation.network import make_network, translate
from softmax_temperature.training.translation.scores import bleu
from softmax_temperature.training.translation.sentences import PADDING, SentencePairs
from softmax_temperature.training.translation.vocabulary import Vocabulary
from tests.pipeline.whole_runs import changed, finish, run, stored, weights, weights_are_finite, with_kills

SENTENCES = Path("data/raw/sentences")
CHANGES: dict[str, Any] = {
    "data/root": "data/raw",
    "focal/translation/": {"dataset": "sentences", "train_limit": None, "validation_limit": 6, "test_limit": None},
    "focal/translation/vocabulary": 80,
    "focal/translation/longest": 60,
    "focal/translation/network/dropout": 0.1,
    "focal/translation/recipe/": {"epochs": 3, "planned_epochs": 3, "batch_size": 200, "lr": 0.02},
    "focal/translation/temperatures": [0.75, 1.5],
    "focal/translation/search/": {"length_penalty": 4.0, "extra_length": 3, "sentences": 3},
}
SIZES = {"train": 30, "validation": 8, "test": 5}
pytestmark = pytest.mark.usefixtures("in_project")


@pytest.fixture(scope="module")
def params(tiny: Params) -> Params:
    return changed(tiny, CHANGES)


def write_data() -> None:
    SENTENCES.mkdir(parents=True)
    for split, (english, german) in read_farm(seed=0).items():
        for language, sentences in (("en", english), ("de", german)):
            lines = "".join(f"{sentence}\n" for sentence in sentences[: SIZES[split]])
            (SENTENCES / f"{split}.{language}").write_text(lines, encoding="utf-8")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, params: Params) -> Path:
    return finish(tmp_path_factory.mktemp("translation"), lambda: (write_data(), run(params, train_translation)))


def calibration(cell: str, split: str) -> dict[float, dict[str, Any]]:
    return {row["temperature"]: row for row in stored(train_translation, cell, "calibration") if row["split"] == split}


def trained(cell: str, params: Params) -> tuple[Any, Vocabulary, list[Any], list[str]]:
    """A network and its vocabulary, from their files alone, and the test sentences, in numbers and as references."""
    assert params.focal.translation
    text = open_artifact(train_translation.output / cell).path("vocabulary.json").read_text()
    vocabulary = Vocabulary(Tokenizer.from_str(text))
    network = make_network(vocabulary.size, params.focal.translation.network, seed=5)
    own = weights(train_translation, cell)
    network.load_state_dict(own | {"embedding.weight": own["classifier.weight"]})
    sides = [(SENTENCES / f"test.{language}").read_text().splitlines() for language in ("en", "de")]
    return network.eval(), vocabulary, list(map(vocabulary.encode, sides)), sides[1]


def test_tables_are_complete_and_the_temperature_is_that_of_least_validation_error(params: Params) -> None:
    tables = translation_tables(params)
    runs, curves, history = (tables[f"translation_{name}"] for name in ("runs", "curves", "history"))
    assert {name: tuple(table.columns) for name, table in tables.items()} == {name: COLUMNS[name] for name in tables}
    assert [tuple(names) for names in runs[["arm", "seed"]].to_numpy()] == [(arm, s) for arm in ARMS for s in range(2)]
    assert (len(curves), len(history)) == (6 * 2, 6 * 3)
    assert not any(table.isna().any().any() for table in tables.values())
    shares = ["ece", "ece_after_scaling", "accuracy", "bleu", "bleu_after_scaling", "best_bleu"]
    assert runs[shares].stack().between(0, 1).all()
    assert (runs["best_bleu"] >= runs[["bleu", "bleu_after_scaling"]].max(axis=1)).all()
    for row in runs.to_dict("records"):
        validation, test = (calibration(f"{row['arm']}/{row['seed']}", split) for split in ("validation", "test"))
        assert set(validation) == {*TEMPERATURE_GRID, 0.75, 1.5}
        assert validation[row["temperature"]]["ece"] == min(validation[at]["ece"] for at in TEMPERATURE_GRID)
        assert (row["ece"], row["ece_after_scaling"]) == (test[1.0]["ece"], test[row["temperature"]]["ece"])


def test_the_stored_calibration_is_that_of_the_stored_weights(params: Params) -> None:
    network, _, sides, _ = trained("FL/1", params)
    pairs = SentencePairs(*sides)
    with torch.no_grad():
        logits = network(pairs.teacher_forced(torch.arange(len(pairs)))).double()
    padded = pairs.targets.padded(torch.arange(len(pairs)))
    labels = padded[padded != PADDING]
    for temperature in (0.75, 1.0, 1.5):
        probs, row = (logits / temperature).softmax(1), calibration("FL/1", "test")[temperature]
        assert row["ece"] == pytest.approx(expected_calibration_error(probs, labels).item(), abs=1e-6)
        assert row["nll"] == pytest.approx(-probs.gather(1, labels[:, None]).log().mean().item(), rel=1e-4)
        assert row["tokens"] == len(labels)


def test_the_epoch_with_the_least_validation_nll_is_evaluated() -> None:
    for arm in ARMS:
        record = stored(train_translation, f"{arm}/0", "record")
        nll = {row["epoch"]: row["nll"] for row in record["history"]}
        assert nll[record["selected_epoch"]] == min(nll.values())
        assert calibration(f"{arm}/0", "validation")[1.0]["nll"] == pytest.approx(min(nll.values()))


def test_bleu_is_that_of_the_translations_and_these_are_the_networks(params: Params) -> None:
    translations, rows = (stored(train_translation, "CE/0", name) for name in ("translations", "bleu"))
    best = translation_tables(params)["translation_runs"]["temperature"].iloc[0]
    assert {row["temperature"] for row in rows} == {0.75, 1.0, 1.5, best}
    network, vocabulary, (english, _), german = trained("CE/0", params)
    for row in rows:
        assert row["bleu"] == bleu(translations[str(row["temperature"])], german)["bleu"]
    assert params.focal.translation
    found = translate(network, english, params.focal.translation.search, temperature=1.5, device="cpu")
    assert vocabulary.decode(found) == translations["1.5"]
    assert any(translations["1.5"])


def test_a_training_killed_between_two_epochs_gives_the_same_bytes(
    params: Params, request: pytest.FixtureRequest
) -> None:
    expected = open_artifact(train_translation.output / "FL/0").files
    request.getfixturevalue("fresh")
    assert with_kills(lambda: run(params, train_translation, ["FL/0"]), 2) == [1, 2, 3]
    assert open_artifact(train_translation.output / "FL/0").files == expected


@pytest.mark.usefixtures("fresh")
def test_a_training_that_diverges_is_a_result(params: Params) -> None:
    explodes = {"schedule": {"name": "steps", "milestones": [1.0], "factor": 1e38}, "lr": 1.0}
    hot = changed(params, {"focal/translation/recipe/": explodes, "focal/translation/seeds": 1})
    run(hot, train_translation)
    tables = translation_tables(hot)
    runs = tables["translation_runs"]
    assert runs["diverged"].all()
    assert runs.loc[:, "temperature":].isna().all().all()  # type: ignore[misc]
    assert len(tables["translation_curves"]) == 0
    assert weights_are_finite(train_translation, "CE/0")
    files = open_artifact(train_translation.output / "CE/0").files
    assert set(files) == {"record.json", "vocabulary.json", "weights.safetensors"}


@pytest.mark.usefixtures("fresh")
def test_long_training_pairs_are_left_out_and_counted(params: Params) -> None:
    run(changed(params, {"focal/translation/longest": 45}), train_translation, ["CE/0"])
    record = stored(train_translation, "CE/0", "record")
    assert 0 < record["too_long"] < 30
    assert (record["pairs"]["train"], record["pairs"]["test"]) == (30 - record["too_long"], 5)
    with pytest.raises(CellsFailed, match=r"focal\.translation\.longest: 1, no training pair is so short"):
        run(changed(params, {"focal/translation/longest": 1}), train_translation, ["CE/0"])


def test_several_processes_are_refused(params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(focal_appendices, "PROCESSES", 2)
    with pytest.raises(InputError, match=r"train_translation under torchrun: .* are not divided"):
        train_translation.cells(params)

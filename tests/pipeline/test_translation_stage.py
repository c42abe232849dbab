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
from tests.pipeline.whole_runs import changed, finish, run, weights_are_finite, with_kills

OUTPUT = train_translation.output
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


def other(params: Params, **values: Any) -> Params:
    """Parameters with other values of the section."""
    return changed(params, {f"focal/translation/{name}": value for name, value in values.items()})


def write_sentences() -> None:
    SENTENCES.mkdir(parents=True)
    for split, (english, german) in read_farm(seed=0).items():
        for language, sentences in (("en", english), ("de", german)):
            lines = "".join(f"{sentence}\n" for sentence in sentences[: SIZES[split]])
            (SENTENCES / f"{split}.{language}").write_text(lines, encoding="utf-8")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, params: Params) -> Path:
    folder = tmp_path_factory.mktemp("translation")
    return finish(folder, lambda: (write_sentences(), run(params, train_translation)))


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentences alone, in another folder."""
    monkeypatch.chdir(tmp_path)
    write_sentences()


def stored(cell: str, name: str) -> Any:
    return open_artifact(OUTPUT / cell).json(f"{name}.json")


def sentences(split: str) -> list[list[str]]:
    return [(SENTENCES / f"{split}.{language}").read_text().splitlines() for language in ("en", "de")]


def trained(cell: str, params: Params) -> tuple[Any, Vocabulary]:
    """A network and its vocabulary, from their files alone."""
    assert params.focal.translation
    vocabulary = Vocabulary(Tokenizer.from_str(open_artifact(OUTPUT / cell).path("vocabulary.json").read_text()))
    network = make_network(vocabulary.size, params.focal.translation.network, seed=5)
    weights = open_artifact(OUTPUT / cell).tensors("weights.safetensors")
    weights["embedding.weight"] = weights["classifier.weight"]
    network.load_state_dict(weights)
    return network.eval(), vocabulary


def test_tables_are_complete(params: Params) -> None:
    tables = translation_tables(params)
    runs, curves, history = (tables[f"translation_{name}"] for name in ("runs", "curves", "history"))
    assert {name: tuple(table.columns) for name, table in tables.items()} == {name: COLUMNS[name] for name in tables}
    assert [tuple(names) for names in runs[["arm", "seed"]].to_numpy()] == [(arm, s) for arm in ARMS for s in range(2)]
    assert (len(curves), len(history)) == (6 * 2, 6 * 3)
    assert not any(table.isna().any().any() for table in tables.values())
    shares = ["ece", "ece_after_scaling", "accuracy", "bleu", "bleu_after_scaling", "best_bleu"]
    assert runs[shares].stack().between(0, 1).all()
    assert (runs["best_bleu"] >= runs[["bleu", "bleu_after_scaling"]].max(axis=1)).all()


def test_the_stored_calibration_is_that_of_the_stored_weights(params: Params) -> None:
    network, vocabulary = trained("FL/1", params)
    pairs = SentencePairs(*map(vocabulary.encode, sentences("test")))
    with torch.no_grad():
        logits = network(pairs.teacher_forced(torch.arange(len(pairs)))).double()
    padded = pairs.targets.padded(torch.arange(len(pairs)))
    labels = padded[padded != PADDING]
    rows = {row["temperature"]: row for row in stored("FL/1", "calibration") if row["split"] == "test"}
    for temperature in (0.75, 1.0, 1.5):
        probs, row = (logits / temperature).softmax(1), rows[temperature]
        assert row["ece"] == pytest.approx(expected_calibration_error(probs, labels).item(), abs=1e-6)
        assert row["nll"] == pytest.approx(-probs.gather(1, labels[:, None]).log().mean().item(), rel=1e-4)
        assert row["tokens"] == len(labels)


def test_the_temperature_is_that_of_least_validation_error(params: Params) -> None:
    runs = translation_tables(params)["translation_runs"].set_index(["arm", "seed"])
    for (arm, seed), run_ in runs.iterrows():
        rows = stored(f"{arm}/{seed}", "calibration")
        validation, test = (
            {row["temperature"]: row["ece"] for row in rows if row["split"] == split}
            for split in ("validation", "test")
        )
        assert set(validation) == {*TEMPERATURE_GRID, 0.75, 1.5}
        assert validation[run_["temperature"]] == min(validation[at] for at in TEMPERATURE_GRID)
        assert (run_["ece"], run_["ece_after_scaling"]) == (test[1.0], test[run_["temperature"]])


def test_the_epoch_with_the_least_validation_nll_is_evaluated() -> None:
    for arm in ARMS:
        record = stored(f"{arm}/0", "record")
        nll = {row["epoch"]: row["nll"] for row in record["history"]}
        assert nll[record["selected_epoch"]] == min(nll.values())
        unscaled = next(row for row in stored(f"{arm}/0", "calibration") if row["temperature"] == 1)
        assert (unscaled["split"], unscaled["nll"]) == ("validation", pytest.approx(min(nll.values())))


def test_bleu_is_that_of_the_translations_and_these_are_the_networks(params: Params) -> None:
    translations, rows = stored("CE/0", "translations"), stored("CE/0", "bleu")
    best = translation_tables(params)["translation_runs"]["temperature"].iloc[0]
    assert {row["temperature"] for row in rows} == {0.75, 1.0, 1.5, best}
    english, german = sentences("test")
    for row in rows:
        assert row["bleu"] == bleu(translations[str(row["temperature"])], german)["bleu"]
    assert params.focal.translation
    search = params.focal.translation.search
    network, vocabulary = trained("CE/0", params)
    found = translate(network, vocabulary.encode(english), search, temperature=1.5, device="cpu")
    assert vocabulary.decode(found) == translations["1.5"]
    assert any(translations["1.5"])


def test_arms_of_one_seed_are_paired(params: Params) -> None:
    seeds = {cell.name: cell.parameters["training_seed"] for cell in train_translation.cells(params)}
    assert seeds["CE/0"] == seeds["LS/0"] == seeds["FL/0"] != seeds["CE/1"]
    # Focal loss and cross-entropy are other numbers on the same tokens; the first is the smaller one.
    losses = {arm: stored(f"{arm}/0", "record")["history"][0]["loss"] for arm in ARMS}
    assert losses["FL"] < losses["CE"]


def test_a_training_killed_between_two_epochs_gives_the_same_bytes(
    params: Params, request: pytest.FixtureRequest
) -> None:
    expected = open_artifact(OUTPUT / "FL/0").files
    request.getfixturevalue("fresh")
    assert with_kills(lambda: run(params, train_translation, ["FL/0"]), 2) == [1, 2, 3]
    assert open_artifact(OUTPUT / "FL/0").files == expected


@pytest.mark.usefixtures("fresh")
def test_a_training_that_diverges_is_a_result(params: Params) -> None:
    explodes = {"name": "steps", "milestones": [1.0], "factor": 1e38}
    hot = changed(params, {"focal/translation/recipe/": {"schedule": explodes, "lr": 1.0}})
    hot = other(hot, seeds=1)
    run(hot, train_translation)
    tables = translation_tables(hot)
    runs = tables["translation_runs"]
    assert runs["diverged"].all()
    assert runs.loc[:, "temperature":].isna().all().all()  # type: ignore[misc]
    assert len(tables["translation_curves"]) == 0
    assert weights_are_finite(OUTPUT / "CE/0")
    assert set(open_artifact(OUTPUT / "CE/0").files) == {
        "record.json",
        "vocabulary.json",
        "weights.safetensors",
    }


@pytest.mark.usefixtures("fresh")
def test_long_training_pairs_are_left_out_and_counted(params: Params) -> None:
    run(other(params, longest=45), train_translation, ["CE/0"])
    record = stored("CE/0", "record")
    assert 0 < record["too_long"] < 30
    assert record["pairs"]["train"] == 30 - record["too_long"]
    assert record["pairs"]["test"] == 5
    with pytest.raises(CellsFailed, match=r"focal\.translation\.longest: 1, no training pair is so short"):
        run(other(params, longest=1), train_translation, ["CE/0"])


def test_several_processes_are_refused(params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(focal_appendices, "PROCESSES", 2)
    with pytest.raises(InputError, match=r"train_translation under torchrun: .* are not divided"):
        train_translation.cells(params)

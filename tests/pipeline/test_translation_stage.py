"""The translation stage, from files of sentences to the tables of the paper, on the smallest parameters."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer

from softmax_temperature.data.farm import read_farm
from softmax_temperature.metrics import expected_calibration_error
from softmax_temperature.papers.focal.collect import COLUMNS, translation_tables
from softmax_temperature.params.focal import Translation
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.runner.cells import Job, run_cells
from softmax_temperature.scaling import TEMPERATURE_GRID
from softmax_temperature.stages.train_translation import ARMS, OUTPUT, cells
from softmax_temperature.training.translation.network import make_network
from softmax_temperature.training.translation.scores import bleu
from softmax_temperature.training.translation.search import translate
from softmax_temperature.training.translation.sentences import PADDING, SentencePairs
from softmax_temperature.training.translation.vocabulary import Vocabulary
from tests.serial import SERIAL

RECIPE = {
    "epochs": 3,
    "planned_epochs": 3,
    "batch_size": 200,
    "optimizer": "adam",
    "lr": 0.02,
    "momentum": 0.9,
    "beta2": 0.98,
    "weight_decay": 0.0,
    "epsilon": 1e-9,
    "schedule": {"name": "inverse_square_root", "warmup": 1.0},
    "reduction": "mean",
    "clip_norm": None,
    "crop_padding": 0,
    "flip": False,
    "mean": None,
    "std": None,
    "precision": "float32",
}
SECTION = {
    "dataset": "sentences",
    "source": "en",
    "target": "de",
    "train_limit": None,
    "validation_limit": 6,
    "test_limit": None,
    "vocabulary": 80,
    "longest": 60,
    "network": {"width": 8, "heads": 2, "layers": 1, "inner": 8, "dropout": 0.1},
    "recipe": RECIPE,
    "smoothing": 0.1,
    "gamma": 1.0,
    "temperatures": [0.75, 1.5],
    "search": {"beam": 2, "length_penalty": 4.0, "extra_length": 3, "sentences": 3},
    "seeds": 2,
}
SIZES = {"train": 30, "validation": 8, "test": 5}


def parameters(**changes: Any) -> Any:
    """The sections that the stage reads; `recipe` and `network` change values of theirs."""
    recipe = Recipe.model_validate(RECIPE | changes.pop("recipe", {}))
    network = SECTION["network"] | changes.pop("network", {})  # type: ignore[operator]
    section = Translation.model_validate({**SECTION, "recipe": recipe, "network": network, **changes})
    data, focal = SimpleNamespace(root="data/raw"), SimpleNamespace(translation=section)
    return SimpleNamespace(seed=0, data=data, focal=focal, compute=SERIAL)


def run(params: Any) -> None:
    run_cells(cells(params), output=OUTPUT, compute=params.compute, seed=params.seed)


def write_sentences(folder: Path) -> None:
    place = folder / "data/raw/sentences"
    place.mkdir(parents=True)
    for split, (english, german) in read_farm(seed=0).items():
        for language, sentences in (("en", english), ("de", german)):
            lines = "".join(f"{sentence}\n" for sentence in sentences[: SIZES[split]])
            (place / f"{split}.{language}").write_text(lines, encoding="utf-8")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the stage has run."""
    folder = tmp_path_factory.mktemp("translation")
    write_sentences(folder)
    before = Path.cwd()
    os.chdir(folder)
    try:
        run(parameters())
    finally:
        os.chdir(before)
    return folder


@pytest.fixture(autouse=True)
def _in_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)


def stored(cell: str, name: str) -> Any:
    return open_artifact(OUTPUT / cell).json(f"{name}.json")


def sentences(split: str) -> tuple[list[str], list[str]]:
    place = Path("data/raw/sentences")
    english, german = ((place / f"{split}.{language}").read_text().splitlines() for language in ("en", "de"))
    return english, german


def trained(cell: str) -> tuple[torch.nn.Module, Vocabulary]:
    """A network and its vocabulary, from their files alone."""
    vocabulary = Vocabulary(Tokenizer.from_str(open_artifact(OUTPUT / cell).path("vocabulary.json").read_text()))
    network = make_network(vocabulary.size, parameters().focal.translation.network, seed=5)
    weights = open_artifact(OUTPUT / cell).tensors("weights.safetensors")
    weights["embedding.weight"] = weights["classifier.weight"]
    network.load_state_dict(weights)
    return network.eval(), vocabulary


def test_tables_are_complete() -> None:
    tables = translation_tables(parameters())
    runs, curves, history = (tables[f"translation_{name}"] for name in ("runs", "curves", "history"))
    assert {name: tuple(table.columns) for name, table in tables.items()} == {name: COLUMNS[name] for name in tables}
    assert [tuple(names) for names in runs[["arm", "seed"]].to_numpy()] == [(arm, s) for arm in ARMS for s in range(2)]
    assert (len(curves), len(history)) == (6 * 2, 6 * 3)
    assert not any(table.isna().any().any() for table in tables.values())
    shares = ["ece", "ece_after_scaling", "accuracy", "bleu", "bleu_after_scaling", "best_bleu"]
    assert runs[shares].stack().between(0, 1).all()
    assert (runs["best_bleu"] >= runs[["bleu", "bleu_after_scaling"]].max(axis=1)).all()


def test_the_stored_calibration_is_that_of_the_stored_weights() -> None:
    network, vocabulary = trained("FL/1")
    pairs = SentencePairs(*map(vocabulary.encode, sentences("test")))
    with torch.no_grad():
        logits = network(pairs.teacher_forced(torch.arange(len(pairs)))).double()
    padded = pairs.targets.padded(torch.arange(len(pairs)))
    labels = padded[padded != PADDING]
    rows = {row["temperature"]: row for row in stored("FL/1", "calibration") if row["split"] == "test"}
    for temperature in (0.75, 1.0, 1.5):
        probs = (logits / temperature).softmax(1)
        row = rows[temperature]
        assert row["ece"] == pytest.approx(expected_calibration_error(probs, labels).item(), abs=1e-6)
        assert row["nll"] == pytest.approx(-probs.gather(1, labels[:, None]).log().mean().item(), rel=1e-4)
        assert row["tokens"] == len(labels)


def test_the_temperature_is_that_of_least_validation_error() -> None:
    runs = translation_tables(parameters())["translation_runs"].set_index(["arm", "seed"])
    for (arm, seed), run_ in runs.iterrows():
        rows = stored(f"{arm}/{seed}", "calibration")
        validation = {row["temperature"]: row["ece"] for row in rows if row["split"] == "validation"}
        assert set(validation) == {*TEMPERATURE_GRID, 0.75, 1.5}
        assert validation[run_["temperature"]] == min(validation[at] for at in TEMPERATURE_GRID)
        test = {row["temperature"]: row["ece"] for row in rows if row["split"] == "test"}
        assert (run_["ece"], run_["ece_after_scaling"]) == (test[1.0], test[run_["temperature"]])


def test_the_epoch_with_the_least_validation_nll_is_evaluated() -> None:
    for arm in ARMS:
        record = stored(f"{arm}/0", "record")
        nll = {row["epoch"]: row["nll"] for row in record["history"]}
        assert nll[record["selected_epoch"]] == min(nll.values())
        unscaled = [row for row in stored(f"{arm}/0", "calibration") if row["temperature"] == 1]
        assert unscaled[0]["split"] == "validation"
        assert unscaled[0]["nll"] == pytest.approx(min(nll.values()))


def test_bleu_is_that_of_the_translations_and_these_are_the_networks() -> None:
    translations, rows = stored("CE/0", "translations"), stored("CE/0", "bleu")
    best = translation_tables(parameters())["translation_runs"]["temperature"].iloc[0]
    assert {row["temperature"] for row in rows} == {0.75, 1.0, 1.5, best}
    english, german = sentences("test")
    for row in rows:
        assert row["bleu"] == bleu(translations[str(row["temperature"])], german)["bleu"]
    network, vocabulary = trained("CE/0")
    found = translate(
        network,  # type: ignore[arg-type]
        vocabulary.encode(english),
        parameters().focal.translation.search,
        temperature=1.5,
        device="cpu",
    )
    assert vocabulary.decode(found) == translations["1.5"]
    assert any(translations["1.5"])


def test_arms_of_one_seed_are_paired() -> None:
    seeds = {cell.name: cell.parameters["training_seed"] for cell in cells(parameters())}
    assert seeds["CE/0"] == seeds["LS/0"] == seeds["FL/0"] != seeds["CE/1"]
    # Focal loss and cross-entropy are other numbers on the same tokens; the first is the smaller one.
    losses = {arm: stored(f"{arm}/0", "record")["history"][0]["loss"] for arm in ARMS}
    assert losses["FL"] < losses["CE"]


class Killed(BaseException):
    """Stands for a kill: nothing catches it."""


def test_a_training_killed_between_two_epochs_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sentences(tmp_path)
    expected = open_artifact(OUTPUT / "FL/0").files
    monkeypatch.chdir(tmp_path)
    epochs: list[int] = []

    def kill_after_the_first_two(_: Job, done: int, __: int) -> None:
        epochs.append(done)
        if done < 3:
            raise Killed

    monkeypatch.setattr(Job, "progress", kill_after_the_first_two)
    [one] = [each for each in cells(parameters()) if each.name == "FL/0"]
    for _ in range(2):
        with pytest.raises(Killed):
            run_cells([one], output=OUTPUT, compute=SERIAL, seed=0)
    run_cells([one], output=OUTPUT, compute=SERIAL, seed=0)
    assert epochs == [1, 2, 3]
    assert open_artifact(OUTPUT / "FL/0").files == expected


def test_a_training_that_diverges_is_a_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_sentences(tmp_path)
    monkeypatch.chdir(tmp_path)
    explodes = {"name": "steps", "milestones": [1.0], "factor": 1e38}
    params = parameters(seeds=1, recipe={"schedule": explodes, "lr": 1.0})
    run(params)
    tables = translation_tables(params)
    runs = tables["translation_runs"]
    assert runs["diverged"].all()
    assert runs.loc[:, "temperature":].isna().all().all()  # type: ignore[misc]
    assert len(tables["translation_curves"]) == 0
    weights = open_artifact(OUTPUT / "CE/0").tensors("weights.safetensors")
    assert all(bool(value.isfinite().all()) for value in weights.values())
    assert set(open_artifact(OUTPUT / "CE/0").files) == {"record.json", "vocabulary.json", "weights.safetensors"}


def test_long_training_pairs_are_left_out_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_sentences(tmp_path)
    monkeypatch.chdir(tmp_path)
    params = parameters(seeds=1, longest=45)
    [one] = [each for each in cells(params) if each.name == "CE/0"]
    run_cells([one], output=OUTPUT, compute=SERIAL, seed=0)
    record = stored("CE/0", "record")
    assert 0 < record["too_long"] < 30
    assert record["pairs"]["train"] == 30 - record["too_long"]
    assert record["pairs"]["test"] == 5
    [none] = [each for each in cells(parameters(seeds=1, longest=1)) if each.name == "CE/0"]
    with pytest.raises(Exception, match=r"focal\.translation\.longest: 1, no training pair is so short"):
        run_cells([none], output=OUTPUT, compute=SERIAL, seed=0)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"target": "en"}, "target: en, must be another language than source"),
        ({"temperatures": [1.0, 0.5]}, "must ascend"),
        ({"temperatures": []}, "at least 1 item"),
        ({"recipe": {"flip": True}}, "recipe: crop_padding must be 0"),
        ({"recipe": {"schedule": {"name": "inverse_square_root"}}}, "warmup: 0, must be positive"),
        ({"network": {"heads": 3}}, "width: 8, must be divisible by heads, 3"),
        ({"vocabulary": 4}, "greater than or equal to 5"),
        ({"smoothing": 1.0}, "less than 1"),
    ],
)
def test_parameters_that_do_not_fit_together_are_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parameters(**changes)

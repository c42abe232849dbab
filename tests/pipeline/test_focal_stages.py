"""All stages of the focal paper, from raw data to results, with tiny parameters."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from tokenizers import Tokenizer

from softmax_temperature.data import translation
from softmax_temperature.data.splits import Part, limited
from softmax_temperature.data.translation import read_translation
from softmax_temperature.metrics import expected_calibration_error
from softmax_temperature.networks.registry import build_network
from softmax_temperature.papers.focal import collect
from softmax_temperature.papers.focal.collect import (
    MEASURED_COLUMNS,
    declared_translation,
    read_run,
)
from softmax_temperature.papers.focal.study import (
    CLASSIFICATION,
    FL_3,
    TEMPERATURE,
    read,
)
from softmax_temperature.papers.shared.collecting import gather
from softmax_temperature.papers.shared.factors import where
from softmax_temperature.papers.shared.runs import Runs
from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.runner.cells import CellsFailed
from softmax_temperature.runner.errors import InputError
from softmax_temperature.scaling import TEMPERATURE_GRID
from softmax_temperature.stages import focal_appendices
from softmax_temperature.stages.fetch import fetch
from softmax_temperature.stages.focal import train_focal
from softmax_temperature.stages.focal_appendices import (
    TENSORS,
    focal_linear,
    train_translation,
)
from softmax_temperature.stages.focal_evaluation import evaluate_focal
from softmax_temperature.training import linear_model
from softmax_temperature.training.linear_model import make_data
from softmax_temperature.training.prepared_sets import image_set
from softmax_temperature.training.translation.network import make_network, translate
from softmax_temperature.training.translation.scores import bleu
from softmax_temperature.training.translation.sentences import PADDING, SentencePairs
from softmax_temperature.training.translation.vocabulary import Vocabulary
from tests.pipeline.whole_runs import (
    WholePaper,
    changed,
    collect_without_claims,
    fitted,
    run,
    run_paper,
    run_stages,
    stored,
    weights,
    weights_are_finite,
    with_kills,
    with_other_test_data,
)

PAPER, RESULTS = collect, Path("results/tiny/focal")
pytestmark = pytest.mark.usefixtures("in_project")


@pytest.fixture(scope="module", autouse=True)
def _sentences_drawn_once() -> Iterator[None]:
    """Draw the sentences only once; otherwise each training would draw thousands."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(translation, "read_farm", cache(translation.read_farm))
        yield


class TestResults(WholePaper):
    pass


def test_the_stored_logits_are_those_of_the_stored_weights(tiny: Params) -> None:
    artifact, recipe = (
        open_artifact(train_focal.output / "digits/CE/0"),
        tiny.focal.recipe_of("digits", "CE"),
    )
    network = build_network(tiny.networks["resnet8-tiny"], classes=10, seed=1)
    network.load_state_dict(artifact.tensors("weights.safetensors"))
    test = image_set(open_artifact(fetch.output / "digits"), "test", ".")
    with torch.no_grad():
        logits = network.eval()(test.prepare(test.inputs, recipe))
    stored = artifact.tensors("logits.safetensors")
    torch.testing.assert_close(stored["test.logits"], logits, rtol=1e-4, atol=1e-5)
    assert torch.equal(stored["test.labels"], test.labels)


def test_the_runs_are_complete_and_hold_no_gaps(tiny: Params) -> None:
    runs = read(RESULTS)
    trained = runs.select(CLASSIFICATION)
    assert len(trained) == len(train_focal.cells(tiny))
    for scaled in (False, True):
        for column in ("selected_epoch", "epochs_done"):
            rows = runs.measured("temperature", split="test", scaled=scaled)
            epochs = rows["run"].map(trained[column])
            assert (rows["epoch"] == epochs).sum() == len(trained)
    assert set(runs.measured("auroc")["split"]) == {"glyphs-12", "gaussian-noise"}
    history = runs.measured("entropy")
    assert set(history["split"]) == {"train", "validation", "test"}
    assert set(history["epoch"]) == {1, 2}
    plain = runs.measured("accuracy", split="test")
    scaled = runs.measured("accuracy", split="test", scaled=True)
    both = plain.merge(scaled, on=["run", "split", "epoch"])
    assert len(both) >= len(trained)
    assert (both["value_x"] == both["value_y"]).all(), "scaling changed an accuracy"


def test_a_run_is_what_its_logits_say() -> None:
    runs = read(RESULTS)
    number = runs.select(where(experiment="digits", seed=1) & FL_3).index.item()
    values = {
        name: runs.measured(f"{name}_by_nll", split="test", scaled=True)
        for name in ("temperature", "ece")
    }
    numbers = {
        name: rows[rows["run"] == number]["value"].item()
        for name, rows in values.items()
    }
    tensors = open_artifact(train_focal.output / "digits/FL-3/1").tensors(
        "logits.safetensors"
    )
    logits = tensors["test.logits"].double() / numbers["temperature"]
    probs = torch.softmax(logits, dim=1)
    ours = expected_calibration_error(probs, tensors["test.labels"])
    assert float(ours) == pytest.approx(numbers["ece"], abs=1e-9)


def temperatures(cell: str) -> dict[str, float]:
    return {
        f"{row['evaluated']} {row['scaling']}": row["temperature"]
        for row in open_artifact(evaluate_focal.output / cell).json("runs.json")
    }


@pytest.mark.parametrize("cell", ["digits/FLSD-53/0", "phrases/FLSD-53/0"])
def test_no_fitted_number_of_a_training_moves_with_the_test_data(
    cell: str,
    project: Path,
    tiny: Params,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = ("weights.safetensors", "record.json", "history.json", "reliability.json")
    both = [fitted(train_focal, cell, *files)]
    scales = [temperatures(cell)]
    scores = [stored(train_focal, cell, "history")]
    monkeypatch.chdir(with_other_test_data(project, tmp_path))
    run(tiny, train_focal, [cell, cell.replace("FLSD-53", "CE")])
    run(tiny, evaluate_focal, [cell])
    both.append(fitted(train_focal, cell, *files))
    scales.append(temperatures(cell))
    scores.append(stored(train_focal, cell, "history"))
    assert both[0] == both[1]
    assert scales[0] == scales[1]
    assert len(set(scales[0].values())) > 1
    assert scores[0] != scores[1]


def test_no_fitted_number_of_a_translation_moves_with_the_test_sentences(
    tiny: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_with_other_test_data(*arguments: Any, **options: Any) -> dict[str, Part]:
        parts = read_translation(*arguments, **options)
        other = tuple(reversed(parts["test"].labels))
        return parts | {"test": replace(parts["test"], labels=other)}

    def tried(cell: str) -> set[float]:
        return {row["temperature"] for row in stored(train_translation, cell, "bleu")}

    cell = "CE/0"
    files = ("weights.safetensors", "record.json", "calibration.json")
    expected = fitted(train_translation, cell, *files)
    vocabulary = open_artifact(train_translation.output / cell).files["vocabulary.json"]
    asked = tried(cell)
    tested = calibration(cell, "test")
    monkeypatch.setattr(focal_appendices, "read_translation", read_with_other_test_data)
    monkeypatch.chdir(tmp_path)
    run(tiny, train_translation, [cell])
    assert fitted(train_translation, cell, *files) == expected
    artifact = open_artifact(train_translation.output / cell)
    assert artifact.files["vocabulary.json"] == vocabulary
    assert tried(cell) == asked
    assert calibration(cell, "test") != tested


def test_no_weight_of_the_linear_model_moves_with_the_test_labels(
    tiny: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make_other_test_data(*arguments: Any, **options: Any) -> tuple[Part, Part]:
        train, test = make_data(*arguments, **options)
        return train, replace(test, labels=1 - test.labels)

    cell = focal_linear.cells(tiny)[0].name
    before = open_artifact(focal_linear.output / cell).tensors(TENSORS)
    monkeypatch.setattr(linear_model, "make_data", make_other_test_data)
    monkeypatch.chdir(tmp_path)
    run(tiny, focal_linear, [cell])
    after = open_artifact(focal_linear.output / cell).tensors(TENSORS)
    assert torch.equal(after["weights"], before["weights"])
    assert torch.equal(after["weight_norm"], before["weight_norm"])
    assert not torch.equal(after["test_labels"], before["test_labels"])


def test_shown_images_are_classified_rightly_by_all_losses_or_wrongly_by_all(
    tiny: Params,
) -> None:
    runs = read(RESULTS)
    panels = runs.tables["panels"]
    assert tiny.focal.evaluation.panels
    shown = runs.table.loc[panels["run"].unique()]
    assert set(shown["experiment"]) == {"digits"}
    assert set(shown["arm"]) == {"CE", "FLSD-53"}, "trained arms of Fig. H.1"
    is_right = panels["label"] == panels["predicted"]
    shares = is_right.groupby(panels["image"]).mean()
    assert set(shares) <= {0.0, 1.0}
    temperatures = TEMPERATURE.of(runs, shown)
    for (number, image), rows in panels.groupby(["run", "image"]):
        cell = runs.table["cell"][number].removeprefix("focal/")
        logits = open_artifact(Path("data/focal") / cell).tensors("logits.safetensors")
        scores = logits["test.logits"][image].double() / temperatures[number]
        confidence = rows.set_index("scaling")["confidence"]["ece"]
        assert confidence == pytest.approx(scores.softmax(0).max().item(), rel=1e-5)


def test_without_a_shift_the_shifted_images_are_the_test_images() -> None:
    cell = open_artifact(evaluate_focal.output / "digits/FL-3/1")
    runs = {row["scaling"]: row for row in cell.json("runs.json")}
    assert [row["scaling"] for row in cell.json("shift.json")] == list(runs)
    for row in cell.json("shift.json"):
        assert row.pop("shifted") == "digits"
        assert row.items() <= runs[row["scaling"]].items()


LOST = {"lr": 1e30, "clip_norm": None}


def test_a_diverging_arm_is_a_result(
    make_project: Callable[..., Path],
    project: Path,
    tiny: Params,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(make_project("diverging", cells_of=project))
    task = tiny.model_dump()["focal"]["tasks"]["digits"]
    task |= {"arms": ["CE", "FL-3"], "arm_changes": {"CE": {"recipe": LOST}}}
    only_digits = {"focal/tasks": {"digits": task}, "focal/translation": None}
    params = changed(tiny, only_digits)
    run_stages(params, PAPER)
    collect_without_claims(params, PAPER)
    runs = read(RESULTS)
    lost = runs.select(CLASSIFICATION & where(diverged=True))
    assert set(lost["cell"].str.rpartition("/")[0]) == {"focal/training/digits/CE"}
    rows = runs.measured("temperature", split="test")
    assert not set(rows["run"]) & set(lost.index)
    table = pd.read_csv(RESULTS / "tables" / "table_1.csv")
    assert set(
        table[(table["task"] == "digits") & (table["method"] == "CE")]["status"]
    ) == {"diverged"}
    assert weights_are_finite(train_focal, "digits/CE/0")


def test_a_study_in_which_every_training_diverges_is_one_error(
    make_project: Callable[..., Path],
    project: Path,
    tiny: Params,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(make_project("nothing", cells_of=project))
    digits = tiny.model_dump()["focal"]["tasks"]["digits"] | {"arms": ["FL-3"]}
    with pytest.raises(
        InputError, match=r"every training run diverged.*Lower focal\.recipe\.lr"
    ):
        run_paper(
            changed(tiny, {"focal/recipe/": LOST, "focal/tasks": {"digits": digits}}),
            PAPER,
        )
    assert not RESULTS.exists()


def calibration(cell: str, split: str) -> dict[float, dict[str, Any]]:
    return {
        row["temperature"]: row
        for row in stored(train_translation, cell, "calibration")
        if row["split"] == split
    }


def trained(
    cell: str, params: Params
) -> tuple[Any, Vocabulary, list[Any], Sequence[str]]:
    """Read a cell's trained network and its vocabulary, and the test sentences.

    The test sentences are returned twice: as token IDs and as reference texts.
    """
    section = params.focal.translation
    assert section
    text = (
        open_artifact(train_translation.output / cell)
        .path("vocabulary.json")
        .read_text()
    )
    vocabulary = Vocabulary(Tokenizer.from_str(text))
    network = make_network(vocabulary.size, section.network, seed=5)
    own = weights(train_translation, cell)
    network.load_state_dict(own | {"embedding.weight": own["classifier.weight"]})
    whole = read_translation("farm", ("en", "de"), root=Path(), seed=params.seed)[
        "test"
    ]
    sides = limited(whole, section.test_limit, seed=params.seed).for_evaluation()
    return network.eval(), vocabulary, list(map(vocabulary.encode, sides)), sides[1]


def translated(params: Params) -> Runs:
    declared = list(declared_translation(params))
    return gather(Path("none"), declared, read_run, tables=MEASURED_COLUMNS)


def numbers(runs: Runs, run: int, metric: str, *, scaled: bool = False) -> float:
    rows = runs.measured(metric, split="test", scaled=scaled)
    return float(rows[rows["run"] == run]["value"].item())


def test_translations_are_complete_at_the_temperature_of_least_validation_error(
    tiny: Params,
) -> None:
    runs = translated(tiny)
    cells = [
        f"focal/translation/{arm}/{seed}"
        for arm in ("CE", "LS", "FL")
        for seed in (0, 1)
    ]
    assert runs.table["cell"].tolist() == cells
    assert len(runs.tables["translation_curves"]) == 6 * 2
    assert len(runs.measured("nll", split="validation")) == 6 * 3
    for number, row in runs.table.iterrows():
        run = int(str(number))
        cell = row["cell"].removeprefix("focal/translation/")
        validation = calibration(cell, "validation")
        test = calibration(cell, "test")
        assert set(validation) == {*TEMPERATURE_GRID, 0.75, 1.5}
        temperature = numbers(runs, run, "temperature", scaled=True)
        least = min(validation[at]["ece"] for at in TEMPERATURE_GRID)
        assert validation[temperature]["ece"] == least
        assert numbers(runs, run, "ece") == test[1.0]["ece"]
        assert numbers(runs, run, "ece", scaled=True) == test[temperature]["ece"]
        plain = numbers(runs, run, "bleu")
        scaled = numbers(runs, run, "bleu", scaled=True)
        assert 0 <= max(plain, scaled) <= numbers(runs, run, "best_bleu") <= 1
        record = stored(train_translation, cell, "record")
        nll = {each["epoch"]: each["nll"] for each in record["history"]}
        assert row["selected_epoch"] == record["selected_epoch"]
        assert nll[record["selected_epoch"]] == min(nll.values())
        assert min(nll.values()) == pytest.approx(validation[1.0]["nll"])


def test_the_stored_calibration_is_that_of_the_stored_weights(tiny: Params) -> None:
    network, _, sides, _ = trained("FL/1", tiny)
    pairs = SentencePairs(*sides, "test")
    with torch.no_grad():
        logits = network(pairs.teacher_forced(torch.arange(len(pairs)))).double()
    padded = pairs.targets.padded(torch.arange(len(pairs)))
    labels = padded[padded != PADDING]
    for temperature in (0.75, 1.0, 1.5):
        probs, row = (
            (logits / temperature).softmax(1),
            calibration("FL/1", "test")[temperature],
        )
        assert row["ece"] == pytest.approx(
            expected_calibration_error(probs, labels).item(), abs=1e-6
        )
        assert row["nll"] == pytest.approx(
            -probs.gather(1, labels[:, None]).log().mean().item(), rel=1e-4
        )
        assert row["tokens"] == len(labels)


def test_bleu_is_that_of_the_translations_and_these_are_the_networks(
    tiny: Params,
) -> None:
    translations, rows = (
        stored(train_translation, "CE/0", name) for name in ("translations", "bleu")
    )
    best = numbers(translated(tiny), 0, "temperature", scaled=True)
    assert {row["temperature"] for row in rows} == {0.75, 1.0, 1.5, best}
    network, vocabulary, (english, _), german = trained("CE/0", tiny)
    for row in rows:
        assert (
            row["bleu"] == bleu(translations[str(row["temperature"])], german)["bleu"]
        )
    assert tiny.focal.translation
    found = translate(
        network, english, tiny.focal.translation.search, temperature=1.5, device="cpu"
    )
    assert vocabulary.decode(found) == translations["1.5"]


def test_a_translation_killed_between_two_epochs_ends_with_the_same_bytes(
    tiny: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = open_artifact(train_translation.output / "FL/0").files
    monkeypatch.chdir(tmp_path)
    assert with_kills(lambda: run(tiny, train_translation, ["FL/0"]), 2) == [1, 2, 3]
    assert open_artifact(train_translation.output / "FL/0").files == expected


def test_a_translation_that_diverges_is_a_result(
    tiny: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    explodes = {
        "schedule": {"name": "steps", "milestones": [1.0], "factor": 1e38},
        "lr": 1.0,
    }
    hot = changed(
        tiny, {"focal/translation/recipe/": explodes, "focal/translation/seeds": 1}
    )
    run(hot, train_translation)
    runs = translated(hot)
    assert runs.table["diverged"].all()
    assert set(runs.measurements["split"]) <= {"validation"}
    assert runs.tables["translation_curves"].empty
    assert weights_are_finite(train_translation, "CE/0")
    files = open_artifact(train_translation.output / "CE/0").files
    assert set(files) == {"record.json", "vocabulary.json", "weights.safetensors"}


def test_long_training_pairs_are_left_out_and_counted(
    tiny: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run(changed(tiny, {"focal/translation/longest": 20}), train_translation, ["CE/0"])
    record = stored(train_translation, "CE/0", "record")
    assert 0 < record["too_long"] < 40
    assert (record["pairs"]["train"], record["pairs"]["test"]) == (
        40 - record["too_long"],
        6,
    )
    with pytest.raises(
        CellsFailed,
        match=r"focal\.translation\.longest: 1, but every training pair is longer",
    ):
        run(
            changed(tiny, {"focal/translation/longest": 1}), train_translation, ["CE/0"]
        )


def test_several_processes_are_refused_for_translations(
    tiny: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("softmax_temperature.stages.focal_appendices.PROCESSES", 2)
    with pytest.raises(
        InputError, match=r"train_translation under torchrun: .* cannot be divided"
    ):
        train_translation.cells(tiny)

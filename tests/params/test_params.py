"""Wrong parameters raise an error with file, key and the nearest valid name."""

from pathlib import Path
from typing import Any, Literal

import pytest
import torch

from softmax_temperature.losses import Loss
from softmax_temperature.metrics.checks import FEWEST_RESAMPLES
from softmax_temperature.params import read_params, read_yaml, validate
from softmax_temperature.params.implementations import LOSSES, NETWORKS
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.implementations import load_class
from softmax_temperature.stages.classifier_temperature import batch_of
from tests.conftest import ROOT
from tests.profiles import rendered


@pytest.fixture
def content() -> Any:
    return read_yaml(ROOT / "params.yaml")


def change(content: Any, path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for key in parents:
        content = content[key]
    content[last] = value


def test_the_committed_parameters_are_profile_mini() -> None:
    text, params = rendered("mini")
    assert (ROOT / "params.yaml").read_text() == text
    assert read_params(ROOT / "params.yaml") == params
    with pytest.raises(ValueError, match="frozen"):
        params.seed = 1  # type: ignore[misc]


IMAGES = "focal.tasks.digits-100"
ADAM = "cooling.experiments.digits-vgg-adam"
EARLY = "temperature_check.early_learning"
MOMENTUN = {"momentun": 0.5}


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (
            "sede",
            3,
            r"params\.yaml: unknown parameter 'sede'\. Did you mean 'seed'\? Correct",
        ),
        (
            "data.\n",
            3,
            r"params\.yaml: data: unknown parameter '\\n'\. Valid: download, root\.",
        ),
        ("seed", "three", r"params\.yaml: seed: .*given: 'three'"),
        (
            "datasets.digits.train_limits",
            5,
            r"digits: unknown parameter 'train_limits'.*'train_limit'",
        ),
        (
            "classifier_temperature.datasets",
            ["digit"],
            r"unknown name 'digit'\. Did you mean 'digits'\?",
        ),
        ("focal.tasks", {}, r"focal.tasks: must not be empty"),
        (
            f"{IMAGES}.embeddings",
            {"file": "a.txt", "step": 0.0},
            "embeddings: requires `text`",
        ),
        (f"{IMAGES}.recipe", {"lr": -1.0}, "lr.*greater than 0"),
        (
            f"{IMAGES}.recipe",
            MOMENTUN,
            "tasks.digits-100 .*'momentun'. Did you mean 'momentum'",
        ),
        (
            f"{IMAGES}.arm_changes",
            {"Breir": {"recipe": {}}},
            "'Breir'. Did you mean 'Brier'",
        ),
        (f"{IMAGES}.arms", ["CE", "CE"], "duplicate arm"),
        (f"{IMAGES}.variant_of", "digits-10", "'digits-10'. Did you mean 'digits-100'"),
        (
            f"{IMAGES}-as-written.dataset",
            "glyphs-10",
            "variant_of.*data set as .*: digits-100",
        ),
        (f"{IMAGES}.printed_dataset", "CIFAR-10", "be given together"),
        (
            f"{IMAGES}.out_of_distribution",
            ["glyph-26"],
            "unknown name 'glyph-26'.*'glyphs-26'",
        ),
        (
            "focal.evaluation.bootstrap",
            FEWEST_RESAMPLES - 1,
            "bootstrap: .*greater than or equal to 19",
        ),
        ("focal.arms.CE.loss", "cros_entropy", "arms.CE.loss.*'cross_entropy'"),
        (
            "focal.recipe.schedule.name",
            "inverse_square_root",
            "warmup: 0, must be positive",
        ),
        (f"{ADAM}.network", "vgg-tyni", r"unknown name .*'vgg-tiny'"),
        (
            f"{ADAM}.recipe",
            MOMENTUN,
            r"experiments.digits-vgg-adam, recipe: .*'momentum'",
        ),
        (f"{EARLY}.curves.inverse_temperatures", [1.0, 0.1], "must ascend"),
        (f"{EARLY}.curves.last", 0.01, r"curves: last: 0\.01, must be above first"),
        ("cooling.segmentation.void", 3, "void: 3, must not be one of the 4 classes"),
        ("cooling.segmentation.recipe.flip", True, "label maps are not cropped"),
        (
            "focal.translation.target",
            "en",
            "target: en, must differ from source",
        ),
        (
            "focal.translation.temperatures",
            [1.0, 0.5],
            r"translation\.temperatures: must ascend",
        ),
        ("focal.translation.network.heads", 5, "must be a multiple of heads, 5"),
    ],
)
def test_a_wrong_parameter_is_named(
    content: Any, path: str, value: Any, says: str
) -> None:
    change(content, path, value)
    with pytest.raises(InputError, match=says):
        validate(content, where="params.yaml")


def test_a_tilde_in_data_root_is_the_home_folder(
    content: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    change(content, "data.root", "~/archives")
    assert validate(content, where="here").data.root == "/home/ada/archives"
    change(content, "data.root", "~nobody-has-this-name/archives")
    with pytest.raises(InputError, match=r"data\.root: .* home folder of ~nobody"):
        validate(content, where="here")


@pytest.mark.parametrize("root", ["data/raw", "./data/raw/", "raw~1"])
def test_another_data_root_is_kept_as_it_is_written(content: Any, root: str) -> None:
    change(content, "data.root", root)
    assert validate(content, where="here").data.root == root


@pytest.mark.parametrize("kind", ["rt", "safe"])
def test_numbers_are_read_as_yaml_1_2(
    tmp_path: Path, kind: Literal["rt", "safe"]
) -> None:
    # PyYAML would read 1e-3 as text and `no` as false; DVC and this project read 1e-3
    # as a number and `no` as text.
    path = tmp_path / "numbers.yaml"
    path.write_text("lr: 1e-3\nanswer: no\n")
    assert dict(read_yaml(path, kind=kind)) == {"lr": 1e-3, "answer": "no"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [1", "is not valid YAML.* Correct that line"),
        ("a: {loss: my:Loss}", "is not valid YAML.* Quote a value"),
        ("a: 1\na: 2", "is not valid YAML"),
        ("a: !!timestamp 2026-99-99", "is not valid YAML"),
        ("seed: !!python/object/apply:os.mkdir ['made']", "params"),
        ("- 1", "params"),
        ("", "params"),
    ],
)
def test_a_broken_file_is_named_and_a_tag_constructs_nothing(
    tmp_path: Path, text: str, says: str
) -> None:
    path = tmp_path / "params.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        read_params(path)
    assert not Path("made").exists()


@pytest.mark.parametrize(
    ("table", "base"), [(LOSSES, Loss), (NETWORKS, torch.nn.Module)]
)
def test_every_name_in_params_is_that_of_a_class(
    table: dict[str, str], base: type
) -> None:
    assert list(table) == sorted(table)
    for reference in table.values():
        assert issubclass(load_class(reference, base), base)


@pytest.mark.parametrize(
    ("batch", "rows", "size"),
    [(128, 266, 128), ({"share": 0.1, "least": 32}, 1201, 121)],
)
def test_a_batch_is_a_number_or_a_share_of_the_training_rows(
    content: Any, batch: Any, rows: int, size: int
) -> None:
    change(content, "classifier_temperature.search.batch_size", batch)
    search = validate(content, where="here").classifier_temperature.search
    assert (batch_of(search.batch_size, rows), batch_of(search.batch_size, 10)) == (
        size,
        128 if batch == 128 else 32,
    )

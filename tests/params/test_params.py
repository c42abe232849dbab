"""Parameters: wrong ones are refused at once, with the file, the key and the nearest valid name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from softmax_temperature.params import Params, read_params, validate
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.reading import read_yaml
from softmax_temperature.tools.profiles import apply_profile, profile_names, render_profile

ROOT = Path(__file__).parents[2]
PROFILES = ROOT / "profiles"


@pytest.fixture
def content() -> Any:
    return read_yaml(ROOT / "params.yaml", kind="safe")


def test_the_committed_parameters_are_profile_mini() -> None:
    text, params = render_profile("mini", PROFILES)
    assert (ROOT / "params.yaml").read_text() == text
    assert read_params(ROOT / "params.yaml") == params


@pytest.mark.parametrize("name", profile_names(PROFILES))
def test_every_profile_is_valid_and_survives_writing(name: str, tmp_path: Path) -> None:
    params = apply_profile(name, tmp_path / "params.yaml", PROFILES)
    assert params.profile == name
    assert read_params(tmp_path / "params.yaml") == params


def logical_lines(text: str) -> list[str]:
    """The lines of a YAML text, with lists that run over several lines joined to one."""
    lines: list[str] = []
    for line in text.splitlines():
        last = lines[-1].partition("#")[0].rstrip() if lines else ""
        if last.count("[") > last.count("]") or (last.endswith(":") and line.strip().startswith("[")):
            lines[-1] += line
        else:
            lines.append(line)
    return lines


@pytest.mark.parametrize("name", profile_names(PROFILES))
def test_every_number_has_its_source_beside_it(name: str) -> None:
    """A value, or a block that it belongs to, ends with a section of the paper or `ours`."""
    text, _ = render_profile(name, PROFILES)
    section, covering, bare = "", [], []
    for line in logical_lines(text):
        code, _, comment = line.partition("#")
        if not code.strip():
            continue
        indent = len(line) - len(line.lstrip())
        if indent == 0:
            section = code.split(":")[0]
        covering = [heading for heading in covering if heading < indent] + [indent] * bool(comment)
        if section in ("datasets", "backbones", "profile") or covering:
            continue
        if ":" in code and code.split(":", 1)[1].strip():
            bare.append(line)
    assert not bare


def change(path: str, value: Any) -> Callable[[Any], None]:
    def apply(content: Any) -> None:
        *parents, last = path.split(".")
        for key in parents:
            content = content[key]
        content[last] = value

    return apply


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (change("focal.tasks", {}), r"focal.tasks: there must be one where `papers` names"),
        (change("datasets", {}), r"params\.yaml: datasets: .*at least 1 item"),
        (
            change("classifier_temperature.search.epoch", 3),
            r"classifier_temperature\.search\.epoch: unknown .*'epochs'",
        ),
        (change("sede", 3), r"params\.yaml: sede: unknown parameter\. Did you mean 'seed'\?"),
        (change("data.\n", 3), r"params\.yaml: data\.\\n: unknown parameter\. Valid: download, root\."),
        (change("seed", "three"), r"params\.yaml: seed: .*given: 'three'"),
        (change("classifier_temperature.search.lr", "1e-3x"), r"search\.lr: "),
        (change("compute.engine", "threads"), r"compute\.engine: .*'processes'"),
        (change("classifier_temperature.datasets", ["digit"]), r"unknown name 'digit'\. Did you mean 'digits'\?"),
        (change("classifier_temperature.rescaling.backbone", "resnet"), r"rescaling\.backbone: unknown name 'resnet'"),
        (change("focal.tasks.phrases-1200.text.words", 5), r"tasks\.phrases-1200\.text\.words: unknown parameter"),
        (change("focal.tasks.phrases-1200.text.keep", "middle"), r"text\.keep: .*given: 'middle'"),
        (change("focal.tasks.phrases-1200.select", "best"), r"phrases-1200\.select: .*'best_validation'"),
        (
            change("focal.tasks.phrases-1200.gaussian_noise", 0.1),
            r"text: out_of_distribution, gaussian_noise and shifted are for im",
        ),
        (
            change("focal.tasks.phrases-1200.embeddings", {"file": "a.txt", "step": -1.0}),
            r"embeddings\.step: .*given: -1",
        ),
        (change("focal.tasks.digits-100.embeddings", {"file": "a.txt", "step": 0.0}), "only a task with `text` has wo"),
        (change("cooling.experiments.digits-vgg-adam.arms", ["last_leyer"]), r"arms: unknown name .*'last_layer'"),
        (change("cooling.experiments.digits-vgg-adam.schedules", ["piecewize"]), r"schedules: unknown .*'piecewise'"),
        (change("cooling.experiments.digits-vgg-adam.network", "vgg-tyni"), r"network: unknown name .*'vgg-tiny'"),
        (change("cooling.experiments.digits-vgg-adam.recipe", {"momentun": 0.5}), r"recipe: momentun: .*'momentum'"),
        (change("cooling.arms.periodic.mode", "distribute"), r"arms\.periodic\.mode: .*'distributed'"),
        (change("cooling.arms.periodic.factors", 1.0), r"arms\.periodic\.factors: unknown parameter.*'factor'"),
        (change("temperature_check.early_learning.dataset", "digit"), r"early_learning\.dataset: .*'digits'"),
        (change("temperature_check.early_learning.networks", {"mlp-tyni": 1}), r"networks: unknown .*'mlp-tiny'"),
        (change("temperature_check.early_learning.curves.inverse_temperatures", [1.0, 0.1]), "must ascend"),
        (change("temperature_check.early_learning.curves.last", 0.01), r"curves: last: 0\.01, must be above first"),
        (change("datasets.digits.train_limits", 5), r"train_limits: unknown .*'train_limit'"),
    ],
)
def test_a_wrong_parameter_is_named(content: Any, edit: Callable[[Any], None], says: str) -> None:
    edit(content)
    with pytest.raises(InputError, match=says):
        validate(content, where="params.yaml")


def test_a_missing_parameter_is_named(content: Any) -> None:
    del content["classifier_temperature"]["search"]["lr"]
    with pytest.raises(InputError, match=r"classifier_temperature\.search\.lr: missing"):
        validate(content, where="params.yaml")


@pytest.mark.parametrize("kind", ["rt", "safe"])
def test_numbers_are_read_as_yaml_1_2(tmp_path: Path, kind: Literal["rt", "safe"]) -> None:
    """PyYAML reads 1e-3 as text and `no` as false; DVC and this project do not."""
    path = tmp_path / "numbers.yaml"
    path.write_text("lr: 1e-3\nanswer: no\n")
    assert dict(read_yaml(path, kind=kind)) == {"lr": 1e-3, "answer": "no"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [1", "not readable as YAML"),
        ("a: 1\na: 2", "not readable as YAML"),
        ("a: !!timestamp 2026-99-99", "not readable as YAML"),
        ("- 1", "params"),
        ("", "params"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "params.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        read_params(path)


def test_a_tag_constructs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_text("seed: !!python/object/apply:os.mkdir ['made']\n")
    with pytest.raises(InputError):
        read_params(path)
    assert not Path("made").exists()


def test_an_unknown_profile_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown profile 'mimi'.*'mini'"):
        apply_profile("mimi", tmp_path / "params.yaml", PROFILES)
    assert not (tmp_path / "params.yaml").exists()


def test_parameters_cannot_be_changed_by_accident() -> None:
    params: Params = read_params(ROOT / "params.yaml")
    with pytest.raises(ValueError, match="frozen"):
        params.seed = 1  # type: ignore[misc]


@pytest.mark.parametrize(("batch", "rows", "size"), [(128, 266, 128), ({"share": 0.1, "least": 32}, 1201, 121)])
def test_a_batch_is_a_number_or_a_share_of_the_training_rows(content: Any, batch: Any, rows: int, size: int) -> None:
    content["classifier_temperature"]["search"]["batch_size"] = batch
    search = validate(content, where="here").classifier_temperature.search
    assert (search.batch_of(rows), search.batch_of(10)) == (size, 128 if batch == 128 else 32)

"""Every profile is valid, states its sources, and leaves no figure empty."""

from io import StringIO
from pathlib import Path

import pytest
from dvc.utils.hydra import apply_overrides
from ruamel.yaml import YAML

from softmax_temperature.data.farm import FARM
from softmax_temperature.tools.profiles import profile_names
from softmax_temperature.training import scaled_epochs
from tests.profiles import PROFILES, profile, rendered

every_profile = pytest.mark.parametrize("name", profile_names(PROFILES))


@every_profile
def test_every_number_has_its_source_beside_it(name: str) -> None:
    """The comment beside a value or its block cites the paper's section, or `ours`."""
    section, covering, bare = "", [], []
    for line in rendered(name)[0].splitlines():
        code, _, comment = line.partition("#")
        if not code.strip():
            continue
        indent = len(line) - len(line.lstrip())
        if indent == 0:
            section = code.split(":")[0]
        covering = [heading for heading in covering if heading < indent] + [
            indent
        ] * bool(comment)
        if section in ("datasets", "backbones", "profile") or covering:
            continue
        if ":" in code and code.split(":", 1)[1].strip():
            bare.append(line)
    assert not bare


@every_profile
def test_the_focal_paper_has_the_data_and_the_epochs_that_it_needs(name: str) -> None:
    params = profile(name)
    paper = params.focal
    # The defaults name parallel texts that few users have, so a profile that did not
    # override this section would lack a data set.
    if (
        "focal" in params.papers
        and paper.translation
        and name not in ("paper", "translation_multi30k")
    ):
        assert paper.translation.dataset == FARM
    for task in paper.tasks.values():
        assert (
            not task.text
            or params.networks[task.network].arguments["vocabulary_size"]
            >= task.text.vocabulary
        )
    # Figures 3 and A.1 show only the first task. Tasks with shorter recipes may end
    # before some of the figures' epochs.
    for task_name in list(paper.tasks)[:1]:
        recipe = paper.recipe_of(task_name, paper.arms_of(task_name)[0])
        for epochs in (
            paper.watching.gradient_epochs,
            paper.watching.reliability_epochs,
        ):
            assert scaled_epochs(epochs, recipe.epochs, recipe.planned_epochs) & set(
                range(1, recipe.epochs + 1)
            )


def test_a_profiles_comment_on_a_section_replaces_the_default_comment() -> None:
    (line,) = [
        line
        for line in rendered("mini")[0].splitlines()
        if line.startswith("    network:  ")
    ]
    assert line.endswith(
        "# ours: a smaller Transformer than Vaswani et al.'s base model"
    )


@every_profile
def test_dvc_exp_run_with_a_changed_value_changes_no_other_line(
    name: str, tmp_path: Path
) -> None:
    text = rendered(name)[0]
    path = tmp_path / "params.yaml"
    path.write_text(text)
    # These are the overrides of `dvc exp run -S seed=7 -S cooling.recipe.lr=0.5`.
    apply_overrides(path, ["seed=7", "cooling.recipe.lr=0.5"])
    before = text.splitlines()
    after = path.read_text().splitlines()
    assert len(before) == len(after)
    pairs = zip(before, after, strict=True)
    changed = [(old.split(), new.split()) for old, new in pairs if old != new]
    assert [new[:2] for _, new in changed] == [["seed:", "7"], ["lr:", "0.5"]]
    for old, new in changed:
        assert old[2:] == new[2:], "the comment changed"


@every_profile
def test_ruamel_leaves_params_yaml_as_it_is(name: str) -> None:
    stream = StringIO()
    yaml = YAML()
    yaml.dump(yaml.load(rendered(name)[0]), stream)
    assert stream.getvalue() == rendered(name)[0]

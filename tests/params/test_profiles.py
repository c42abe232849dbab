"""Every profile is valid, names its sources, and leaves no figure empty."""

from functools import cache

import pytest

from softmax_temperature.data.farm import FARM
from softmax_temperature.params import Params
from softmax_temperature.tools.profiles import profile_names, render_profile
from softmax_temperature.training import scaled_epochs
from tests.conftest import ROOT

PROFILES = ROOT / "profiles"
every_profile = pytest.mark.parametrize("name", profile_names(PROFILES))


@cache
def of(name: str) -> tuple[str, Params]:
    return render_profile(name, PROFILES)


def logical_lines(text: str) -> list[str]:
    """The lines of a YAML text; a list over several lines becomes one line."""
    lines: list[str] = []
    for line in text.splitlines():
        last = lines[-1].partition("#")[0].rstrip() if lines else ""
        if last.count("[") > last.count("]") or (
            last.endswith(":") and line.strip().startswith("[")
        ):
            lines[-1] += line
        else:
            lines.append(line)
    return lines


@every_profile
def test_every_number_has_its_source_beside_it(name: str) -> None:
    """A value, or a block that it belongs to, ends with a section of the paper or
    `ours`.
    """
    section, covering, bare = "", [], []
    for line in logical_lines(of(name)[0]):
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
def test_the_focal_paper_has_what_it_needs_and_shows(name: str) -> None:
    params = of(name)[1]
    paper = params.focal
    # The defaults name parallel texts: a profile that says nothing would stop at a data
    # set that hardly anyone has.
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
    # Figures 3 and A.1 show the first task; epochs taken over from a longer recipe may
    # lie behind its end.
    for task_name in list(paper.tasks)[:1]:
        recipe = paper.recipe_of(task_name, paper.arms_of(task_name)[0])
        for epochs in (
            paper.watching.gradient_epochs,
            paper.watching.reliability_epochs,
        ):
            assert scaled_epochs(epochs, recipe.epochs, recipe.planned_epochs) & set(
                range(1, recipe.epochs + 1)
            )

"""The profiles of the focal paper: what each needs can be had, and no figure of it stays empty."""

from functools import cache
from pathlib import Path

import pytest

from softmax_temperature.data.farm import FARM
from softmax_temperature.params import Params
from softmax_temperature.tools.profiles import profile_names, render_profile
from softmax_temperature.training import scaled_epochs

PROFILES = Path(__file__).parents[2] / "profiles"
NAMES = profile_names(PROFILES)


@cache
def of(name: str) -> Params:
    return render_profile(name, PROFILES)[1]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("paper", "translation_multi30k")])
def test_only_two_profiles_need_parallel_texts(name: str) -> None:
    # The defaults name them: a profile that says nothing would stop at a data set that hardly anyone has.
    section = of(name).focal.translation
    assert "focal" not in of(name).papers or section is None or section.dataset == FARM


@pytest.mark.parametrize("name", [name for name in NAMES if of(name).focal.tasks])
def test_the_first_task_is_looked_at_closely(name: str) -> None:
    # Figures 3 and A.1 show it; epochs that a profile took over from a longer recipe may lie behind its end.
    paper = of(name).focal
    recipe = paper.recipe_of(task := next(iter(paper.tasks)), paper.arms_of(task)[0])
    for epochs in (paper.watching.gradient_epochs, paper.watching.reliability_epochs):
        assert scaled_epochs(epochs, recipe.epochs, recipe.planned_epochs) & set(range(1, recipe.epochs + 1))


@pytest.mark.parametrize("name", NAMES)
def test_networks_have_an_embedding_for_every_word(name: str) -> None:
    params = of(name)
    for task in params.focal.tasks.values():
        if task.text:
            assert params.networks[task.network].arguments["vocabulary_size"] >= task.text.vocabulary

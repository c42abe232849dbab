"""A small vocabulary, and networks for that vocabulary with random weights."""

from collections.abc import Callable

import pytest

from softmax_temperature.data.splits import Part
from softmax_temperature.params.focal import Transformer
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.training.translation.network import (
    TranslationTransformer,
    make_network,
)
from softmax_temperature.training.translation.sentences import SentencePairs
from softmax_temperature.training.translation.vocabulary import Vocabulary
from tests.small_trainings import RECIPE

SOURCES = (
    "the cat sees 3 dogs.",
    "a dog sleeps.",
    "the dog sees the cat.",
    "3 cats sleep now.",
    "sleep, dog!",
)
TARGETS = (
    "die Katze sieht drei Hunde.",
    "ein Hund schläft.",
    "der Hund sieht die Katze.",
    "jetzt schlafen drei Katzen.",
    "Hund, schlafe!",
)


@pytest.fixture(scope="session")
def part() -> Part:
    return Part.of_all("pets", "train", SOURCES, TARGETS)


@pytest.fixture(scope="session")
def vocabulary(part: Part) -> Vocabulary:
    return Vocabulary.fit(part, size=60)


@pytest.fixture(scope="session")
def pairs(part: Part, vocabulary: Vocabulary) -> SentencePairs:
    return vocabulary.encode_part(part)


@pytest.fixture
def recipe() -> Recipe:
    schedule = {"name": "inverse_square_root", "warmup": 1.0}
    adam = {
        "optimizer": "adam",
        "lr": 0.01,
        "beta2": 0.98,
        "weight_decay": 0.0,
        "epsilon": 1e-9,
    }
    return Recipe.model_validate(
        RECIPE | adam | {"planned_epochs": 3, "batch_size": 1, "schedule": schedule}
    )


@pytest.fixture
def make(vocabulary: Vocabulary) -> Callable[..., TranslationTransformer]:
    """A function that makes a narrow network without dropout.

    Its arguments change the seed and the sizes.
    """

    def network(**changes: object) -> TranslationTransformer:
        sizes = {
            "seed": 0,
            "width": 8,
            "heads": 2,
            "layers": 2,
            "inner": 16,
            "dropout": 0.0,
        }
        given = sizes | changes
        seed = given.pop("seed")
        return make_network(vocabulary.size, Transformer(**given), seed=seed)  # type: ignore[arg-type]

    return network

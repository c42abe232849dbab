"""Texts in the training loop: what is no set of tokens is refused, and a GRU learns and resumes bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from softmax_temperature.data.phrases import read_phrases
from softmax_temperature.data.splits import Part
from softmax_temperature.data.tokens import Tokeniser
from softmax_temperature.networks.texts import GRU
from softmax_temperature.runner.artifacts import canonical_json
from softmax_temperature.runner.cells import Job
from softmax_temperature.training import Norms, Trainer, Watch, train
from softmax_temperature.training.cooling import CoolingCallback
from softmax_temperature.training.texts import TokenSet

LENGTH = 24
TEXT = {"mean": None, "std": None}
MakeTrainer = Callable[..., Trainer]

# ---- sets


@pytest.mark.parametrize(
    ("tokens", "labels", "says"),
    [
        (torch.ones(2, 3), torch.zeros(2), r"tokens must be \(n, length\) int64, got \(2, 3\) torch.float32"),
        (torch.ones(2, 3).int(), torch.zeros(2), r"tokens .* torch.int32"),
        (torch.ones(6).long(), torch.zeros(6), r"tokens .*\(6,\)"),
        (torch.ones(2, 3).long(), torch.zeros(3), r"labels must have shape \(2,\), got \(3,\)"),
        (torch.ones(2, 3).long(), torch.zeros(2, 1), r"labels must have shape \(2,\), got \(2, 1\)"),
        (
            torch.tensor([[1, 0], [0, 0]]),
            torch.zeros(2),
            "tokens must have no padding before or between them, got some in row 1",
        ),
        (torch.tensor([[0, 1], [1, 1]]), torch.zeros(2), "in row 0"),
        (torch.tensor([[1, 0, 1], [1, 1, 1]]), torch.zeros(2), "in row 0"),
    ],
)
def test_what_is_no_set_of_tokens_is_refused(tokens: Tensor, labels: Tensor, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        TokenSet(tokens, labels.long())


@pytest.mark.parametrize("asked", [{"flip": True}, {"crop_padding": 2}, {"mean": [0.0] * 3}, {"std": [1.0] * 3}])
def test_texts_are_neither_augmented_nor_normalised(make_recipe: Any, asked: dict[str, Any]) -> None:
    tokens = TokenSet(torch.ones(2, 3).long(), torch.zeros(2).long())
    tokens.check(make_recipe(**TEXT))
    with pytest.raises(ValueError, match="recipe must neither augment nor normalise texts"):
        tokens.check(make_recipe(**TEXT | asked))


# ---- trainings


@cache
def phrases() -> tuple[dict[str, TokenSet], int]:
    """Training and test sentences as tokens, and the size of the vocabulary."""
    raw = read_phrases(seed=0)
    assert raw.test is not None
    parts = {}
    for split, part in (("train", raw.train), ("test", raw.test)):
        texts, labels = tuple(part.samples), torch.from_numpy(part.labels)
        parts[split] = Part(raw.name, split, texts, labels, torch.arange(len(labels)))  # type: ignore[arg-type]
    tokeniser = Tokeniser.fit(parts["train"], vocabulary_size=200, length=LENGTH, keep="end")
    sets = {split: TokenSet(tokeniser.encode(part.data), part.labels) for split, part in parts.items()}
    return sets, tokeniser.vocabulary_size


@pytest.fixture
def start(make_trainer: MakeTrainer) -> MakeTrainer:
    """A training of a small GRU on phrases."""

    def begin(count: int | None = None, **changes: Any) -> Trainer:
        sets, vocabulary_size = phrases()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            network: nn.Module = GRU(vocabulary_size, embedding=16, hidden=32)
        adam = {"optimizer": "adam", "lr": 0.01, "momentum": 0.9, "weight_decay": 0.0, "batch_size": 32}
        return make_trainer(network, images=sets["train"].sample(count), **TEXT, **{**adam, **changes})

    return begin


def test_a_gru_learns_what_a_bag_of_words_cannot(start: MakeTrainer) -> None:
    sets, vocabulary_size = phrases()
    epochs = 5
    quick = {"lr": 0.02, "batch_size": 64, "schedule": {"name": "linear"}}
    trainer = start(epochs=epochs, planned_epochs=epochs, **quick)
    for _ in range(epochs):
        trainer.epoch()
    logits, _ = trainer.evaluate(sets["test"].inputs)
    accuracy = (logits.argmax(1) == sets["test"].labels).double().mean().item()
    bags = {split: bag_of_words(some.inputs, vocabulary_size) for split, some in sets.items()}
    model = LogisticRegression(max_iter=1000).fit(bags["train"], sets["train"].labels)
    assert accuracy > 0.9
    assert accuracy > model.score(bags["test"], sets["test"].labels) + 0.25


def bag_of_words(tokens: Tensor, vocabulary_size: int) -> Tensor:
    counts = torch.zeros(len(tokens), vocabulary_size)
    counts.scatter_add_(1, tokens, torch.ones(tokens.shape))
    return counts[:, 1:]


def content(trainer: Trainer, *callbacks: Any) -> tuple[list[bytes], str]:
    weights = [value.numpy().tobytes() for value in trainer.network.state_dict().values()]
    return weights, canonical_json([each.state_dict() for each in callbacks])


def test_all_callbacks_work_with_texts(start: MakeTrainer, make_job: Callable[[Path], Job], tmp_path: Path) -> None:
    sets, _ = phrases()
    found = []
    for folder in ("one", "other"):
        trainer, held_out = start(128, epochs=2, planned_epochs=2), sets["test"].sample(100)
        cooling = CoolingCallback(trainer.network, held_out, period="epoch", optimizer_state="keep", mode="last_layer")
        watch, norms = Watch({"train": held_out, "test": held_out}), Norms(held_out.inputs)
        trainer.after_batch += [cooling.after_batch, norms.after_batch]
        assert not train(trainer, {"cooling": cooling, "norms": norms, "watch": watch}, make_job(tmp_path / folder))
        assert [row["epoch"] for row in norms.history] == [1, 2]
        assert len(cooling.temperatures) == 2
        found.append(content(trainer, cooling, norms, watch))
    assert found[0] == found[1]

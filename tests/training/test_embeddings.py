"""Word embeddings from given vectors: frozen ones never move, others by plain gradient steps without decay."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature.networks.texts import TextCNN
from softmax_temperature.runner.checkpoints import load_checkpoint, save_checkpoint
from softmax_temperature.training import Trainer, count_parameters
from softmax_temperature.training.embeddings import EmbeddingSteps, embedding_of, freeze_embedding, set_embedding
from softmax_temperature.training.tokens import TokenSet

MakeTrainer = Callable[..., Trainer]
VOCABULARY, WIDTH = 8, 4


def network() -> TextCNN:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return TextCNN(VOCABULARY, embedding=WIDTH, filters=4, width=2, dense=4, dropout=0.0, num_classes=2)


def vectors(count: int = VOCABULARY) -> Tensor:
    found = torch.randn(count, WIDTH, generator=torch.Generator().manual_seed(1))
    found[0] = 0
    return found


def texts(count: int = 20) -> TokenSet:
    """No text has the last word of the vocabulary."""
    tokens = torch.randint(1, VOCABULARY - 1, (count, 9), generator=torch.Generator().manual_seed(2))
    return TokenSet(tokens, (tokens == 3).any(1).long())


@pytest.fixture
def start(make_trainer: MakeTrainer) -> MakeTrainer:
    def begin(model: nn.Module, **changes: Any) -> Trainer:
        recipe = {"optimizer": "adagrad", "weight_decay": 0.1, "mean": None, "std": None, **changes}
        return make_trainer(model, images=texts(), **recipe)

    return begin


def test_vectors_are_set_and_higher_numbers_stay() -> None:
    model, before = network(), network()
    set_embedding(model, vectors(5))
    assert torch.equal(model.embedding.weight[:5], vectors(5))
    assert torch.equal(model.embedding.weight[5:], before.embedding.weight[5:])
    assert model.embedding.weight.requires_grad


def test_vectors_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"vectors must fit the embedding \(8, 4\), got \(9, 4\)"):
        set_embedding(network(), vectors(9))
    with pytest.raises(ValueError, match=r"vectors must fit the embedding \(8, 4\), got \(8, 3\)"):
        set_embedding(network(), vectors()[:, :3])
    with pytest.raises(ValueError, match="network must have a word embedding, got Linear"):
        embedding_of(nn.Linear(2, 2))


def test_a_frozen_embedding_is_kept_but_never_trained(start: MakeTrainer) -> None:
    model = network()
    set_embedding(model, vectors())
    all_of_it, logits = count_parameters(model), model.eval()(texts().tokens)
    freeze_embedding(model)
    assert count_parameters(model) == all_of_it - VOCABULARY * WIDTH
    assert torch.equal(model(texts().tokens), logits)
    trainer, others = start(model), copy.deepcopy(model.hidden[0].weight)
    trainer.epoch()
    assert torch.equal(model.state_dict()["embedding.weight"], vectors())
    assert not torch.equal(model.hidden[0].weight, others)


def by_hand(model: TextCNN, trainer: Trainer, step: float) -> Tensor:
    """The embedding after one batch of all texts."""
    loss = F.cross_entropy(model(trainer.samples.inputs), trainer.samples.labels)
    (gradient,) = torch.autograd.grad(loss, [model.embedding.weight])
    return (model.embedding.weight - step * gradient).detach()


def test_steps_are_plain_ones_of_their_own_size(start: MakeTrainer) -> None:
    model = network()
    set_embedding(model, vectors())
    trainer = start(model, batch_size=20)
    expected = by_hand(model.train(), trainer, step=0.5)
    trainer.after_batch.append(EmbeddingSteps(trainer, 0.5))
    others = copy.deepcopy(model.hidden[0].weight)
    trainer.epoch()
    torch.testing.assert_close(model.embedding.weight, expected)
    assert torch.equal(model.embedding.weight[-1], vectors()[-1]), "a word of no text stays: there is no weight decay"
    assert not torch.equal(model.hidden[0].weight, others)


def test_a_training_with_steps_resumes_to_the_same_bits(start: MakeTrainer, tmp_path: Path) -> None:
    def begin() -> Trainer:
        trainer = start(network())
        trainer.after_batch.append(EmbeddingSteps(trainer, 0.5))
        return trainer

    whole, resumed = begin(), begin()
    whole.epoch()
    save_checkpoint(tmp_path / "checkpoint", whole.state_dict())
    resumed.load_state_dict(load_checkpoint(tmp_path / "checkpoint") or {})
    for trainer in (whole, resumed):
        trainer.epoch()
    for one, other in zip(whole.network.parameters(), resumed.network.parameters(), strict=True):
        assert torch.equal(one, other)

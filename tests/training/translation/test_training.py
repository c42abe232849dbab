"""Training on target tokens: the loss by hand, scores, resuming bit for bit, and sentences learned by heart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from softmax_temperature.data.splits import ParallelPart
from softmax_temperature.losses import make_objective
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.runner.artifacts import canonical_json
from softmax_temperature.runner.checkpoints import load_checkpoint, save_checkpoint
from softmax_temperature.training import Diverged, Trainer
from softmax_temperature.training.translation.decoding import Search, translate
from softmax_temperature.training.translation.network import TranslationTransformer
from softmax_temperature.training.translation.pairs import SentencePairs, length_batches
from softmax_temperature.training.translation.training import TokenScores, per_token, token_logits
from softmax_temperature.training.translation.vocabulary import PADDING, Vocabulary

Make = Callable[..., TranslationTransformer]
LOSSES = {"cross_entropy": {}, "label_smoothing": {"smoothing": 0.1}, "focal": {"gamma": 1.0}}


@pytest.fixture
def trainer(make: Make, pairs: SentencePairs, recipe: Recipe) -> Callable[..., Trainer]:
    """A training with one of the losses; other arguments replace values of the recipe."""

    def start(loss: str = "cross_entropy", dropout: float = 0.1, width: int = 8, **changes: object) -> Trainer:
        batches, objective = length_batches(pairs, tokens=24, seed=0), per_token(make_objective(loss, LOSSES[loss]))
        network = make(width=width, dropout=dropout)
        return Trainer(network, objective, batches, recipe.changed(changes), seed=7, device="cpu")

    return start


@pytest.mark.parametrize("loss", LOSSES)
def test_the_loss_is_a_mean_over_tokens_without_padding(loss: str) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(5, 9, generator=generator, dtype=torch.float64)
    truth = torch.tensor([4, 8, 2, 5, 2])
    labels = torch.cat([truth, torch.full((3,), PADDING)])[None]
    log_probs = torch.log_softmax(logits, 1)
    of_truth = log_probs[torch.arange(5), truth]
    expected = {
        "cross_entropy": -of_truth,
        "label_smoothing": -(0.9 - 0.1 / 8) * of_truth - 0.1 / 8 * log_probs.sum(1),
        "focal": -(1 - of_truth.exp()) * of_truth,
    }
    value = per_token(make_objective(loss, LOSSES[loss]))(logits, labels, 0.0)
    assert value.item() == pytest.approx(expected[loss].mean().item())


def test_logits_of_a_split_are_those_of_its_pairs(trainer: Callable[..., Trainer], pairs: SentencePairs) -> None:
    run = trainer()
    pieces = list(token_logits(run, length_batches(pairs, tokens=24, seed=1)))
    assert len(pieces) > 1
    order = torch.cat(length_batches(pairs, tokens=24, seed=1).batches)
    run.network.eval()
    with torch.no_grad():
        alone = torch.cat([run.network(pairs.teacher_forced(row[None])) for row in order])
    torch.testing.assert_close(torch.cat([logits for logits, _ in pieces]), alone, rtol=1e-4, atol=1e-5)
    tokens = torch.cat([pairs.targets.padded(row[None], padding=PADDING)[0] for row in order])
    assert torch.equal(torch.cat([labels for _, labels in pieces]), tokens)


def test_scores_are_those_of_the_tokens(trainer: Callable[..., Trainer], pairs: SentencePairs) -> None:
    run, batches = trainer(), length_batches(pairs, tokens=24, seed=1)
    scores = TokenScores(batches)
    run.epoch()
    scores.after_epoch(run)
    logits, labels = (torch.cat(side) for side in zip(*token_logits(run, batches), strict=True))
    [row] = scores.history
    assert (row["epoch"], row["loss"]) == (1, run.loss)
    assert row["nll"] == pytest.approx(F.cross_entropy(logits, labels).item(), rel=1e-5)
    assert row["accuracy"] == pytest.approx((logits.argmax(1) == labels).double().mean().item())


def test_a_training_goes_on_with_the_same_bits(
    trainer: Callable[..., Trainer], pairs: SentencePairs, tmp_path: Path
) -> None:
    whole, scores = trainer("focal"), TokenScores(length_batches(pairs, tokens=24, seed=1))
    for _ in range(3):
        whole.epoch()
        scores.after_epoch(whole)
    first, seen = trainer("focal"), TokenScores(length_batches(pairs, tokens=24, seed=1))
    first.epoch()
    seen.after_epoch(first)
    save_checkpoint(tmp_path / "c.pt", {"trainer": first.state_dict(), "scores": seen.state_dict()})
    resumed, again = trainer("focal"), TokenScores(length_batches(pairs, tokens=24, seed=1))
    state = load_checkpoint(tmp_path / "c.pt")
    assert state is not None
    resumed.load_state_dict(state["trainer"])
    again.load_state_dict(state["scores"])
    for _ in range(2):
        resumed.epoch()
        again.after_epoch(resumed)
    expected = whole.network.state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in resumed.network.state_dict().items())
    assert canonical_json(again.history) == canonical_json(scores.history)


def test_logits_that_are_not_finite_end_a_training(trainer: Callable[..., Trainer], pairs: SentencePairs) -> None:
    run = trainer()
    with torch.no_grad():
        run.network.embedding.weight[5] = torch.nan
    with pytest.raises(Diverged, match="logits are not finite"):
        list(token_logits(run, length_batches(pairs, tokens=24, seed=1)))
    with pytest.raises(Diverged):
        run.epoch()


def test_a_few_sentences_are_learned_by_heart(
    trainer: Callable[..., Trainer], part: ParallelPart, pairs: SentencePairs, vocabulary: Vocabulary
) -> None:
    run = trainer("focal", 0.0, 16, epochs=120, planned_epochs=120, schedule={"name": "constant", "warmup": 3.0})
    for _ in range(120):
        run.epoch()
    assert isinstance(run.network, TranslationTransformer)
    search = Search(beam=2, length_penalty=0.6, extra_length=10, sentences=8)
    found = vocabulary.decode(translate(run.network, pairs.sources, search, temperature=1.0, device="cpu"))
    assert sum(one == target for one, target in zip(found, part.targets, strict=True)) >= 4

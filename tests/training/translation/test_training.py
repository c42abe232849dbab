"""Training on target tokens: the loss by hand, scores, resuming bit for bit, and sentences learned by heart."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from softmax_temperature.losses import make_objective
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.training import Trainer
from softmax_temperature.training.translation.network import TranslationTransformer
from softmax_temperature.training.translation.scores import TokenScores, token_logits
from softmax_temperature.training.translation.sentences import PADDING, LengthBatches, SentencePairs, per_token

Make = Callable[..., TranslationTransformer]
LOSSES = {"cross_entropy": {}, "label_smoothing": {"smoothing": 0.1}, "focal": {"gamma": 1.0}}


@pytest.fixture
def trainer(make: Make, pairs: SentencePairs, recipe: Recipe) -> Callable[..., Trainer]:
    """A training with one of the losses; other arguments replace values of the recipe."""

    def start(loss: str = "cross_entropy", dropout: float = 0.1, width: int = 8, **changes: object) -> Trainer:
        batches, objective = LengthBatches.of(pairs, tokens=24, seed=0), per_token(make_objective(loss, LOSSES[loss]))
        network = make(width=width, dropout=dropout)
        return Trainer(network, objective, batches, recipe.changed(changes), seed=7, device="cpu")

    return start


def test_the_loss_is_a_mean_over_tokens_without_padding() -> None:
    logits = torch.randn(5, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    truth = torch.tensor([4, 8, 2, 5, 2])
    labels = torch.cat([truth, torch.full((3,), PADDING)])[None]
    of_truth = torch.log_softmax(logits, 1)[torch.arange(5), truth]
    loss = per_token(make_objective("focal", {"gamma": 1.0}))(logits, labels, 0.0)
    assert loss.item() == pytest.approx((-(1 - of_truth.exp()) * of_truth).mean().item())


def test_logits_of_a_split_are_those_of_its_pairs(trainer: Callable[..., Trainer], pairs: SentencePairs) -> None:
    run = trainer()
    pieces = list(token_logits(run, LengthBatches.of(pairs, tokens=24, seed=1)))
    assert len(pieces) > 1
    order = torch.cat(LengthBatches.of(pairs, tokens=24, seed=1).batches)
    run.network.eval()
    with torch.no_grad():
        alone = torch.cat([run.network(pairs.teacher_forced(row[None])) for row in order])
    torch.testing.assert_close(torch.cat([logits for logits, _ in pieces]), alone, rtol=1e-4, atol=1e-5)
    tokens = torch.cat([pairs.targets.padded(row[None])[0] for row in order])
    assert torch.equal(torch.cat([labels for _, labels in pieces]), tokens)


def test_scores_are_those_of_the_tokens(trainer: Callable[..., Trainer], pairs: SentencePairs) -> None:
    run, batches = trainer(), LengthBatches.of(pairs, tokens=24, seed=1)
    scores = TokenScores(batches)
    run.epoch()
    scores.after_epoch(run)
    logits, labels = (torch.cat(side) for side in zip(*token_logits(run, batches), strict=True))
    [row] = scores.history
    assert (row["epoch"], row["loss"]) == (1, run.loss)
    assert row["nll"] == pytest.approx(F.cross_entropy(logits, labels).item(), rel=1e-5)

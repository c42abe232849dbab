"""The Transformer ignores padding and later tokens; losses match plain computations."""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.losses import FocalLoss, make_loss
from softmax_temperature.params.focal import Transformer
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.training import Trainer
from softmax_temperature.training.translation.network import (
    TranslationTransformer,
    positions,
)
from softmax_temperature.training.translation.scores import TokenScores, token_logits
from softmax_temperature.training.translation.sentences import (
    PADDING,
    LengthBatches,
    PerToken,
    SentencePairs,
)

Make = Callable[..., TranslationTransformer]


def test_padding_changes_neither_logits_nor_loss_nor_gradients(
    make: Make, pairs: SentencePairs
) -> None:
    network, rows = make().double(), torch.arange(len(pairs))
    objective = PerToken(FocalLoss(1.0))

    def results(columns: int) -> list[Tensor]:
        inputs, labels = (
            F.pad(given, (0, columns), value=PADDING)
            for given in (pairs.teacher_forced(rows), pairs.targets.padded(rows))
        )
        logits = network(inputs)
        loss = objective(logits, labels, 0.0)
        return [logits, loss, *torch.autograd.grad(loss, list(network.parameters()))]

    for columns in (1, 7):
        for one, other in zip(results(columns), results(0), strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("training", [True, False])
def test_a_sentence_has_the_same_logits_in_a_batch_and_alone(
    make: Make, pairs: SentencePairs, training: bool
) -> None:
    # In evaluation mode without gradients, torch uses other, faster kernels, which
    # apply masks differently.
    network = make().train(training)
    with torch.set_grad_enabled(training):
        together = network(pairs.teacher_forced(torch.arange(len(pairs))))
        alone = torch.cat(
            [
                network(pairs.teacher_forced(torch.tensor([row])))
                for row in range(len(pairs))
            ]
        )
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)


def test_no_position_sees_later_tokens_and_every_position_sees_the_source(
    make: Make,
) -> None:
    network = make().double().eval()
    inputs = torch.tensor([[[5, 6, 7, 8, 2], [1, 9, 10, 11, 12]]])
    before = network(inputs)
    assert before.shape == (5, network.classifier.out_features)
    for place in range(1, 5):
        changed = inputs.clone()
        changed[0, 1, place] = 20
        after = network(changed)
        torch.testing.assert_close(after[:place], before[:place], rtol=0, atol=1e-12)
        assert not torch.allclose(after[place:], before[place:], atol=1e-4)
    changed = inputs.clone()
    changed[0, 0, 4] = 20
    assert ((network(changed) - before).abs().amax(1) > 1e-4).all()


def test_one_matrix_embeds_and_classifies_and_the_base_model_has_the_printed_size() -> (
    None
):
    # Table 3 of Vaswani et al. gives 65 million parameters, for 37,000 word pieces.
    with torch.device("meta"):
        network = TranslationTransformer(
            37_000, Transformer(width=512, heads=8, layers=6, inner=2048, dropout=0.1)
        )
    assert network.classifier.weight is network.embedding.weight
    assert 62 < sum(parameter.numel() for parameter in network.parameters()) / 1e6 < 66


def test_positions_by_hand() -> None:
    table = positions(3, 4, torch.device("cpu"))
    expected = [
        [f(k / rate) for rate in (1, 100) for f in (math.sin, math.cos)]
        for k in range(3)
    ]
    torch.testing.assert_close(table, torch.tensor(expected))


Make = Callable[..., TranslationTransformer]
LOSSES = {
    "cross_entropy": {},
    "label_smoothing": {"smoothing": 0.1},
    "focal": {"gamma": 1.0},
}


@pytest.fixture
def trainer(make: Make, pairs: SentencePairs, recipe: Recipe) -> Callable[..., Trainer]:
    """A function that makes a trainer with a given loss and a changed recipe."""

    def start(
        loss: str = "cross_entropy",
        dropout: float = 0.1,
        width: int = 8,
        **changes: object,
    ) -> Trainer:
        batches, objective = (
            LengthBatches.of(pairs, tokens=24, seed=0),
            PerToken(make_loss(loss, LOSSES[loss])),
        )
        network = make(width=width, dropout=dropout)
        return Trainer(
            network, objective, batches, recipe.changed(changes), seed=7, device="cpu"
        )

    return start


def test_the_loss_is_a_mean_over_tokens_without_padding() -> None:
    logits = torch.randn(
        5, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    truth = torch.tensor([4, 8, 2, 5, 2])
    labels = torch.cat([truth, torch.full((3,), PADDING)])[None]
    of_truth = torch.log_softmax(logits, 1)[torch.arange(5), truth]
    loss = PerToken(make_loss("focal", {"gamma": 1.0}))(logits, labels, 0.0)
    assert loss.item() == pytest.approx(
        (-(1 - of_truth.exp()) * of_truth).mean().item()
    )


def test_logits_of_a_split_equal_those_of_its_pairs(
    trainer: Callable[..., Trainer], pairs: SentencePairs
) -> None:
    run = trainer()
    pieces = list(token_logits(run, LengthBatches.of(pairs, tokens=24, seed=1)))
    assert len(pieces) > 1
    order = torch.cat(LengthBatches.of(pairs, tokens=24, seed=1).batches)
    run.network.eval()
    with torch.no_grad():
        alone = torch.cat(
            [run.network(pairs.teacher_forced(row[None])) for row in order]
        )
    torch.testing.assert_close(
        torch.cat([logits for logits, _ in pieces]), alone, rtol=1e-4, atol=1e-5
    )
    tokens = torch.cat([pairs.targets.padded(row[None])[0] for row in order])
    assert torch.equal(torch.cat([labels for _, labels in pieces]), tokens)


def test_scores_equal_those_of_the_tokens(
    trainer: Callable[..., Trainer], pairs: SentencePairs
) -> None:
    run, batches = trainer(), LengthBatches.of(pairs, tokens=24, seed=1)
    scores = TokenScores(batches)
    run.epoch()
    scores.after_epoch(run)
    logits, labels = (
        torch.cat(side) for side in zip(*token_logits(run, batches), strict=True)
    )
    [row] = scores.history
    assert (row["epoch"], row["loss"]) == (1, run.loss)
    assert row["nll"] == pytest.approx(F.cross_entropy(logits, labels).item(), rel=1e-5)

"""The Transformer: padding changes nothing, no place sees what comes after it, and one matrix serves three ends."""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.losses import focal_loss
from softmax_temperature.params.focal import Transformer
from softmax_temperature.training.translation.network import TranslationTransformer, positions
from softmax_temperature.training.translation.sentences import PADDING, SentencePairs, per_token

Make = Callable[..., TranslationTransformer]


def test_padding_changes_neither_logits_nor_loss_nor_gradients(make: Make, pairs: SentencePairs) -> None:
    network, rows = make().double(), torch.arange(len(pairs))
    objective = per_token(lambda logits, truth, _: focal_loss(logits, truth, 1.0))

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
def test_a_sentence_has_the_logits_that_it_has_alone(make: Make, pairs: SentencePairs, training: bool) -> None:
    # In evaluation mode without gradients torch has faster kernels, whose masks are others.
    network = make().train(training)
    with torch.set_grad_enabled(training):
        together = network(pairs.teacher_forced(torch.arange(len(pairs))))
        alone = torch.cat([network(pairs.teacher_forced(torch.tensor([row]))) for row in range(len(pairs))])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)


def test_no_place_sees_the_tokens_after_it_and_every_place_sees_the_source(make: Make) -> None:
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


def test_one_matrix_embeds_and_classifies_and_the_base_model_has_the_size_that_is_printed() -> None:
    # Vaswani et al., Table 3: 65 million parameters with 37,000 pieces.
    with torch.device("meta"):
        network = TranslationTransformer(37_000, Transformer(width=512, heads=8, layers=6, inner=2048, dropout=0.1))
    assert network.classifier.weight is network.embedding.weight
    assert 62 < sum(parameter.numel() for parameter in network.parameters()) / 1e6 < 66


def test_positions_by_hand() -> None:
    table = positions(3, 4, torch.device("cpu"))
    expected = [[f(k / rate) for rate in (1, 100) for f in (math.sin, math.cos)] for k in range(3)]
    torch.testing.assert_close(table, torch.tensor(expected))

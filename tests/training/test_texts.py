"""The training loop handles texts, parsed sentences, and all kinds of word vectors."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature.data.seeds import drawn_from
from softmax_temperature.data.trees import (
    LABEL,
    NEUTRAL,
    UNLABELLED,
    encode_trees,
    parse_tree,
)
from softmax_temperature.networks.registry import count_parameters
from softmax_temperature.networks.text_cnn import TextCNN
from softmax_temperature.training import Trainer
from softmax_temperature.training.texts import OverLabelledNodes, TokenSet, TreeSet
from softmax_temperature.training.word_embeddings import (
    EmbeddingSteps,
    embedding_of,
    freeze_embedding,
    set_embedding,
)

TEXT = {"mean": None, "std": None}
MakeTrainer = Callable[..., Trainer]
WORDS, WIDTH = 8, 4


def seeded(network: type[nn.Module], *sizes: int, **options: Any) -> Any:
    with drawn_from(0):
        return network(*sizes, **options)


# ---- trees


def sentences(count: int = 96) -> TreeSet:
    """Sentences like "good film" and "not (good film)"; half of them are negated."""
    texts = []
    for number in range(count):
        praise = number % 2
        inside = (
            f"({1 + 2 * praise} ({1 + 2 * praise} {('bad', 'good')[praise]}) (2 film))"
        )
        texts.append(
            f"({3 - 2 * praise} (2 not) {inside})" if number % 4 < 2 else inside
        )
    trees = encode_trees(
        [parse_tree(text) for text in texts], ("not", "good", "bad", "film")
    )
    return TreeSet(trees, trees[:, 0, LABEL], "train")


def test_labels_belong_to_roots_or_nodes() -> None:
    trees = sentences(4)
    # The sentences are "not (bad film)", "not (good film)", "bad film" and "good film".
    assert trees.labels.tolist() == [1, 0, 0, 1]
    assert trees.labelled_nodes().labels.tolist() == [
        [1, NEUTRAL, 0, 0, NEUTRAL],
        [0, NEUTRAL, 1, 1, NEUTRAL],
        [0, 0, NEUTRAL, UNLABELLED, UNLABELLED],
        [1, 1, NEUTRAL, UNLABELLED, UNLABELLED],
    ]


@pytest.mark.parametrize("outputs", [2, 3])
def test_an_objective_is_summed_over_the_nodes_of_a_tree_and_averaged_over_trees(
    outputs: int,
) -> None:
    labels = torch.tensor(
        [
            [1, NEUTRAL, 0, 0],
            [0, 1, UNLABELLED, UNLABELLED],
            [NEUTRAL, 1, NEUTRAL, UNLABELLED],
        ]
    )
    logits = torch.randn(
        3, 4, outputs, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    over_nodes = OverLabelledNodes(
        lambda some, truth, position: position * F.cross_entropy(some, truth)
    )
    of_trees = [
        sum(
            F.cross_entropy(one, truth).item()
            for one, truth in zip(*tree, strict=True)
            if 0 <= truth < outputs
        )
        for tree in zip(logits, labels, strict=True)
    ]
    assert over_nodes(logits, labels, 2.0).item() == pytest.approx(
        2 * sum(of_trees) / 3
    )
    roots = F.cross_entropy(logits[:2, 0], labels[:2, 0])
    assert over_nodes(logits[:2, 0], labels[:2, 0], 1.0).item() == pytest.approx(
        roots.item()
    )


# ---- word embeddings


def network() -> TextCNN:
    """A network with given vectors for all words of its vocabulary except the last."""
    sizes = {
        "embedding": WIDTH,
        "filters": 4,
        "width": 2,
        "dense": 4,
        "dropout": 0.0,
        "num_classes": 2,
    }
    model: TextCNN = seeded(TextCNN, WORDS, **sizes)
    set_embedding(model, VECTORS)
    return model


VECTORS = (
    torch.randn(WORDS - 1, WIDTH, generator=torch.Generator().manual_seed(1))
    * (torch.arange(7) > 0)[:, None]
)


@pytest.fixture
def start(make_trainer: MakeTrainer) -> MakeTrainer:
    """A function that makes a trainer, whose texts lack the vocabulary's last word."""
    tokens = torch.randint(
        1, WORDS - 1, (20, 9), generator=torch.Generator().manual_seed(2)
    )
    texts = TokenSet(tokens, (tokens == 3).any(1).long(), "train")
    recipe = {"optimizer": "adagrad", "weight_decay": 0.1, "batch_size": 20, **TEXT}
    return lambda model: make_trainer(model, images=texts, **recipe)


def test_vectors_are_set_and_words_with_higher_numbers_keep_theirs() -> None:
    before = seeded(
        TextCNN,
        WORDS,
        embedding=WIDTH,
        filters=4,
        width=2,
        dense=4,
        dropout=0.0,
        num_classes=2,
    )
    weight = network().embedding.weight
    assert torch.equal(weight[:-1], VECTORS)
    assert torch.equal(weight[-1], before.embedding.weight[-1])
    for wrong in (torch.zeros(9, WIDTH), VECTORS[:, :3]):
        with pytest.raises(
            ValueError, match=r"vectors must fit the embedding \(8, 4\), got"
        ):
            set_embedding(network(), wrong)
    with pytest.raises(
        ValueError, match="network must have a word embedding, got Linear"
    ):
        embedding_of(nn.Linear(2, 2))


def test_a_frozen_embedding_is_kept_but_never_trained(start: MakeTrainer) -> None:
    model, all_of_it = network(), count_parameters(network())
    freeze_embedding(model)
    assert count_parameters(model) == all_of_it - WORDS * WIDTH
    trainer, others = start(model), copy.deepcopy(model.hidden[0].weight)
    trainer.epoch()
    assert torch.equal(
        model.state_dict()["embedding.weight"], network().embedding.weight
    )
    assert not torch.equal(model.hidden[0].weight, others)


def test_steps_of_an_embedding_are_plain_ones_with_their_own_rate(
    start: MakeTrainer,
) -> None:
    model = network()
    trainer = start(model)
    before: Tensor = model.embedding.weight.detach().clone()
    loss = F.cross_entropy(model(trainer.samples.inputs), trainer.samples.labels)
    (gradient,) = torch.autograd.grad(loss, [model.embedding.weight])
    trainer.after_batch.append(EmbeddingSteps(trainer, 0.5))
    others = copy.deepcopy(model.hidden[0].weight)
    trainer.epoch()
    torch.testing.assert_close(model.embedding.weight.detach(), before - 0.5 * gradient)
    assert torch.equal(model.embedding.weight[-1], before[-1]), (
        "weight decay moved the vector of an unused word"
    )
    assert not torch.equal(model.hidden[0].weight, others)

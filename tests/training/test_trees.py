"""Trees in the training loop: what is no set of trees is refused, and a Tree-LSTM learns and resumes bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.data.trees import LABEL, NEUTRAL, UNLABELLED, encode_trees, parse_tree
from softmax_temperature.networks.tree_lstm import TreeLSTM
from softmax_temperature.training import Trainer, Watch
from softmax_temperature.training.texts import TreeSet, over_labelled_nodes

MakeTrainer = Callable[..., Trainer]
TEXT = {"mean": None, "std": None}
NOT, GOOD, BAD, FILM = range(2, 6)


def sentences(count: int = 96) -> TreeSet:
    """ "good film", "not (good film)" and the like: what is inside is turned around as often as not."""
    texts = []
    for number in range(count):
        praise = number % 2
        inside = f"({1 + 2 * praise} ({1 + 2 * praise} {('bad', 'good')[praise]}) (2 film))"
        texts.append(f"({3 - 2 * praise} (2 not) {inside})" if number % 4 < 2 else inside)
    trees = encode_trees([parse_tree(text) for text in texts], ("not", "good", "bad", "film"))
    return TreeSet(trees, trees[:, 0, LABEL])


@pytest.fixture
def start(make_trainer: MakeTrainer) -> MakeTrainer:
    """A training of a small Tree-LSTM on the labels of all nodes."""

    def begin(samples: TreeSet | None = None, **changes: Any) -> Trainer:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            network = TreeLSTM(6, embedding=4, hidden=6, dropout=0.2)
        objective = over_labelled_nodes(lambda logits, labels, _: F.cross_entropy(logits, labels))
        recipe = {"optimizer": "adagrad", "lr": 0.1, "weight_decay": 0.0, **TEXT, **changes}
        images = (samples or sentences()).labelled_nodes()
        return make_trainer(network, objective=objective, images=images, **recipe)

    return begin


# ---- sets


def test_labels_are_those_of_roots_or_of_nodes() -> None:
    trees = sentences(4)
    assert len(trees) == 4
    # not (bad film), not (good film), bad film, good film
    assert trees.labels.tolist() == [1, 0, 0, 1]
    assert trees.labelled_nodes().labels.tolist() == [
        [1, NEUTRAL, 0, 0, NEUTRAL],
        [0, NEUTRAL, 1, 1, NEUTRAL],
        [0, 0, NEUTRAL, UNLABELLED, UNLABELLED],
        [1, 1, NEUTRAL, UNLABELLED, UNLABELLED],
    ]


LEAF, EMPTY = [GOOD, 0, 0, 1], [0, 0, 0, UNLABELLED]


@pytest.mark.parametrize(
    ("trees", "labels", "says"),
    [
        (torch.ones(2, 3), torch.zeros(2), r"trees must be \(n, nodes, 4\) int64, got \(2, 3\) torch.float32"),
        (torch.ones(2, 3, 4), torch.zeros(2), r"trees must be .* torch.float32"),
        (torch.ones(2, 3, 5).long(), torch.zeros(2), r"trees must be .*\(2, 3, 5\)"),
        (torch.tensor([[LEAF, EMPTY]]), torch.zeros(2), r"labels must have one of the shapes .*, got \(2,\)"),
        (torch.tensor([[LEAF, EMPTY]]), torch.zeros(1, 3), r"labels must have one of the shapes .*, got \(1, 3\)"),
    ],
)
def test_what_is_no_set_of_trees_is_refused(trees: Tensor, labels: Tensor, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        TreeSet(trees, labels.long())


# ---- the objective


@pytest.mark.parametrize("outputs", [2, 3])
def test_an_objective_is_summed_over_the_nodes_of_a_tree_and_averaged_over_trees(outputs: int) -> None:
    labels = torch.tensor([[1, NEUTRAL, 0, 0], [0, 1, UNLABELLED, UNLABELLED], [NEUTRAL, 1, NEUTRAL, UNLABELLED]])
    logits = torch.randn(3, 4, outputs, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    over_nodes = over_labelled_nodes(lambda some, truth, position: position * F.cross_entropy(some, truth))
    of_trees = [
        sum(F.cross_entropy(one, truth).item() for one, truth in zip(*tree, strict=True) if 0 <= truth < outputs)
        for tree in zip(logits, labels, strict=True)
    ]
    assert over_nodes(logits, labels, 2.0).item() == pytest.approx(2 * sum(of_trees) / 3)
    roots = F.cross_entropy(logits[:2, 0], labels[:2, 0])
    assert over_nodes(logits[:2, 0], labels[:2, 0], 1.0).item() == pytest.approx(roots.item())


# ---- trainings


def accuracy(trainer: Trainer, trees: TreeSet) -> float:
    logits, features = trainer.evaluate(trees.inputs)
    assert logits.shape == (len(trees), 2)
    assert features.shape == (len(trees),)
    return (logits.argmax(1) == trees.labels).double().mean().item()


def test_a_tree_lstm_learns_what_negation_does(start: MakeTrainer) -> None:
    trainer, trees = start(epochs=12, planned_epochs=12), sentences()
    for _ in range(12):
        trainer.epoch()
    assert accuracy(trainer, trees) == 1.0


def test_a_watch_looks_at_roots(start: MakeTrainer) -> None:
    trainer, trees = start(), sentences(20)
    watch = Watch({"train": trees, "test": trees}, gradient_epochs=frozenset({1}))
    trainer.epoch()
    watch.after_epoch(trainer)
    assert watch.history[0]["accuracy"] == pytest.approx(accuracy(trainer, trees))
    assert sum(row["count"] for row in watch.gradient_norms) == len(trees)

"""Trees in the training loop: what is no set of trees is refused, and a Tree-LSTM learns and resumes bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.data.trees import NEUTRAL, parse_tree
from softmax_temperature.data.trees import LABEL, UNLABELLED, encode_trees
from softmax_temperature.networks.tree_lstm import TreeLSTM
from softmax_temperature.runner.checkpoints import load_checkpoint, save_checkpoint
from softmax_temperature.training import ClosePlaces, Trainer, Watch
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
    assert torch.equal(trees.inputs, trees.trees)
    # not (bad film), not (good film), bad film, good film
    assert trees.labels.tolist() == [1, 0, 0, 1]
    assert trees.labelled_nodes().labels.tolist() == [
        [1, NEUTRAL, 0, 0, NEUTRAL],
        [0, NEUTRAL, 1, 1, NEUTRAL],
        [0, 0, NEUTRAL, UNLABELLED, UNLABELLED],
        [1, 1, NEUTRAL, UNLABELLED, UNLABELLED],
    ]


def test_a_sample_is_at_equal_distances() -> None:
    trees = sentences(8)
    assert torch.equal(trees.sample(2).trees, trees.trees[[0, 4]])
    assert trees.sample(None) is trees.sample(9) is trees


LEAF, EMPTY = [GOOD, 0, 0, 1], [0, 0, 0, UNLABELLED]
NO_TREES = {
    "a node below the root twice": [[0, 1, 1, 1], LEAF, EMPTY],
    "a node below none": [LEAF, LEAF, EMPTY],
    "a node below two": [[0, 1, 2, 1], [0, 2, 3, 1], LEAF, LEAF],
    "a node below itself": [[0, 1, 2, 1], [0, 1, 2, 1], LEAF],
    "a node below a later one": [[0, 2, 3, 1], LEAF, [0, 1, 3, 1], LEAF],
    "the root below a node": [[0, 0, 1, 1], LEAF, EMPTY],
    "one node below the root": [[0, 1, 0, 1], LEAF, EMPTY],
    "a node that is not there": [[0, 1, 3, 1], LEAF, LEAF],
    "a word above nodes": [[GOOD, 1, 2, 1], LEAF, LEAF],
    "padding below a node": [[0, 1, 2, 1], LEAF, EMPTY],
    "padding alone": [EMPTY, EMPTY],
    "a negative word": [[-3, 0, 0, 1], EMPTY],
}


@pytest.mark.parametrize("nodes", NO_TREES.values(), ids=NO_TREES)
def test_what_is_no_tree_is_refused(nodes: list[list[int]]) -> None:
    good = [LEAF] + [EMPTY] * (len(nodes) - 1)
    with pytest.raises(ValueError, match="trees must have each node but the root below one before it, not so in row 1"):
        TreeSet(torch.tensor([good, nodes]), torch.tensor([1, 1]))


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


@pytest.mark.parametrize("asked", [{"flip": True}, {"crop_padding": 2}, {"mean": [0.0] * 3}])
def test_trees_are_neither_augmented_nor_normalised(make_recipe: Any, asked: dict[str, Any]) -> None:
    sentences(4).check(make_recipe(**TEXT))
    with pytest.raises(ValueError, match="recipe must neither augment nor normalise texts"):
        sentences(4).check(make_recipe(**TEXT | asked))


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


def content(trainer: Trainer) -> list[bytes]:
    return [value.numpy().tobytes() for value in trainer.network.state_dict().values()]


def test_a_resumed_training_gives_the_same_bits(start: MakeTrainer, tmp_path: Path) -> None:
    whole, resumed = (start(epochs=4, planned_epochs=4, clip_norm=1.0) for _ in range(2))
    for _ in range(2):
        whole.epoch()
    save_checkpoint(tmp_path / "checkpoint", whole.state_dict())
    resumed.load_state_dict(load_checkpoint(tmp_path / "checkpoint") or {})
    for trainer in (whole, resumed):
        trainer.epoch()
        trainer.epoch()
    assert content(whole) == content(resumed)
    assert content(whole) != content(start())


def test_a_watch_looks_at_roots(start: MakeTrainer) -> None:
    trainer, trees = start(), sentences(20)
    watch = Watch({"train": trees, "test": trees}, ClosePlaces(frozenset({1}), frozenset({1})))
    trainer.epoch()
    watch.after_epoch(trainer)
    assert watch.history[0]["accuracy"] == pytest.approx(accuracy(trainer, trees))
    assert sum(row["count"] for row in watch.gradient_norms) == len(trees)

"""Texts and parsed sentences in the training loop: refused where they are none, learned where they are."""

import copy
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from softmax_temperature.data.phrases import read_phrases
from softmax_temperature.data.splits import Part
from softmax_temperature.data.tokens import Tokeniser
from softmax_temperature.data.trees import LABEL, NEUTRAL, UNLABELLED, encode_trees, parse_tree
from softmax_temperature.networks.texts import GRU, TextCNN
from softmax_temperature.networks.tree_lstm import TreeLSTM
from softmax_temperature.training import Trainer, count_parameters
from softmax_temperature.training.texts import (
    EmbeddingSteps,
    TokenSet,
    TreeSet,
    embedding_of,
    freeze_embedding,
    over_labelled_nodes,
    set_embedding,
)

TEXT = {"mean": None, "std": None}
MakeTrainer = Callable[..., Trainer]
LENGTH, WORDS, WIDTH = 24, 8, 4
NOT, GOOD, BAD, FILM = range(2, 6)


def seeded(network: type[nn.Module], *sizes: int, **options: Any) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return network(*sizes, **options)


# ---- tokens


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


def test_a_gru_learns_what_a_bag_of_words_cannot(make_trainer: MakeTrainer) -> None:
    sets, vocabulary_size = phrases()
    how = {"optimizer": "adam", "lr": 0.02, "weight_decay": 0.0, "batch_size": 64, "schedule": {"name": "linear"}}
    network = seeded(GRU, vocabulary_size, embedding=16, hidden=32)
    trainer = make_trainer(network, images=sets["train"], epochs=5, planned_epochs=5, **TEXT, **how)
    for _ in range(5):
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


# ---- trees


def sentences(count: int = 96) -> TreeSet:
    """ "good film", "not (good film)" and the like: what is inside is turned around as often as not."""
    texts = []
    for number in range(count):
        praise = number % 2
        inside = f"({1 + 2 * praise} ({1 + 2 * praise} {('bad', 'good')[praise]}) (2 film))"
        texts.append(f"({3 - 2 * praise} (2 not) {inside})" if number % 4 < 2 else inside)
    trees = encode_trees([parse_tree(text) for text in texts], ("not", "good", "bad", "film"))
    return TreeSet(trees, trees[:, 0, LABEL])


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


def test_a_tree_lstm_learns_what_negation_does(make_trainer: MakeTrainer) -> None:
    trees, network = sentences(), seeded(TreeLSTM, 6, embedding=4, hidden=6, dropout=0.2)
    objective = over_labelled_nodes(lambda logits, labels, _: F.cross_entropy(logits, labels))
    how = {"optimizer": "adagrad", "lr": 0.1, "weight_decay": 0.0, "epochs": 12, "planned_epochs": 12, **TEXT}
    trainer = make_trainer(network, objective=objective, images=trees.labelled_nodes(), **how)
    for _ in range(12):
        trainer.epoch()
    logits, features = trainer.evaluate(trees.inputs)
    assert torch.equal(logits.argmax(1), trees.labels)
    assert features.shape == (len(trees),)


# ---- word embeddings


def network() -> TextCNN:
    sizes = {"embedding": WIDTH, "filters": 4, "width": 2, "dense": 4, "dropout": 0.0, "num_classes": 2}
    return seeded(TextCNN, WORDS, **sizes)  # type: ignore[no-any-return]


def vectors(count: int = WORDS) -> Tensor:
    found = torch.randn(count, WIDTH, generator=torch.Generator().manual_seed(1))
    found[0] = 0
    return found


def texts(count: int = 20) -> TokenSet:
    """No text has the last word of the vocabulary."""
    tokens = torch.randint(1, WORDS - 1, (count, 9), generator=torch.Generator().manual_seed(2))
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
    all_of_it, logits = count_parameters(model), model.eval()(texts().inputs)
    freeze_embedding(model)
    assert count_parameters(model) == all_of_it - WORDS * WIDTH
    assert torch.equal(model(texts().inputs), logits)
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

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from softmax_temperature import CosineClassifier
from softmax_temperature.cosine_classifier import (
    TemperatureGrid,
    TemperatureGridTrainer,
    train_temperature_grid,
)

ALPHAS = (1.0, 10.0, 60.0, 250.0)


def mixture(
    n: int = 203, dim: int = 12, classes: int = 5, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Samples of Gaussian clusters after a softplus, with labels; no class is empty.

    The clusters overlap enough for the accuracy to depend on the temperature.
    """
    centres = torch.randn(classes, dim, generator=torch.Generator().manual_seed(1))
    generator = torch.Generator().manual_seed(seed)
    labels = torch.cat(
        [
            torch.arange(classes),
            torch.randint(0, classes, (n - classes,), generator=generator),
        ]
    )
    noise = torch.randn(n, dim, generator=generator)
    return functional.softplus(centres[labels] + noise), labels


def trainer(
    train: tuple[Tensor, Tensor] | None = None, **settings: object
) -> TemperatureGridTrainer:
    arguments = {"batch_size": 64, "lr": 2.0} | settings
    return TemperatureGridTrainer(train or mixture(), ALPHAS, **arguments)  # type: ignore[arg-type]


class PlainCosineClassifier(torch.nn.Module):
    """A plain implementation of section 3.1 with autograd, for one temperature."""

    def __init__(self, weights: Tensor, inverse_temperature: float) -> None:
        super().__init__()
        self.weights = torch.nn.Parameter(weights.clone())
        self.inverse_temperature = inverse_temperature

    def forward(self, embeddings: Tensor) -> Tensor:
        cosines = functional.linear(
            functional.normalize(embeddings, dim=1),
            functional.normalize(self.weights, dim=1),
        )
        return self.inverse_temperature * cosines


def train_plainly(
    model: PlainCosineClassifier,
    batches: list[list[tuple[Tensor, Tensor]]],
    optimizer: str,
    rescale: bool,
    lr: float,
) -> None:
    rule: torch.optim.Optimizer
    if optimizer == "sgd":
        rule = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.8)
    else:
        rule = torch.optim.Adam(model.parameters(), lr=lr, betas=(0.8, 0.999))
    for epoch in batches:
        for embeddings, labels in epoch:
            loss = functional.cross_entropy(model(embeddings), labels)
            if rescale:
                loss = loss / model.inverse_temperature
            rule.zero_grad()
            loss.backward()
            rule.step()


def batches_of(
    grid: TemperatureGridTrainer, train: tuple[Tensor, Tensor]
) -> list[tuple[Tensor, Tensor]]:
    return [(train[0][rows].double(), train[1][rows]) for rows in grid._batch_rows()]


@pytest.mark.parametrize(("optimizer", "lr"), [("sgd", 0.3), ("adam", 0.02)])
@pytest.mark.parametrize("rescale", [True, False])
def test_each_problem_is_a_plain_autograd_loop_at_one_temperature(
    optimizer: str, lr: float, rescale: bool
) -> None:
    train = mixture()
    epochs = 3
    grid = trainer(
        train,
        optimizer=optimizer,
        rescale=rescale,
        lr=lr,
        momentum=0.8,
        repeats=2,
        precision="float64",
    )
    before = grid._classifiers.weights.clone()
    batches = []
    for _ in range(epochs):
        batches.append(batches_of(grid, train))
        grid.epoch()
    after = grid._classifiers.weights
    for problem, alpha in enumerate(ALPHAS * 2):
        model = PlainCosineClassifier(before[problem], alpha)
        train_plainly(model, batches, optimizer, rescale, lr)
        torch.testing.assert_close(
            after[problem], model.weights.detach(), rtol=1e-7, atol=1e-9
        )


@pytest.mark.parametrize(
    ("precision", "tolerance"), [("float32", 2e-4), ("bfloat16", 0.04)]
)
def test_lower_precisions_follow_float64(precision: str, tolerance: float) -> None:
    def directions(name: str) -> Tensor:
        grid = trainer(precision=name)
        for _ in range(4):
            grid.epoch()
        return functional.normalize(grid._classifiers.weights.double(), dim=2)

    torch.testing.assert_close(
        directions(precision), directions("float64"), rtol=0, atol=tolerance
    )


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float64"])
def test_evaluation_counts_the_argmax_of_unrounded_cosines(precision: str) -> None:
    grid, (embeddings, labels) = (
        trainer(repeats=2, precision=precision),
        mixture(n=2000, seed=3),
    )
    grid.epoch()
    weights = functional.normalize(grid._classifiers.weights.double(), dim=2)
    predicted = torch.einsum(
        "pcd,nd->pnc", weights, functional.normalize(embeddings.double(), dim=1)
    ).argmax(2)
    expected = (predicted == labels).double().mean(1).view(2, len(ALPHAS))
    torch.testing.assert_close(
        grid.evaluate(grid.prepare_test(embeddings, labels)), expected
    )


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_resumed_training_equals_uninterrupted_training_bit_for_bit(
    precision: str, optimizer: str
) -> None:
    uninterrupted, first, second = (
        trainer(precision=precision, optimizer=optimizer, repeats=2) for _ in range(3)
    )
    for _ in range(4):
        uninterrupted.epoch()
    first.epoch()
    state = first.state_dict()
    # A later step must not change the saved state.
    first.epoch()
    second.load_state_dict(state)
    for _ in range(3):
        second.epoch()
    expected = uninterrupted.state_dict()
    resumed = second.state_dict()
    assert expected.keys() == resumed.keys()
    for name, value in expected.items():
        assert torch.equal(torch.as_tensor(value), torch.as_tensor(resumed[name])), name


@pytest.mark.parametrize("at_once", [1, 3, 7])
def test_blocks_of_problems_do_not_change_the_result(at_once: int) -> None:
    whole = trainer(repeats=2, problems_per_block=8)
    split = trainer(repeats=2, problems_per_block=at_once)
    assert len(whole._blocks) == 1
    assert len(split._blocks) > 1
    for _ in range(2):
        whole.epoch()
        split.epoch()
    torch.testing.assert_close(
        split._classifiers.weights, whole._classifiers.weights, rtol=1e-4, atol=1e-5
    )
    assert torch.equal(
        *(grid.evaluate(grid.prepare_test(*mixture(seed=5))) for grid in (split, whole))
    )


def grid_of(
    accuracies: list[float], evaluated: int, alphas: list[float] | None = None
) -> TemperatureGrid:
    curves = torch.tensor(accuracies, dtype=torch.float64)[None, :, None]
    return TemperatureGrid(
        tuple(alphas or [10.0 * (i + 1) for i in range(len(accuracies))]),
        curves,
        evaluated,
    )


def test_accuracy_is_the_best_over_epochs() -> None:
    curves = torch.tensor([[[0.1, 0.5, 0.4], [0.2, 0.3, 0.6]]])
    torch.testing.assert_close(
        TemperatureGrid((1.0, 5.0), curves, 10).accuracy, torch.tensor([[0.5, 0.6]])
    )


@pytest.mark.parametrize(
    ("accuracies", "optimum"),
    [
        ([0.5, 0.9, 0.9, 0.9, 0.5], 30.0),
        ([0.9, 0.9, 0.9, 0.9], 20.0),
        ([0.9, 0.5, 0.5, 0.5], 10.0),
        ([0.9, 0.1, 0.9, 0.9], 30.0),
    ],
)
def test_tied_optima_give_their_lower_median(
    accuracies: list[float], optimum: float
) -> None:
    assert grid_of(accuracies, evaluated=100).best_inverse_temperature == optimum


def test_the_plateau_is_the_run_within_one_standard_error() -> None:
    # An accuracy of 0.8 on 100 samples has a standard error of 0.04, so 0.76 is on the
    # plateau and 0.75 is not. The value 0.79 is separated from the best by 0.75, so it
    # is not on the plateau.
    assert grid_of([0.79, 0.75, 0.76, 0.8, 0.78, 0.7], evaluated=100).plateau == (
        30.0,
        50.0,
    )


def changed(value: float) -> Tensor:
    embeddings = mixture()[0].clone()
    embeddings[7] = value
    return embeddings


@pytest.mark.parametrize(
    ("split", "message"),
    [
        (
            (changed(float("nan")), mixture()[1]),
            "train embeddings must be finite and not all zeros, but row 7 holds NaN",
        ),
        ((changed(0.0), mixture()[1]), "row 7 is all zeros"),
        ((mixture()[0], mixture()[1][:-1]), r"train labels must have shape \(203,\)"),
        ((mixture()[0], mixture()[1] - 1), "train labels must not be negative, got -1"),
        ((mixture()[0], torch.zeros(203, dtype=torch.int64)), "at least two classes"),
    ],
)
def test_a_malformed_training_split_is_refused(
    split: tuple[Tensor, Tensor], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        trainer(split)


def test_a_learning_rate_that_overflows_is_named() -> None:
    grid = trainer(lr=1e38)
    with pytest.raises(
        ValueError, match=r"lr=1e\+38 made the weights overflow in epoch 1"
    ):
        grid.epoch()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 1}, "seed"),
        ({"second_moment": torch.zeros(4, 5, 12)}, "state must hold"),
    ],
)
def test_a_state_of_another_training_is_refused(
    change: dict[str, Tensor | int], message: str
) -> None:
    grid = trainer()
    with pytest.raises(ValueError, match=message):
        grid.load_state_dict(grid.state_dict() | change)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("batch_size", 0),
        ("lr", 0.0),
        ("momentum", 1.0),
        ("optimizer", "lbfgs"),
        ("precision", "f16"),
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{name} must .*{value}"):
        trainer(**{name: value})


@pytest.mark.parametrize(
    ("split", "alphas", "epochs", "message"),
    [
        (mixture(dim=11), ALPHAS, 1, "test embeddings must have dim 12"),
        ((mixture()[0], mixture()[1] + 1), ALPHAS, 1, "test labels must be below 5"),
        (mixture(), ALPHAS, 0, "epochs must be"),
        (mixture(), (1.0, 0.0), 1, "inverse_temperatures must"),
    ],
)
def test_bad_arguments_are_refused_before_training(
    split: tuple[Tensor, Tensor],
    alphas: tuple[float, ...],
    epochs: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(TemperatureGridTrainer, "epoch")
    with pytest.raises(ValueError, match=message):
        train_temperature_grid(
            mixture(), split, alphas, epochs=epochs, batch_size=64, lr=1.0
        )


def test_an_embedding_of_zeros_has_no_gradient() -> None:
    classifier = CosineClassifier(4, 3, inverse_temperature=16.0)
    embeddings = torch.tensor([[0.0] * 4, [1.0, 2.0, 3.0, 4.0]], requires_grad=True)
    classifier(embeddings).sum().backward()
    assert embeddings.grad is not None
    assert embeddings.grad[0].tolist() == [0.0] * 4
    assert embeddings.grad[1].abs().max() > 0


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.bool])
def test_embeddings_that_are_not_floats_are_refused(dtype: torch.dtype) -> None:
    classifier = CosineClassifier(4, 3, inverse_temperature=16.0)
    with pytest.raises(ValueError, match="embeddings must be floating point"):
        classifier(torch.ones(2, 4, dtype=dtype))


def test_a_sample_is_a_pair_of_a_matrix_and_labels() -> None:
    embeddings, labels = mixture(dim=12)
    for sample, fault in (
        (embeddings, r"sample must be \(embeddings, labels\), got Tensor"),
        ((embeddings, labels, labels), r"sample must be \(embeddings, labels\), got"),
        ((embeddings.tolist(), labels), r"got list\. Convert them: torch\.tensor"),
        ((embeddings[0], labels), r"shape \(n, 12\), got \(12,\)"),
    ):
        with pytest.raises(ValueError, match=fault):
            CosineClassifier(12, 5, sample=sample)  # type: ignore[arg-type]
    of_a_list = CosineClassifier(12, 5, sample=[embeddings, labels])  # type: ignore[arg-type]
    assert of_a_list.suggestion is not None

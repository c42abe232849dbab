"""Every entry point refuses probabilities in place of logits, and accepts logits."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torchvision.models import squeezenet1_1

from softmax_temperature import (
    Cooling,
    TemperatureScaler,
    calibrate,
    losses,
    metrics,
    scaling,
)
from softmax_temperature.cooling.last_layer import set_last_layer_temperature
from softmax_temperature.metrics.probability_check import (
    check_not_probs,
    is_of_sigmoid,
)

ROWS = 120
CLASSES = 4


def logits(rows: int = ROWS, classes: int = CLASSES, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 3 * torch.randn(rows, classes, generator=generator, dtype=torch.float64)


LABELS = torch.multinomial(
    (logits() / 2).softmax(dim=1), 1, generator=torch.Generator().manual_seed(1)
).squeeze(1)
PROBS = logits().softmax(dim=1)
WITH_A_ROW_OF_ZEROS = torch.where(torch.arange(ROWS)[:, None] == 7, 0, PROBS)
FORMS = {
    "probabilities": PROBS,
    "float32": PROBS.float(),
    "float16": PROBS.half(),
    "bfloat16": PROBS.bfloat16(),
    "two decimals": (100 * PROBS).round() / 100,
    "two decimals in float32": ((100 * PROBS).round() / 100).float(),
    "one row of zeros": WITH_A_ROW_OF_ZEROS,
    "sigmoids": logits().sigmoid(),
    "percentages": 100 * PROBS,
    "bytes": 255 * PROBS,
    "parts of a thousand": (1000 * PROBS).round(),
    "the sum of five members": 5 * PROBS.float(),
    "one minus probabilities": 1 - PROBS,
    "one minus probabilities in float16": (1 - PROBS).half(),
    "odds": PROBS / (1 - PROBS),
    "odds in float32": (PROBS / (1 - PROBS)).float(),
    "softmax over the rows": logits().softmax(dim=0),
    "softmax over the rows in float16": logits().softmax(dim=0).half(),
    "softmax over the rows of three batches": logits()
    .reshape(3, -1, CLASSES)
    .softmax(dim=1)
    .reshape(ROWS, CLASSES),
    "basis points": (10_000 * PROBS).round(),
    "16 bits": (65_535 * PROBS).round(),
    "votes of 500 trees": torch.distributions.Multinomial(500, PROBS).sample(),
}
REFUSED = (
    r"are ((one minus )?probabilities|percentages|odds p / \(1 - p\))"
    r"( times \d+| over the rows)?: "
)
ENTRIES: dict[str, Callable[[Tensor], object]] = {
    "calibrate": lambda scores: calibrate(scores, LABELS, bootstrap=0),
    "validation": lambda scores: calibrate(
        logits() + 1, LABELS, bootstrap=0, validation=(scores, LABELS)
    ),
    "fit": lambda scores: TemperatureScaler().fit(scores, LABELS),
    "fit of an array": lambda scores: TemperatureScaler().fit(
        scores.double().numpy(), LABELS.numpy()
    ),
    "transform": lambda scores: fitted().transform(scores),
    "predict_proba": lambda scores: fitted().predict_proba(scores),
    "fit_temperature": lambda scores: scaling.fit_temperature(scores, LABELS),
    "apply_temperature": lambda scores: scaling.apply_temperature(scores, 2.0),
    "temperature_interval": lambda scores: scaling.temperature_interval(
        scores, LABELS, scores.abs().max().item()
    ),
    "negative_log_likelihood": lambda scores: metrics.negative_log_likelihood(
        scores, LABELS
    ),
    "calibration_report": lambda scores: metrics.calibration_report(scores, LABELS),
    "confident_report": lambda scores: metrics.confident_report(scores, LABELS),
    "arm a": lambda scores: metrics.paired_difference(
        scores, logits(), LABELS, bootstrap=19
    ),
    "arm b": lambda scores: metrics.paired_difference(
        logits(), scores, LABELS, bootstrap=19
    ),
    "change": lambda scores: metrics.expected_calibration_error_change(
        scores, logits(), LABELS
    ),
    "inside": lambda scores: metrics.out_of_distribution_auroc(scores, logits()),
    "outside": lambda scores: metrics.out_of_distribution_interval(
        logits(), scores, bootstrap=19
    ),
    "curve": lambda scores: metrics.out_of_distribution_curve(logits(), scores),
    "focal_loss": lambda scores: losses.focal_loss(scores, LABELS, 3.0),
    "brier_loss": lambda scores: losses.brier_loss(scores, LABELS),
    "label_smoothing_loss": lambda scores: losses.label_smoothing_loss(scores, LABELS),
    "mmce": lambda scores: losses.mmce(scores, LABELS),
    "weighted_mmce": lambda scores: losses.weighted_mmce(scores, LABELS),
    "true_class_probs": lambda scores: losses.true_class_probs(scores, LABELS),
    "FocalLoss": lambda scores: losses.FocalLoss()(scores, LABELS),
    "MMCELoss": lambda scores: losses.MMCELoss()(scores, LABELS),
    "LabelSmoothingLoss": lambda scores: losses.LabelSmoothingLoss()(scores, LABELS),
    "cool": lambda scores: Cooling(nn.Linear(2, CLASSES)).cool(scores, LABELS),
    "wrap": lambda scores: serve_each([scores]),
    "soft labels": lambda scores: losses.BrierLoss()(scores, PROBS.to(scores)),
}
# Cosines may all lie in [0, 1], as the outputs of a sigmoid do. The entry points that
# accept cosines therefore check only whether rows sum to 1, and which function returned
# the scores.
SUMS_ALONE: dict[str, Callable[[Tensor], object]] = {
    "rescaled": lambda scores: losses.rescaled_cross_entropy(scores, LABELS, 16.0),
    "tempered": lambda scores: losses.TemperedCrossEntropyLoss(16.0)(scores, LABELS),
}


def fitted() -> TemperatureScaler:
    return TemperatureScaler().fit(logits(), LABELS)


def serve_each(batches: Iterable[Tensor]) -> None:
    """Pass each batch of logits to a wrapped network of `CLASSES` classes."""
    wrapped = fitted().wrap(nn.Identity())
    for batch in batches:
        wrapped(batch)


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("form", FORMS)
def test_probabilities_are_refused_in_every_form_at_every_entry(
    form: str, entry: str
) -> None:
    with pytest.raises(ValueError, match=REFUSED):
        ENTRIES[entry](FORMS[form])


def centred(scores: Tensor) -> Tensor:
    return scores - scores.mean(dim=1, keepdim=True)


@pytest.mark.parametrize("entry", ENTRIES | SUMS_ALONE)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_scores_that_sum_to_one_are_no_logits(entry: str, dtype: torch.dtype) -> None:
    of_regression = (centred(logits()) + 1 / CLASSES).to(dtype)
    with pytest.raises(ValueError, match=r"100 % of the rows sum to 1\."):
        (ENTRIES | SUMS_ALONE)[entry](of_regression)
    (ENTRIES | SUMS_ALONE)[entry](centred(logits()).to(dtype))


def test_one_minus_the_logit_is_no_logit_of_class_0() -> None:
    raw = logits(600, 1)
    labels = (raw[:, 0] / 2 + torch.randn(600)) > 0
    pair = torch.cat([1 - raw, raw], dim=1)
    with pytest.raises(ValueError, match=r"give raw or \[-raw, raw\] / 2 instead"):
        scaling.fit_temperature(pair, labels.long())
    halves = torch.cat([-raw, raw], dim=1) / 2
    expected = calibrate(raw, labels.long(), bootstrap=0, fit_on="all").temperature
    found = scaling.fit_temperature(halves, labels.long()).temperature
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("scores", [-PROBS, 2 * PROBS - 1, PROBS - 1])
def test_moved_probabilities_are_refused_by_their_sum(scores: Tensor) -> None:
    with pytest.raises(ValueError, match="of the rows sum to"):
        scaling.fit_temperature(scores, LABELS)


@pytest.mark.parametrize(
    "scores",
    [
        centred(logits()).half(),
        centred(logits()).bfloat16(),
        centred(logits().float() + 1000),
        (10 * centred(logits())).round() + 3,
        logits().round(),
        (logits().where(logits() >= 0, -1e9)).float(),
        logits().log_softmax(dim=1),
        1e6 * logits(classes=1000),
        (25 * logits(600, 1000) + 300).round(),
        (20 * centred(logits(600, 20)) + 128).clamp(0, 255).round(),
        torch.eye(4).repeat(30, 1) * 0.5,
    ],
)
def test_logits_whose_sums_hardly_differ_pass(scores: Tensor) -> None:
    check_not_probs(scores)


def test_a_last_layer_that_starts_at_zero_is_cooled() -> None:
    # Gradients of the cross-entropy sum to 0 over the classes, so training does not
    # change the sum of the logits, which is that of the initial biases.
    images = torch.randn(400, 6, generator=torch.Generator().manual_seed(0))
    labels = (3 * images[:, :3]).softmax(1).multinomial(1).squeeze(1)
    network = nn.Linear(6, 3)
    nn.init.zeros_(network.weight)
    network.bias.data = torch.tensor([0.5, 0.3, 0.2]).log()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.5)
    held = Cooling(network)
    for _ in range(5):
        optimizer.zero_grad()
        losses.FocalLoss(0.0)(network(images), labels).backward()
        optimizer.step()
    logits = network(images).detach()
    assert logits.sum(1).std() < 1e-5 < 1 < logits.sum(1).mean().abs()
    held.cool(logits, labels)


@pytest.mark.parametrize("entry", SUMS_ALONE)
def test_cosines_are_refused_only_where_they_sum_to_one(
    entry: str,
) -> None:
    for form in ("probabilities", "two decimals", "percentages"):
        with pytest.raises(ValueError, match=REFUSED):
            SUMS_ALONE[entry](FORMS[form])
    features = logits().abs()
    directions = nn.functional.normalize(features)
    cosines = directions @ directions[:CLASSES].T
    with pytest.raises(ValueError, match="as a sigmoid's do"):
        check_not_probs(cosines)
    SUMS_ALONE[entry](cosines.requires_grad_())
    sigmoids = logits().requires_grad_().sigmoid()
    with pytest.raises(ValueError, match=r"output of a sigmoid\. Take the sigmoid off"):
        SUMS_ALONE[entry](sigmoids)


def test_logits_that_cooling_moved_into_the_unit_interval_pass() -> None:
    positive = logits().abs()
    network = nn.Sequential(nn.Linear(2, CLASSES))
    cooling = Cooling(network, mode="distributed")
    cooling.cool(positive, LABELS)
    small = positive / positive.max()
    with pytest.raises(ValueError, match="as a sigmoid's do"):
        Cooling(nn.Linear(2, CLASSES)).cool(small, LABELS)
    cooling.cool(small, LABELS)


def column_of(scores: Tensor, fold: Callable[[Tensor], Tensor], rows: int) -> None:
    """Pass the scores to a wrapped binary classifier, in batches of `rows`.

    `fold` reshapes each batch before it is passed.
    """
    column = logits(classes=1)
    labels = torch.bernoulli(
        (column[:, 0] / 2).sigmoid(), generator=torch.Generator().manual_seed(2)
    ).long()
    wrapped = TemperatureScaler().fit(column, labels).wrap(nn.Identity())
    for batch in scores.split(rows):
        wrapped(fold(batch))


@pytest.mark.parametrize("rows", [ROWS, 8, 1])
@pytest.mark.parametrize(
    "fold",
    [lambda batch: batch, lambda batch: batch[:, 0], lambda batch: batch.squeeze()],
)
def test_a_wrapped_network_of_one_sigmoid_is_refused_in_every_shape(
    fold: Callable[[Tensor], Tensor], rows: int
) -> None:
    column = logits(classes=1)
    column_of(column, fold, rows)
    with pytest.raises(ValueError, match=r"as a sigmoid's do.*Take the softmax off"):
        column_of(column.sigmoid(), fold, rows)


def test_a_wrapped_network_that_gets_one_sample_at_a_time_is_judged_by_all() -> None:
    with pytest.raises(ValueError, match="network's logits are probabilities"):
        serve_each(PROBS)
    serve_each(logits())


@pytest.mark.parametrize("rows", [20, 59])
@pytest.mark.parametrize("classes", [2, CLASSES])
def test_sigmoids_of_few_rows_are_refused(rows: int, classes: int) -> None:
    sigmoids = logits(rows, classes).sigmoid()
    labels = torch.arange(rows) % 2
    for call in (
        lambda: calibrate(sigmoids, labels, bootstrap=0, bins=5),
        lambda: TemperatureScaler().fit(sigmoids.numpy(), labels.numpy()),
        lambda: metrics.negative_log_likelihood(sigmoids, labels),
    ):
        with pytest.raises(ValueError, match=r"as a sigmoid's do.* subtract 1"):
            call()


@pytest.mark.parametrize("entry", ["calibrate", "cool", "fit", "FocalLoss", "mmce"])
def test_input_that_is_given_once_is_checked_once(
    entry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A check reads every logit only once, to find the smallest logit of each row.
    checked = []
    share = Tensor.amin

    def counted(table: Tensor, *args: Any, **options: Any) -> Tensor:
        checked.append(len(table))
        return share(table, *args, **options)

    monkeypatch.setattr(Tensor, "amin", counted)
    (ENTRIES | SUMS_ALONE)[entry](logits())
    assert checked == [ROWS]


def test_a_training_is_checked_in_its_first_batches_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checked = []
    for module in ("losses.base", "tools.scaler"):
        monkeypatch.setattr(
            f"softmax_temperature.{module}.check_not_probs",
            lambda rows, **_: checked.append(len(rows)),
        )
    batch = logits(8)
    wrapped = fitted().wrap(nn.Identity())
    for _ in range(10):
        wrapped(batch)
    assert checked == [8, 16, 24]
    for loss in (losses.FocalLoss(), losses.MMCELoss(), losses.CrossEntropyLoss()):
        checked.clear()
        for _ in range(10):
            loss(batch, LABELS[:8])
        assert checked == [8, 16, 24]


@pytest.mark.parametrize("form", ["probabilities", "sigmoids"])
@pytest.mark.parametrize("size", [1, 8])
def test_small_batches_are_judged_together(size: int, form: str) -> None:
    class Network(nn.Module):
        def forward(self, scores: Tensor) -> Tensor:
            return scores

    wrapped = fitted().wrap(Network())
    loss = losses.FocalLoss()

    def feed(call: Any, scores: Tensor) -> None:
        for rows, labels in zip(
            scores[:48].split(size), LABELS[:48].split(size), strict=True
        ):
            call(rows, labels)

    def serve(rows: Tensor, _: Tensor) -> None:
        wrapped(rows)

    for call in (serve, loss):
        with pytest.raises(ValueError, match=REFUSED):
            feed(call, FORMS[form])
    # Logits in the same batches pass, and no rows are kept for a later check.
    loss = losses.FocalLoss()
    wrapped = fitted().wrap(Network())
    feed(serve, logits())
    feed(loss, logits())
    assert loss._first_rows is wrapped._first_rows is None
    # Tensors inside a function transform such as `grad` do not outlive the transform,
    # so the loss keeps none of their rows.
    inner = losses.FocalLoss()
    gradient = torch.func.grad(lambda rows: inner(rows, LABELS[:8]))
    for _ in range(4):
        assert gradient(logits()[:8]).shape == (8, CLASSES)
    # A batch with a different number of classes, as from a network with several heads,
    # is judged by itself.
    heads = losses.FocalLoss()
    for classes in (4, 3, 4):
        heads(logits(2, classes), torch.zeros(2, dtype=torch.int64))


@pytest.mark.parametrize("entry", ENTRIES)
def test_logits_and_log_probabilities_pass_every_entry(entry: str) -> None:
    for scores in (logits(), 1e-4 * logits()):
        ENTRIES[entry](scores)
    # Log-probabilities are no longer normalised once Cooling has divided them by the
    # temperature.
    if entry != "cool":
        ENTRIES[entry](PROBS.log())


@pytest.mark.parametrize("shape", [(ROWS,), (ROWS, 1)])
def test_a_column_of_probabilities_is_refused(shape: tuple[int, ...]) -> None:
    column = logits(classes=1).sigmoid().reshape(shape)
    labels = LABELS % 2
    with pytest.raises(ValueError, match=r"kind='probs'\. .* subtract 1"):
        calibrate(column, labels, bootstrap=0)
    shifted = calibrate(column - 1, labels, bootstrap=0)  # As the message suggests.
    assert shifted.data["rows"]["reported"] > 0


@given(
    rows=st.integers(1, 60),
    classes=st.integers(1, 12),
    exponent=st.floats(-6, 6),
    seed=st.integers(0, 2**31),
)
def test_no_random_logits_are_taken_for_probabilities(
    rows: int, classes: int, exponent: float, seed: int
) -> None:
    scores = 10**exponent * logits(rows, classes, seed)
    check_not_probs(scores)
    check_not_probs(scores.log_softmax(dim=1))
    check_not_probs(-scores.abs())


# With only two or three classes, about one network in a hundred has all its outputs in
# [0, 1] by chance and is taken for a sigmoid, so the test starts at four classes.
@given(st.integers(0, 2**31), st.integers(4, 10))
def test_logits_of_an_untrained_network_are_not_taken_for_probabilities(
    seed: int, classes: int
) -> None:
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Linear(20, 50), nn.ReLU(), nn.Linear(50, classes))
    check_not_probs(network(torch.rand(64, 20)))


def test_the_share_of_rows_decides() -> None:
    mixed = PROBS.clone()
    mixed[: ROWS // 2 + 1] = logits()[: ROWS // 2 + 1]
    check_not_probs(mixed)
    mixed[: ROWS // 2 - 1] = PROBS[: ROWS // 2 - 1]
    with pytest.raises(ValueError, match="98 % of the rows"):
        check_not_probs(mixed)
    check_not_probs(PROBS[:1])  # The logits of one row may sum to 1 by chance.
    # One-hot rows may be the logits of a toy example, so they pass.
    check_not_probs(torch.eye(3)[LABELS.clamp(max=2)])


class HiddenSoftmax(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, CLASSES)

    def forward(self, inputs: Tensor) -> Tensor:
        return torch.softmax(10 * self.layer(inputs), dim=1)


@pytest.mark.parametrize("last", [nn.Softmax(1), nn.Softmax2d(), nn.Sigmoid()])
def test_a_network_that_ends_in_a_softmax_is_refused(last: nn.Module) -> None:
    network = nn.Sequential(nn.Linear(2, CLASSES), nn.Sequential(nn.ReLU(), last))
    for take in (Cooling, fitted().wrap):
        with pytest.raises(ValueError, match=r"ends in \w+\. Take the s\w+ off"):
            take(network)
    assert "cooling_temperature" not in network.state_dict()


def test_a_softmax_inside_a_network_is_noticed_by_what_it_returns() -> None:
    inputs = torch.randn(ROWS, 2, generator=torch.Generator().manual_seed(0))
    wrapped = fitted().wrap(HiddenSoftmax())
    with pytest.raises(ValueError, match="network's logits are probabilities"):
        wrapped(inputs)
    network = HiddenSoftmax()
    cooling = Cooling(network)
    set_last_layer_temperature(network, 3.0)  # Now the outputs of each row sum to 1/3.
    with pytest.raises(ValueError, match="Take the softmax off the end"):
        cooling.cool(network(inputs).detach(), LABELS)


def test_a_wrapped_network_returns_one_tensor() -> None:
    class Output:
        logits = torch.zeros(2, CLASSES)

    class HuggingFace(nn.Module):
        def forward(self, _: Tensor) -> Output:
            return Output()

    with pytest.raises(TypeError, match=r"one tensor of logits .* got Output"):
        fitted().wrap(HuggingFace())(torch.zeros(2, 2))
    with pytest.raises(TypeError, match="network must be a torch module, got function"):
        fitted().wrap(lambda inputs: inputs)  # type: ignore[arg-type]


def test_a_table_of_one_dimension_is_named_by_the_scaler() -> None:
    for call in (lambda x: TemperatureScaler().fit(x, LABELS), fitted().transform):
        with pytest.raises(ValueError, match=r"X must have shape \(n, classes\), got"):
            call(logits()[:, 0])


@pytest.mark.parametrize("entry", [*ENTRIES, *SUMS_ALONE])
@pytest.mark.parametrize("rest", [5e-324, -5e-324, -1e-17])
def test_saturated_probabilities_are_refused_with_any_rest(
    rest: float, entry: str
) -> None:
    # The softmax of large logits may contain subnormal numbers, and a probability
    # computed as one minus a sum may be below zero.
    saturated = torch.full((ROWS, CLASSES), rest, dtype=torch.float64)
    saturated.scatter_(1, LABELS[:, None], 1.0)
    with pytest.raises(ValueError, match="are probabilities: "):
        (ENTRIES | SUMS_ALONE)[entry](saturated)


@pytest.mark.parametrize(
    "scores",
    [
        logits() - logits().amin(dim=1, keepdim=True),
        logits() + 1e6,
        5 * torch.eye(CLASSES)[LABELS],
        torch.tensor([[1.0, 3.0], [3.0, 1.0]]).repeat(ROWS, 1),
        torch.ones(ROWS, CLASSES),
    ],
    ids=["from the least", "far above zero", "one number", "two forms", "constant"],
)
def test_logits_above_zero_are_not_votes(scores: Tensor) -> None:
    check_not_probs(scores)


LOSSES_OF_NETWORKS = (
    losses.FocalLoss,
    losses.SampleDependentFocalLoss,
    losses.BrierLoss,
    losses.MMCELoss,
)


def use_output(outputs: Tensor) -> None:
    """Pass a network's outputs to the library, with and without an autograd graph."""
    labels = torch.arange(len(outputs)) % outputs.shape[1]
    scaler = TemperatureScaler().fit(logits(classes=outputs.shape[1]), SPREAD_LABELS)
    for scores in (outputs, outputs.detach()):
        for kind in LOSSES_OF_NETWORKS:
            kind()(scores, labels)
        scaler.wrap(nn.Identity())(scores)
        Cooling(nn.Linear(2, outputs.shape[1])).cool(scores, labels)


SPREAD_LABELS = torch.arange(ROWS) % 2


# The logits have nothing to do with the labels, so the library rightly warns.
unrelated = pytest.mark.filterwarnings(
    "ignore:(The logits are no better than chance|.*of classes that no label has)"
    ":sklearn.exceptions.ConvergenceWarning"
)


@unrelated
@pytest.mark.parametrize("classes", [2, 5, 10, 100])
def test_squeezenet_trains_from_every_start(classes: int) -> None:
    # SqueezeNet ends in a ReLU and an average over pixels. With some of these seeds,
    # all outputs lie in [0, 1], and with a few of them, no output is exactly 0.
    for seed in range(8, 12):
        torch.manual_seed(seed)
        network = squeezenet1_1(num_classes=classes)
        use_output(network(torch.randn(24, 3, 64, 64)))


@unrelated
@pytest.mark.parametrize("last", [nn.ReLU, nn.ReLU6, nn.Softplus])
@pytest.mark.parametrize("classes", [2, 10])
def test_networks_of_positive_outputs_train_from_every_start(
    last: Callable[[], nn.Module], classes: int
) -> None:
    for seed in range(6):
        torch.manual_seed(seed)
        network = nn.Sequential(
            nn.Linear(20, 50), nn.ReLU(), nn.Linear(50, classes), last()
        )
        use_output(network(torch.randn(24, 20)))


@pytest.mark.parametrize("kind", [*LOSSES_OF_NETWORKS, losses.CrossEntropyLoss])
@pytest.mark.parametrize("classes", [2, 3, 10, 100])
def test_losses_refuse_a_sigmoid_from_its_first_batch_on(
    kind: Callable[[], nn.Module], classes: int
) -> None:
    torch.manual_seed(0)
    images = torch.randn(24, 20)
    labels = torch.arange(24) % classes
    network = nn.Linear(20, classes)
    optimizer = torch.optim.SGD(network.parameters(), lr=5.0)
    for _ in range(3):
        outputs = network(images).sigmoid()
        with pytest.raises(ValueError, match="are the output of a sigmoid"):
            kind()(outputs, labels)
        for _ in range(20):
            optimizer.zero_grad()
            scores = network(images).sigmoid()
            nn.functional.cross_entropy(scores, labels).backward()
            optimizer.step()


VIEWS: dict[str, Callable[[Tensor], Tensor]] = {
    "none": lambda scores: scores,
    "pixels": lambda scores: scores.view(3, 2, 4).movedim(1, -1).flatten(0, -2),
    "rows": lambda scores: scores[torch.arange(6) > 2],
    "another type": lambda scores: scores.bfloat16().float(),
    "bounds": lambda scores: scores.clamp(1e-7, 1 - 1e-7).clamp_min(1e-6),
    "columns": lambda scores: torch.stack(scores.unbind(1), dim=1),
    "parts": lambda scores: torch.cat(scores.split([1, 3], dim=1), dim=1),
    "one column": lambda scores: scores[:, 0].squeeze()[:, None],
}


@pytest.mark.parametrize("view", VIEWS)
def test_the_graph_shows_a_sigmoid_through_views(view: str) -> None:
    scores = 2 * torch.randn(6, 4, requires_grad=True)
    assert is_of_sigmoid(VIEWS[view](scores.sigmoid())) is True
    assert is_of_sigmoid(VIEWS[view](nn.functional.hardsigmoid(scores))) is True
    assert is_of_sigmoid(VIEWS[view](scores.relu())) is False
    assert is_of_sigmoid(VIEWS[view](10 * scores.sigmoid())) is False


def test_no_sigmoid_is_seen_without_a_graph_or_where_the_graph_hides_it() -> None:
    scores = torch.randn(6, 4, requires_grad=True)
    assert is_of_sigmoid(scores.detach().sigmoid()) is None
    assert is_of_sigmoid(scores) is None
    assert is_of_sigmoid(scores.view(3, 8)) is None
    hidden = checkpoint(torch.sigmoid, scores, use_reentrant=True)
    assert is_of_sigmoid(hidden) is None
    compiled = torch.compile(torch.sigmoid, backend="aot_eager")
    assert is_of_sigmoid(compiled(scores)) is None
    # If the graph does not show the last function, outputs are judged by their values.
    # These values spread from 0 to 1, so they are refused as the outputs of a sigmoid.
    outputs = compiled(logits().requires_grad_())
    with pytest.raises(ValueError, match="as a sigmoid's do"):
        losses.FocalLoss()(outputs, LABELS)


class HiddenSigmoid(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(20, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.layer(images).sigmoid()
        return scores


class HiddenLogSoftmax(HiddenSigmoid):
    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.layer(images).log_softmax(dim=1)
        return scores


def test_cooling_notices_a_sigmoid_when_training_has_shown_it() -> None:
    torch.manual_seed(0)
    network = HiddenSigmoid()
    images = torch.randn(ROWS, 20) / 10
    cooling = Cooling(network)
    with torch.no_grad():
        outputs = network(images)
    assert 0.3 < outputs.min() < outputs.max() < 0.7
    cooling.cool(outputs, LABELS)
    nn.functional.cross_entropy(network(images), LABELS).backward()
    before = cooling.temperature
    with (
        torch.no_grad(),
        pytest.raises(ValueError, match=r"in a sigmoid\. Take the sigmoid off the end"),
    ):
        cooling.cool(network(images), LABELS)
    assert cooling.temperature == before


def test_cooling_looks_for_sigmoids_until_an_output_lies_outside() -> None:
    narrow = (logits() / 20).sigmoid()
    wide = logits().sigmoid()
    cooling = Cooling(nn.Linear(2, CLASSES))
    cooling.cool(narrow, LABELS)
    with pytest.raises(ValueError, match="as a sigmoid's do"):
        cooling.cool(wide / cooling.temperature, LABELS)
    cooling.cool(logits() / cooling.temperature, LABELS)
    cooling.cool(wide / cooling.temperature, LABELS)


def test_a_positive_network_is_not_stopped_while_it_trains_with_cooling() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(20, CLASSES), nn.Softplus())
    images = torch.randn(ROWS, 20)
    cooling = Cooling(network)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    for _ in range(5):
        with torch.no_grad():
            outputs = network(images)
        cooling.cool(outputs, LABELS)
        # These numbers lie in [0, 1] and come near both ends, so by their values alone
        # they would be taken for saturated sigmoids.
        scaled = outputs - outputs.min() + 1e-3
        with torch.no_grad():
            cooling.cool(scaled / (1.001 * scaled.max()), LABELS)
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(images), LABELS).backward()
        optimizer.step()


def test_cooling_refuses_log_probabilities_and_a_scaler_takes_them() -> None:
    torch.manual_seed(0)
    network = HiddenLogSoftmax()
    images = torch.randn(ROWS, 20)
    cooling = Cooling(network)
    message = r"log-probabilities: .* Return the logits .* cross_entropy instead of nll"
    for temperature in (1.0, 3.0):
        set_last_layer_temperature(network, temperature)
        for dtype in (torch.float64, torch.float32):
            scores = network(images).detach().to(dtype)
            with pytest.raises(ValueError, match=message):
                cooling.cool(scores, LABELS)
    maps = PROBS.log().reshape(4, 30, CLASSES).movedim(-1, 1)
    with pytest.raises(ValueError, match=message):
        Cooling(nn.Linear(2, CLASSES)).cool(maps, LABELS.reshape(4, 30))
    half = PROBS.log().bfloat16()
    with pytest.raises(ValueError, match=message):
        Cooling(nn.Linear(2, CLASSES)).cool(half, LABELS)
    ending = nn.Sequential(nn.Linear(20, CLASSES), nn.LogSoftmax(dim=1))
    with pytest.raises(ValueError, match=r"in LogSoftmax\. Return the logits from"):
        Cooling(ending)
    wrapped = fitted().wrap(ending)
    direct = (ending[0](images) / wrapped.temperature).log_softmax(dim=1)
    # The wrapped network divides log-probabilities, so its outputs must be normalised
    # again, as the documentation of `wrap` says.
    assert (wrapped(images).exp().sum(dim=1) - 1).abs().max() > 0.1
    torch.testing.assert_close(wrapped(images).log_softmax(dim=1), direct)


def test_logits_that_start_as_the_frequencies_of_the_classes_are_cooled() -> None:
    frequencies = torch.tensor([0.4, 0.3, 0.2, 0.1]).log()
    cooling = Cooling(nn.Linear(2, CLASSES))
    cooling.cool(frequencies.repeat(ROWS, 1), LABELS)
    # A few logits that are not normalised show that the network returns logits.
    mixed = PROBS.log()
    mixed[0] += 0.1
    cooling.cool(mixed, LABELS)


@pytest.mark.parametrize(
    ("form", "remedy"),
    [
        ("one minus probabilities", "Subtract them from 1."),
        ("odds", r"x / \(1 \+ x\)."),
        ("softmax over the rows", r"softmax\(logits, dim=1\), over the classes"),
    ],
)
@pytest.mark.parametrize("kind", ["logits", "probs"])
def test_functions_of_probabilities_are_refused_with_the_right_remedy(
    form: str, remedy: str, kind: str
) -> None:
    with pytest.raises(ValueError, match=remedy):
        calibrate(FORMS[form], LABELS, kind=kind, bootstrap=0)


@pytest.mark.parametrize("base", [2, 10])
def test_logarithms_of_any_base_only_scale_the_temperature(base: int) -> None:
    natural = scaling.fit_temperature(PROBS.log(), LABELS).temperature
    scaled = scaling.fit_temperature(PROBS.log() / math.log(base), LABELS).temperature
    assert scaled * math.log(base) == pytest.approx(natural)

"""Check that the labels number the classes in the same order as the score columns.

In a file of scores, the columns may follow the class names sorted as texts (0, 1, 10,
11, 2, ...), which is how torchvision's ImageFolder numbers the classes, while the
labels follow the numerical order. The reverse also occurs. If the predictions agree
with the labels much more often in a different order of the columns, that order is
judged to be the right one.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from softmax_temperature.metrics.checks import (
    CLEAR_DIFFERENCE,
    ENOUGH_ROWS,
    NOT_FEATURES,
    SHIFTED_ACCURACY,
    SHIFTED_CLASSES,
    SHIFTED_RATIO,
    SURE,
    ArgumentError,
    check_no_background,
    check_not_shifted,
)
from softmax_temperature.metrics.class_axis import check_not_transposed
from softmax_temperature.metrics.pair_columns import check_not_pairs
from softmax_temperature.metrics.sorted_rows import are_sorted, check_not_sorted

# Another order must win by this many standard deviations both in the classes that it
# moves up and in those that it moves down, because a model that tends to predict too
# high a class, among ordered classes, is wrong in one direction only.
CLEAR_DIRECTION = 2
# A class is suspicious if at most this share of its rows is predicted correctly.
LOW_RECALL = 0.25
# An order that was found in the predictions must agree with them at least this many
# times as often as the given order does. Unless it agrees with at least half of the
# predictions from which it was found, it must also agree at least this many times as
# often as chance.
FOUND_RATIO = 4
# An accuracy counts as no better than chance if it is at most `NEAR_CHANCE` standard
# deviations above chance. An accuracy on fewer than `FEWEST_ROWS` rows is not judged.
NEAR_CHANCE = 1
FEWEST_ROWS = 20
# Two sequences agree as in random order if the number of agreeing rows is within this
# many standard deviations of its mean, and could be at least `ABLE` of them above it.
LIKE_CHANCE = 2
ABLE = 10
# The largest number of steps of a logistic regression; most take fewer than ten.
MOST_STEPS = 30
# The largest number of classes for which a message shows the whole order.
MOST_SHOWN = 20
CHECK_ORDER = "check that labels and columns are in the same order"
# A message points out if more than this share of the predictions are classes that no
# label has. Only classes that are predicted for at least `OFTEN` rows are counted,
# because in a table of few rows and many classes, most classes have no label.
MOST_WITHOUT_LABELS = 0.2
OFTEN = 10


class Order(NamedTuple):
    """Another order of the columns.

    Attributes:
        columns: The column of each label, or -1 if it is not known; an int64 tensor of
            shape (classes,).
        condition: The order in words, for a message.
        remedy: How to reorder the columns.
    """

    columns: Tensor
    condition: str
    remedy: str


class Votes(NamedTuple):
    """For each label, the number of correctly predicted rows in two column orders.

    Attributes:
        rows: Number of rows of each label, a float64 tensor of shape (classes,).
        given: Number of these rows that are predicted correctly in the given order.
        moved: Number of these rows that are predicted correctly in the other order.
    """

    rows: Tensor
    given: Tensor
    moved: Tensor


def check_class_order(
    labels: Tensor, scores: Tensor, name: str = "labels", *, any_order: bool = False
) -> None:
    """Refuse labels that evidently do not number the classes in the columns' order.

    Labels that count from 1 are refused, and so are scores with a background column
    before those of the classes, and orders that come from sorting class numbers as
    texts. The evidence is that the predictions agree with the labels much more often in
    the other order. Two classes are not judged, because a bad model may mistake each
    for the other. Also refused are rows whose scores were sorted without renumbering
    the labels (`check_not_sorted`), scores with a row for each class
    (`check_not_transposed`), and scores with a column for each pair of classes
    (`check_not_pairs`).

    Args:
        labels: Shape (n,), in [0, classes).
        scores: Logits or probabilities, shape (n, classes).
        name: Name of the labels in messages.
        any_order: Whether to refuse any other order as well. This should be True only
            where such an order can only be a mistake, as in a fit. It should be False
            for metrics: the predictions of a model under attack may agree with a
            different order, and the low accuracy is then a result to report.
    """
    check_not_transposed(labels, scores, name)
    check_not_sorted(labels, scores, name)
    check_not_pairs(labels, scores, name)
    check_not_shifted(labels, scores, name)
    check_no_background(labels, scores, name)
    classes = scores.shape[1]
    if classes == 2:
        return
    numbers = labels.long()
    predicted = scores.detach().argmax(dim=1)
    right = predicted == numbers
    # Almost all scores have a higher accuracy than this, which rules out that another
    # order is `SHIFTED_RATIO` times as good.
    if right.double().mean().item() <= 1 / SHIFTED_RATIO:
        chance = _chance(numbers, predicted, classes)
        for order in _text_orders(classes, numbers.device):
            votes = _votes(numbers, predicted, order.columns)
            if (
                _is_clear(votes, order.columns)
                and _beats_chance(votes, chance, SHIFTED_RATIO)
                and _is_spread(votes, numbers, predicted)
            ):
                raise _wrong_order(votes, order, name)
    if any_order and (found := _found_order(numbers, predicted, right, classes)):
        votes = _votes(numbers, predicted, found.columns)
        if votes.moved.sum() < SURE * len(numbers):
            found = found._replace(remedy=f"{found.remedy} {NOT_FEATURES}")
        raise _wrong_order(votes, found, name)


def no_better_than_chance(labels: Tensor, scores: Tensor) -> bool:
    """Whether the accuracy is no better than that of predictions made at random.

    The random predictions are the model's own predictions in random order. The answer
    is False if the accuracy is well above one half, because the model may rightly
    predict the most frequent class. It is also False if there are fewer than
    `FEWEST_ROWS` rows, or if all rows of three or more classes are sorted, so that
    every prediction is the same.

    Args:
        labels: Shape (n,), in [0, classes).
        scores: Logits or probabilities, shape (n, classes).
    """
    if len(labels) < FEWEST_ROWS or (scores.shape[1] > 2 and are_sorted(scores)):
        return False
    numbers = labels.long()
    predicted = scores.detach().argmax(dim=1)
    accuracy = (predicted == numbers).double().mean().item()
    chance = _chance(numbers, predicted, scores.shape[1])

    def near(share: float) -> float:
        return share + NEAR_CHANCE * math.sqrt(share * (1 - share) / len(numbers))

    return accuracy <= min(near(chance), near(0.5))


def rows_in_another_order(labels: Tensor, scores: Tensor, others: Tensor) -> str:
    """Return a question about the order of two arms' rows; "" if it looks the same.

    The rows of one arm probably have another order if its predictions agree with the
    labels and with those of the other arm no more and no less than in random order,
    while the other arm agrees with the labels clearly. An arm that predicts almost only
    one class is not judged.

    Args:
        labels: Shape (n,), in [0, classes).
        scores: Scores of arm a, shape (n, classes).
        others: Scores of arm b, shape (n, classes).
    """
    numbers = labels.long()
    classes = scores.shape[1]
    first = scores.detach().argmax(dim=1)
    second = others.detach().argmax(dim=1)
    between = _agreement(first, second, classes)
    of_first = _agreement(numbers, first, classes)
    of_second = _agreement(numbers, second, classes)
    if not between.as_in_random_order():
        return ""
    if of_first.is_clear() and of_second.as_in_random_order():
        name, other = "logits_b", "logits_a"
    elif of_second.is_clear() and of_first.as_in_random_order():
        name, other = "logits_a", "logits_b"
    else:
        return ""
    return (
        f"{name} agree with the labels and with {other} no more than in random order. "
        "Are the samples of both arms in the same order, as a loader with "
        "shuffle=False gives them?"
    )


class Agreement(NamedTuple):
    """In how many rows two sequences of classes agree, in standard deviations.

    Attributes:
        beyond_chance: The number of such rows beyond that in random order.
        highest: The same, if the better of all orders were given.
    """

    beyond_chance: float
    highest: float

    def as_in_random_order(self) -> bool:
        """Whether the sequences agree as in random order, but could agree more."""
        return abs(self.beyond_chance) <= LIKE_CHANCE and self.highest >= ABLE

    def is_clear(self) -> bool:
        """Whether the sequences agree clearly more than in random order."""
        return self.beyond_chance >= CLEAR_DIFFERENCE


def _agreement(labels: Tensor, predicted: Tensor, classes: int) -> Agreement:
    rows = len(labels)
    of_labels = torch.bincount(labels, minlength=classes).double()
    of_predicted = torch.bincount(predicted, minlength=classes).double()
    products = of_labels * of_predicted
    expected = products.sum().item() / rows
    # The variance of the number of agreeing rows over all orders of one sequence.
    alone = products * (rows - of_labels) * (rows - of_predicted)
    together = products.sum().square() - products.square().sum()
    variance = (alone.sum() + together).item() / (rows * rows * max(1, rows - 1))
    if variance == 0:
        return Agreement(0.0, 0.0)
    deviation = math.sqrt(variance)
    hits = (labels == predicted).sum().item()
    highest = torch.minimum(of_labels, of_predicted).sum().item()
    return Agreement((hits - expected) / deviation, (highest - expected) / deviation)


def threshold_hint(labels: Tensor, scores: Tensor) -> str:
    """Return a sentence about two-class scores whose threshold is evidently not 0.

    Every row is then predicted as the same class although the scores tell the classes
    apart, as with a credit score from 300 to 850. The evidence is that two likelihood
    ratios are large: that of a shift of the scores, and that of the scores themselves.
    The shifted scores must also predict both classes. The text is empty otherwise, as
    for a calibrated model of a rare class, which no shift improves.

    Args:
        labels: Shape (n,), 0 or 1.
        scores: Logits or log-probabilities, shape (n, 2).
    """
    if scores.shape[1] != 2 or len(labels) < FEWEST_ROWS:
        return ""
    margins = (scores[:, 1] - scores[:, 0]).detach().cpu()
    low, high = (bound.item() for bound in torch.aminmax(margins))
    # A tie is predicted as class 0.
    if not (math.isfinite(low) and math.isfinite(high)) or low < 0 < high:
        return ""
    predicted = int(low >= 0)
    right = labels.cpu().double()
    others = (right != predicted).double().mean().item()
    spread = margins.double().std().item()
    if low == high or spread == 0 or others in (0, 1):
        return ""
    standard = margins.double() / spread
    ones = torch.ones_like(standard)
    centred = standard - standard.mean()
    of_both, (base, slope) = _logistic(torch.stack([ones, centred], 1), right)
    of_scale, _ = _logistic(standard[:, None], right)
    of_shares = -sum(
        share * math.log(share) * len(right) for share in (others, 1 - others)
    )
    if slope == 0 or 2 * (min(of_scale, of_shares) - of_both) < CLEAR_DIFFERENCE**2:
        return ""
    threshold = (standard.mean().item() - base / slope) * spread
    if not low < threshold < high:
        return ""
    negate = ""
    if slope < 0:
        negate = (
            " Larger scores of class 1 go with labels of class 0, so negate it, too."
        )
    return (
        f"Every row is predicted class {predicted}, but {100 * others:.0f} % of the "
        f"labels are {1 - predicted}, and the classes part near {threshold:.3g}, not "
        "near 0: if the score of class 1 (minus that of class 0) is not the log-odds, "
        f"subtract its threshold.{negate}"
    )


def _logistic(columns: Tensor, labels: Tensor) -> tuple[float, list[float]]:
    """Fit a logistic regression; return its negative log-likelihood and its weights.

    The fit uses Newton's method, and halves a step as long as it increases the loss. If
    the columns separate the labels, the weights are those of the last step.

    Args:
        columns: The inputs of the regression, a float64 tensor of shape (n, weights).
        labels: The labels 0 and 1, a float64 tensor of shape (n,).
    """

    def loss(weights: Tensor) -> float:
        logits = columns @ weights
        return (torch.nn.functional.softplus(logits) - labels * logits).sum().item()

    weights = columns.new_zeros(columns.shape[1])
    least = loss(weights)
    ridge = 1e-9 * len(labels) * torch.eye(len(weights), dtype=columns.dtype)
    for _ in range(MOST_STEPS):
        probs = torch.sigmoid(columns @ weights)
        curvature = (columns.mT * (probs * (1 - probs))) @ columns + ridge
        step = torch.linalg.solve(curvature, columns.mT @ (labels - probs))
        while (lower := loss(weights + step)) > least and step.abs().max() > 1e-9:
            step = step / 2
        if least - lower < 1e-6:
            break
        weights, least = weights + step, lower
    return least, weights.tolist()


def predictions_without_labels(labels: Tensor, scores: Tensor) -> str:
    """Return a sentence about frequent predictions of classes that no label has, or "".

    Args:
        labels: Shape (n,), in [0, classes).
        scores: Logits or probabilities, shape (n, classes).
    """
    classes = scores.shape[1]
    guesses = torch.bincount(scores.detach().argmax(dim=1), minlength=classes)
    absent = torch.bincount(labels.long(), minlength=classes) == 0
    guesses = torch.where(absent & (guesses >= OFTEN), guesses, 0)
    share = guesses.sum().item() / len(labels)
    if share <= MOST_WITHOUT_LABELS:
        return ""
    return (
        f"{100 * share:.0f} % of the predictions are of classes that no label has, "
        f"such as {int(guesses.argmax())}: check that every column belongs to a class "
        "of the labels."
    )


def _text_orders(classes: int, device: torch.device) -> Iterator[Order]:
    """Yield the orders that result from sorting class numbers as texts.

    The numbers may count from 0 or from 1.
    """
    for first in (0, 1):
        numbers = range(first, first + classes)
        texts = sorted(numbers, key=str)
        if texts == list(numbers):
            continue
        shown = f"{', '.join(map(str, texts[:5]))} and so on"
        code = f"sorted(range({first}, {first + classes}), key=str)"
        of_labels = torch.tensor(texts, device=device) - first
        yield Order(
            of_labels.argsort(),
            f"the columns are in the order of sorted texts, {shown}",
            f"Reorder the columns: logits[:, order], with order = np.argsort({code}).",
        )
        yield Order(
            of_labels,
            f"they number the classes in the order of sorted texts, {shown}, "
            "as ImageFolder does",
            "Reorder the columns: logits[:, order], with order = "
            f"np.array({code}){f' - {first}' if first else ''}.",
        )


def _votes(labels: Tensor, predicted: Tensor, columns: Tensor) -> Votes:
    classes = len(columns)

    def counts(chosen: Tensor) -> Tensor:
        return torch.bincount(labels[chosen], minlength=classes).double()

    return Votes(
        rows=torch.bincount(labels, minlength=classes).double(),
        given=counts(predicted == labels),
        moved=counts(predicted == columns[labels]),
    )


def _is_clear(votes: Votes, columns: Tensor) -> bool:
    """Whether the other order wins clearly, and in both directions."""
    places = torch.arange(len(columns), device=columns.device)
    up = columns > places
    down = (columns < places) & (columns >= 0)
    return (
        _difference(votes, up | down) > CLEAR_DIFFERENCE
        and _difference(votes, up) > CLEAR_DIRECTION
        and _difference(votes, down) > CLEAR_DIRECTION
    )


def _is_spread(votes: Votes, labels: Tensor, predicted: Tensor) -> bool:
    """Whether the other order maps almost every label to its most frequent prediction.

    Labels with fewer than `ENOUGH_ROWS` rows are left out. If no label has that many
    rows, the other order must be right for at least the share `LOW_RECALL` of all rows.
    """
    judged = votes.rows >= ENOUGH_ROWS
    if not bool(judged.any()):
        return bool(votes.moved.sum() >= LOW_RECALL * votes.rows.sum())
    classes = len(votes.rows)
    # Count the pairs that occur, because a matrix of all pairs may be too large.
    pairs, counts = (labels * classes + predicted).unique(return_counts=True)
    zeros = counts.new_zeros(classes)
    most = zeros.scatter_reduce(0, pairs // classes, counts, "amax")
    wins = judged & (votes.moved == most)
    return _is_almost_all(wins, judged)


def _is_almost_all(chosen: Tensor, classes: Tensor) -> bool:
    """Whether more than the share `SHIFTED_CLASSES` of `classes` is `chosen`.

    Both arguments are masks of the classes.
    """
    # Use whole numbers, because float32 would round a share of exactly four fifths up.
    return int(chosen.sum()) > SHIFTED_CLASSES * int(classes.sum())


def _difference(votes: Votes, of_labels: Tensor) -> float:
    """The number of standard deviations by which the other order wins.

    Only the rows of the labels in the mask `of_labels` count.
    """
    moved = votes.moved[of_labels].sum().item()
    given = votes.given[of_labels].sum().item()
    return (moved - given) / math.sqrt(max(moved + given, 1))


def _beats_chance(votes: Votes, chance: float, ratio: float) -> bool:
    """Whether the other order is right `ratio` times as often as the given one.

    It must also be right `ratio` times as often as `chance`, a fraction of the rows.
    """
    moved = votes.moved.sum().item()
    given = votes.given.sum().item()
    return moved >= ratio * max(given, chance * votes.rows.sum().item())


def _chance(labels: Tensor, predicted: Tensor, classes: int) -> float:
    """The expected accuracy of the same predictions in random order."""
    shares = torch.bincount(labels, minlength=classes).double() / len(labels)
    guesses = torch.bincount(predicted, minlength=classes).double() / len(predicted)
    return (shares @ guesses).item()


def _found_order(
    labels: Tensor, predicted: Tensor, right: Tensor, classes: int
) -> Order | None:
    """The order in which the predictions evidently agree with the labels, or None.

    The rows of classes that are hardly ever predicted correctly are divided at random
    into two halves. Each half suggests an order, which is judged on the other half,
    because among many classes some order always fits the rows that suggest it. Only
    columns on which both halves agree are used. No order is inferred from a model that
    predicts only a few classes, or that mistakes rare classes for frequent ones: each
    column must belong to only one label, and the column's own class must hardly ever be
    predicted correctly in the given order.
    """
    rows = torch.bincount(labels, minlength=classes)
    hits = torch.bincount(labels[right], minlength=classes)
    suspicious = (rows >= 2 * ENOUGH_ROWS) & (hits <= LOW_RECALL * rows)
    if int(suspicious.sum()) < 2:
        return None
    chance = _chance(labels, predicted, classes)
    chosen = suspicious[labels]
    columns, votes = _agreed(labels[chosen], predicted[chosen], classes)
    known = suspicious & suspicious[columns.clamp(min=0)] & (columns >= 0)
    known &= votes.moved >= FOUND_RATIO * votes.given
    columns = torch.where(known, columns, -1)
    if votes.moved.sum() >= SHIFTED_ACCURACY * votes.rows.sum():
        chance = 0.0
    if not (
        _is_almost_all(known, suspicious)
        and _is_clear(votes, columns)
        and _beats_chance(votes, chance, FOUND_RATIO)
    ):
        return None
    places = torch.arange(classes, device=labels.device)
    whole = torch.where(known, columns, places)
    remedy = "Reorder the columns: logits[:, order], where order[c] is the column of "
    if classes <= MOST_SHOWN and len(whole.unique()) == classes:
        remedy = f"Reorder the columns: logits[:, order], with order = {whole.tolist()}"
    else:
        remedy += "class c"
    return Order(whole, "the columns are reordered", f"{remedy}.")


def _agreed(labels: Tensor, predicted: Tensor, classes: int) -> tuple[Tensor, Votes]:
    """Return the columns on which two random halves agree, and the halves' votes.

    The columns have shape (classes,), and are -1 for labels on which the halves differ.
    Each half votes on the order that the other half suggests.
    """
    generator = torch.Generator().manual_seed(0)
    first = torch.rand(len(labels), generator=generator).to(labels.device) < 0.5
    columns = _favourites(labels[first], predicted[first], classes)
    others = _favourites(labels[~first], predicted[~first], classes)
    by_first = _votes(labels[~first], predicted[~first], columns)
    by_second = _votes(labels[first], predicted[first], others)
    votes = Votes(
        rows=by_first.rows + by_second.rows,
        given=by_first.given + by_second.given,
        moved=by_first.moved + by_second.moved,
    )
    return torch.where(columns == others, columns, -1), votes


def _favourites(labels: Tensor, predicted: Tensor, classes: int) -> Tensor:
    """The most frequent prediction for each label, shape (classes,).

    It is -1 for a label without rows, and for all but one of several labels with the
    same most frequent prediction.
    """
    # Count the pairs that occur, because a matrix of all pairs may be too large.
    pairs, counts = (labels * classes + predicted).unique(return_counts=True)
    by_count = counts.argsort(descending=True, stable=True).tolist()
    favourites = [-1] * classes
    taken: set[int] = set()
    decided: set[int] = set()
    listed = pairs.tolist()
    for place in by_count:
        label, column = divmod(listed[place], classes)
        if label in decided:
            continue
        decided.add(label)
        if column not in taken:
            taken.add(column)
            favourites[label] = column
    return torch.tensor(favourites, device=labels.device)


def _wrong_order(votes: Votes, order: Order, name: str) -> ArgumentError:
    rows = int(votes.rows.sum())
    return ArgumentError(
        f"{name} agree with {int(votes.given.sum())} of {rows} predictions, but with "
        f"{int(votes.moved.sum())} if {order.condition}",
        order.remedy,
    )

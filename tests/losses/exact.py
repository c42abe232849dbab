"""Losses of one row and their gradients, in 60 digits, as reference values."""

from decimal import Decimal, getcontext

getcontext().prec = 60
ZERO, ONE = Decimal(0), Decimal(1)
# Below this exponent, an exponential is negligible at 60 digits compared with the other
# terms of a row.
SMALLEST = Decimal(-200_000)
Row = list[float]
Answer = tuple[Decimal, list[Decimal]]


def probabilities(row: Row) -> list[Decimal]:
    top = Decimal(max(row))
    powers = [(Decimal(logit) - top) for logit in row]
    weights = [power.exp() if power > SMALLEST else ZERO for power in powers]
    return [weight / sum(weights) for weight in weights]


def complement(probs: list[Decimal], label: int) -> Decimal:
    return sum((p for k, p in enumerate(probs) if k != label), ZERO)


def log_true(probs: list[Decimal], label: int) -> Decimal:
    others = complement(probs, label)
    if others > Decimal("0.5"):
        return probs[label].ln()
    # If `others` is tiny, 1 - others would lose digits, so we use the first term of the
    # series; the next term is of order others ** 2.
    return (ONE - others).ln() if others > Decimal("1e-25") else -others


def focal(row: Row, label: int, gamma: float) -> Answer:
    """Focal loss -(1 - p)^gamma log p, and gradient g(p, gamma) (softmax - one-hot)."""
    probs = probabilities(row)
    others = complement(probs, label)
    logarithm = log_true(probs, label)
    power = others ** Decimal(gamma) if gamma else ONE
    factor = power
    if gamma:
        slope = Decimal(gamma) * others ** (Decimal(gamma) - 1)
        factor -= slope * probs[label] * logarithm
    residuals = [-others if k == label else p for k, p in enumerate(probs)]
    return -power * logarithm, [factor * residual for residual in residuals]


def brier(row: Row, label: int) -> Answer:
    """Brier loss sum r^2 and gradient 2 p_j sum_k p_k (r_j - r_k), where r = p - t."""
    probs = probabilities(row)
    others = complement(probs, label)
    residuals = [-others if k == label else p for k, p in enumerate(probs)]
    gradient = [
        2
        * p
        * sum(q * (mine - other) for q, other in zip(probs, residuals, strict=True))
        for p, mine in zip(probs, residuals, strict=True)
    ]
    return sum((residual**2 for residual in residuals), ZERO), gradient


def rescaled(row: Row, label: int, scale: float) -> Answer:
    """Cross-entropy CE(scale z) / scale, and its gradient."""
    value, gradient = focal([scale * logit for logit in row], label, 0.0)
    return value / Decimal(scale), gradient


def smoothed(row: Row, label: int, smoothing: float) -> Answer:
    """Cross-entropy -sum t log p for smoothed labels t, and its gradient p - t."""
    probs = probabilities(row)
    share = Decimal(smoothing) / (len(row) - 1)
    targets = [
        ONE - Decimal(smoothing) if k == label else share for k in range(len(row))
    ]
    top = Decimal(max(row))
    log_sum = sum(((Decimal(z) - top).exp() for z in row), ZERO).ln() + top
    value = sum(
        (t * (log_sum - Decimal(z)) for t, z in zip(targets, row, strict=True)), ZERO
    )
    return value, [p - t for p, t in zip(probs, targets, strict=True)]


def mean_calibration_error(row: Row, label: int) -> Decimal:
    """MMCE of one sample: |correctness - confidence|."""
    probs = probabilities(row)
    top = row.index(max(row))
    return complement(probs, top) if top == label else probs[top]

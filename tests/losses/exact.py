"""The losses of one row in 60 digits, with their gradients: what floating point has to
equal.
"""

from decimal import Decimal, getcontext

getcontext().prec = 60
ZERO, ONE = Decimal(0), Decimal(1)
# Below this exponent, exp is 0 to 60 digits relative to any other term of a row.
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
    # 60 digits are not enough for 1 - p; the next term of the series is others ** 2.
    return (ONE - others).ln() if others > Decimal("1e-25") else -others


def focal(row: Row, label: int, gamma: float) -> Answer:
    """-(1 - p)^gamma log p, and g(p, gamma) (softmax - one-hot)."""
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
    """sum (p - t)^2, and 2 p_j sum_k p_k (r_j - r_k) with r = p - t."""
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
    """CE(scale z) / scale."""
    value, gradient = focal([scale * logit for logit in row], label, 0.0)
    return value / Decimal(scale), gradient


def smoothed(row: Row, label: int, smoothing: float) -> Answer:
    """-sum t log p, and p - t."""
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
    """MMCE of one sample: its residual."""
    probs = probabilities(row)
    top = row.index(max(row))
    return complement(probs, top) if top == label else probs[top]

"""Labels for people: the words, colours and order in which factors are shown.

Nothing is selected by a label. An arm's label is made from the factors of its runs, so
that a run with gamma 5 cannot be called "FL-3".
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

NO_COOLING = "No Cooling"
MODES = {
    "none": NO_COOLING,
    "distributed": "Distributed",
    "periodic": "Periodically redistributed",
    "last_layer": "Last layer",
}
"""The modes of Cooling, in the order of the paper's tables."""

SCHEDULES = {
    "cosine": "Cosine",
    "exponential_fast": "Exp Decay Fast",
    "exponential_slow": "Exp Decay Slow",
    "linear": "Linear",
    "none": "None",
    "piecewise": "Piecewise Const",
}
"""The learning-rate schedules, in the order of Cooling's Table 1."""

ACTIVATIONS = {
    "relu": "ReLU",
    "crelu": "CReLU",
}

OPTIMIZERS = {
    "sgd": "SGD",
    "adam": "Adam",
}
ARCHITECTURES = {
    "bottleneck_resnet": "ResNet of bottlenecks",
    "cifar_resnet": "ResNet",
    "convnet": "convolutional network",
    "densenet": "DenseNet",
    "gru": "GRU",
    "mlp": "multilayer perceptron",
    "preactivation_resnet": "ResNet of bottlenecks, activations first",
    "text_cnn": "CNN of texts",
    "tree_lstm": "Tree-LSTM",
    "vgg": "VGG",
    "wide_resnet": "Wide-ResNet",
}
"""The kinds of networks, by their names in the parameters."""

_MAY_BE_NORMALISED = ("vgg", "wide_resnet")
"""The kinds that are trained with batch norm and without."""

LABELS: Mapping[str, Mapping[Any, str]] = {
    "mode": MODES,
    "schedule": SCHEDULES,
    "activation": ACTIVATIONS,
}
"""The labels of the values of factors, by factor; other values are their own label."""

HUES = {
    "No Cooling": None,
    "Distributed": 1,
    "Periodically redistributed": 2,
    "Last layer": 0,
}
"""The place of an arm's colour in the palette, by the arm's label; None is black."""

_PLAIN_LOSSES = {
    "cross_entropy": "CE",
    "brier": "Brier",
    "mmce": "MMCE",
    "tempered_cross_entropy": "CE",
}
_GAMMAS = {
    "focal": "FL",
    "sample_dependent_focal": "FLSD",
    "scheduled_focal": "FLSc",
}

UNITS = {
    "accuracy": "points of accuracy",
    "pixel accuracy": "points of pixel accuracy",
    "mean IoU": "points of mean IoU",
    "ECE": "points of ECE",
    "error or ECE": "points of error or ECE",
    "top-5 accuracy": "points of top-5 accuracy",
    "AUROC": "points of AUROC",
    "share of predictions": "% of predictions",
    "of the mistakes": "% of the mistakes",
    "of the trainings": "% of the trainings",
    "of the seeds diverged": "% of the seeds diverged",
    "of the seeds trained": "% of the seeds trained",
    "of the seeds stayed finite": "% of the seeds stayed finite",
    "of an epoch": "% of an epoch",
}
"""The units of claims that are shares, in words for a reader. A comma in a unit is
followed by the name of a part of the claim.
"""

SHARES = {
    "accuracy",
    "error",
    "top1",
    "top5",
    "pixel_accuracy",
    "mean_iou",
    "auroc",
    "s99_share",
    "s99_accuracy",
    "ece",
    "mce",
    "adaptive_ece",
    "classwise_ece",
}
"""The metrics of tables that are shares; the end of their names says when they were
measured.
"""


def value_label(factor: str, value: Any) -> str:
    """The label of a factor's value: the paper's word, or the value as it is."""
    labels = LABELS.get(factor, {})
    if value in labels:
        return labels[value]
    if isinstance(value, float):
        text = f"{value:g}"
        return f"factor {text}" if factor == "factor" else text
    return str(value)


def loss_label(run: Mapping[str, Any] | pd.Series) -> str:
    """The papers' name of a loss, from its factors: "CE", "FL-3", "LS-0.05"."""
    loss = run["loss"]
    if loss in _PLAIN_LOSSES:
        return _PLAIN_LOSSES[loss]
    if loss == "label_smoothing":
        return f"LS-{float(run['smoothing']):g}"
    if loss in _GAMMAS:
        return f"{_GAMMAS[loss]}-{_plain(run['gamma'])}"
    return str(loss)


def loss_name(run: Mapping[str, Any] | pd.Series) -> str:
    """A loss in a sentence, with its gamma: "focal loss, gamma 3"."""
    name = f"{str(run['loss']).replace('_', ' ')} loss"
    if pd.isna(run["gamma"]):
        return name
    return f"{name}, gamma {_plain(run['gamma'])}"


def cooling_label(run: Mapping[str, Any] | pd.Series) -> str:
    """The Cooling paper's name of a mode, and how the run differs from its default."""
    differs = []
    factor = run["factor"]
    if pd.notna(factor) and factor != 1:
        differs.append(f"factor {factor:g}")
    if run["refit"] == "increment":
        differs.append("on each correction")
    if str(run["period"]).isdecimal():
        differs.append(f"every {_count(int(run['period']), 'batch', 'batches')}")
    if run["optimizer_state"] == "rescale":
        differs.append("optimizer state rescaled")
    return ", ".join([MODES[run["mode"]], *differs])


def architecture_label(run: Mapping[str, Any] | pd.Series) -> str:
    """The name of a kind of network, and whether it has batch norm if others do not."""
    kind = run["architecture"]
    name = ARCHITECTURES.get(kind, str(kind))
    if kind not in _MAY_BE_NORMALISED:
        return name
    return f"{name} {'with' if run['batch_norm'] else 'without'} batch norm"


def is_share(metric: str) -> bool:
    """Whether a metric is a share.

    A metric that the authors' notebooks print in percent says so itself.
    """
    name = metric.removesuffix("_after_scaling").removesuffix("_last_epoch")
    return name in SHARES or "%" in metric


def in_points(unit: str) -> str | None:
    """The unit of a share as a reader sees it; None where it is another number's."""
    name, comma, part = unit.partition(",")
    if name not in UNITS:
        return None
    return UNITS[name] + comma + part


def _plain(value: Any) -> str:
    """A number without zeros at its end; a policy as it is."""
    try:
        return f"{float(value):g}"
    except ValueError:
        return str(value)


def _count(number: int, singular: str, plural: str) -> str:
    return singular if number == 1 else f"{number} {plural}"

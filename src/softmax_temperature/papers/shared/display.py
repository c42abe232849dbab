"""Labels for readers: the words, colours and order in which factors are shown.

Runs are never selected by label. An arm's label is made from the factors of its runs,
so a run with gamma 5 cannot be called "FL-3".
"""

import re
from collections.abc import Callable, Mapping
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

SCHEDULE_WORDS = {
    "none": "no schedule",
    "piecewise": "piecewise constant",
    "exponential_slow": "exponential, slow",
    "exponential_fast": "exponential, fast",
    "linear": "linear",
    "cosine": "cosine",
}
"""The schedules in words for a reader, in the order of the front page's picture."""

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
"""Words for the kinds of networks, keyed by their names in the parameters."""

DATASETS = {
    "caltech101": "Caltech-101",
    "caltech256": "Caltech-256",
    "camvid": "CamVid",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    # The number in this name includes 4,000 validation images. The numbers in other
    # names do not include validation data.
    "cifar100-20000": "CIFAR-100, 16,000 images",
    "cinic10_imagenet": "CINIC-10, ImageNet's images",
    "clusters": "clusters",
    "coil20": "COIL-20",
    "cub200": "CUB-200",
    "devanagari": "Devanagari",
    "digits": "digits",
    "dtd": "DTD",
    "dtd10": "DTD, 10 classes",
    "emnist_letters": "EMNIST letters",
    "farm": "farm sentences",
    "fashion_mnist": "Fashion-MNIST",
    "flowers17": "Flowers-17",
    "fss1000": "FSS-1000",
    "gaussian-noise": "Gaussian noise",
    "gtsrb": "GTSRB",
    "imagenet_mini": "mini-ImageNet",
    "imagenet_r": "ImageNet-R",
    "imagenet64": "ImageNet, 64 × 64",
    "imdb": "IMDb",
    "mnist": "MNIST",
    "multi30k": "Multi30k",
    "newsgroups20": "20 Newsgroups",
    "newsgroups20_all": "20 Newsgroups, all texts",
    "omniglot": "Omniglot",
    "orl_faces": "ORL faces",
    "pacs_sketch": "PACS sketches",
    "photoart": "Photo-Art",
    "phrases": "phrases",
    "pinterest_faces_105": "Pinterest faces",
    "plantvillage15": "PlantVillage",
    "retina_mnist": "RetinaMNIST",
    "scene15": "Scene-15",
    "sst_trees": "SST",
    "stanford_cars": "Stanford Cars",
    "svhn": "SVHN",
    "things": "THINGS",
    "tiny_imagenet": "Tiny ImageNet",
    "uc_merced": "UC Merced",
    "wmt14_en_de": "WMT14, English to German",
}
"""Words for the data sets, keyed by their names in the parameters."""

_DRAWN = {"glyphs": "{} glyphs", "glyph-scenes": "scenes of {} glyphs"}
"""Words for the data sets of drawn characters, keyed by their names without the number
of classes.
"""

PERCENT = 100

_TEXTS = ("imdb", "newsgroups20", "phrases")
"""The text data sets that may be used in part.

The size of a part of any other data set is a number of images.
"""

NETWORKS = {
    "convnet": "convolutional network",
    "densenet121": "DenseNet-121",
    "gru": "GRU",
    "linear": "linear model",
    "mlp": "multilayer perceptron",
    "resnet": "ResNet",
    "resnet8": "ResNet-8",
    "resnet20": "ResNet-20",
    "resnet50": "ResNet-50",
    "resnet110": "ResNet-110",
    "tree-lstm": "Tree-LSTM",
    "text-cnn": "CNN of texts",
    "u-net": "U-Net",
    "vgg": "VGG",
    "wide-resnet-26-10": "Wide-ResNet-26-10",
    "wrn": "Wide-ResNet",
    "wrn-10-1": "Wide-ResNet-10-1",
    "wrn-16-2": "Wide-ResNet-16-2",
    "wrn-16-4": "Wide-ResNet-16-4",
    "wrn-28-10": "Wide-ResNet-28-10",
}
"""Names of the networks for readers.

The keys are the names in the parameter file, without the parts that `_PARTS` lists.
"""

_SIZES = {"small-": "small ", "wider-": "wider "}
"""Words for the prefixes that a network's name may have."""

_PARTS = {
    "bn": " with batch norm",
    "classic": ", classic blocks",
    "crelu": " with CReLU",
    "half": ", half as wide",
    "preactivation": ", activations first",
    "quarter": ", a quarter as wide",
    "released": ", as released",
    "relu": " with ReLU",
    "small": ", small",
    "tiny": ", tiny",
    "unnormalised": " without batch norm",
}
"""Words for the suffixes that a network's name may have."""

BACKBONES = {
    "alexnet": "AlexNet",
    "cifar10_resnet20": "ResNet-20 of CIFAR-10",
    "clip_rn50": "CLIP ResNet-50",
    "clip_vit_b32": "CLIP ViT-B/32",
    "efficientnet_lite0": "EfficientNet-Lite0",
    "efficientnet_lite1": "EfficientNet-Lite1",
    "efficientnet_lite2": "EfficientNet-Lite2",
    "facenet": "FaceNet",
    "mobilenetv1_025": "MobileNetV1 × 0.25",
    "mobilenetv1_050": "MobileNetV1 × 0.5",
    "mobilenetv1_075": "MobileNetV1 × 0.75",
    "mobilenetv2_100": "MobileNetV2",
    "resnet18": "ResNet-18",
    "resnet18_yfcc": "ResNet-18 of YFCC",
    "resnet50": "ResNet-50",
    "resnet50_yfcc": "ResNet-50 of YFCC",
    "resnet101": "ResNet-101",
    "squeezenet1_0": "SqueezeNet 1.0",
    "squeezenet1_1": "SqueezeNet 1.1",
}
"""Words for the backbones, keyed by their names in the parameters."""

_FAMILIES = {"glyphnet": "ResNet of glyphs", "untrained": "untrained ResNet"}
"""Words for the backbones whose names end with the number of dimensions."""

METRICS = {
    "adaptive_ece": "AdaECE",
    "auroc": "AUROC",
    "bleu": "BLEU",
    "classwise_ece": "Classwise-ECE",
    "ece": "ECE",
    "mce": "MCE",
    "mean_iou": "mean IoU",
    "nll": "NLL",
    "s99_accuracy": "accuracy above 99 % confidence",
    "s99_share": "share above 99 % confidence",
    "top1": "top-1 accuracy",
    "top5": "top-5 accuracy",
}
"""Words for metrics in tables, keyed by name without the suffix `_AFTER` or `_LAST`.

Other metrics are shown under their own names.
"""

STATISTICS = {
    "dim": "dimensions",
    "n_classes": "classes",
    "mean": "mean",
    "var": "variance",
    "train_mean": "mean, not normalised",
    "train_std": "sd, not normalised",
    "sb_trace": "trace within classes",
    "sw_trace": "trace between classes",
    "feats_corr": "correlation of features",
    "feats_cos_sim": "cosine of features",
    "n_samples": "samples",
    "avg_samp_class": "samples per class",
    "pca_50": "PCA, 50 % of variance",
    "pca_75": "PCA, 75 % of variance",
    "pca_80": "PCA, 80 % of variance",
    "pca_90": "PCA, 90 % of variance",
    "pca_95": "PCA, 95 % of variance",
    "pca_99": "PCA, 99 % of variance",
    "avg_kurtosis": "kurtosis",
    "avg_normality": "normality",
    "silhouette": "silhouette",
    "calinski_harabasz": "Caliński–Harabasz",
    "david_bouldin": "Davies–Bouldin",
}
"""Words for the statistics of embeddings, keyed by name in `dataset_statistics`."""

COLUMNS = {
    "dataset": "data set",
    "max_temperature": "maximal temperature",
    "n_classes": "classes",
    "p90": "90th percentile",
    "published": "printed",
    "train_images": "training images",
    "train_pairs": "training pairs",
    "train_samples": "training samples",
}
"""Words for columns of tables. Other columns are shown under their own names."""

_MAY_BE_NORMALISED = ("vgg", "wide_resnet")
"""The kinds of networks that are trained both with and without batch norm."""

LABELS: Mapping[str, Mapping[Any, str]] = {
    "mode": MODES,
    "schedule": SCHEDULES,
    "activation": ACTIVATIONS,
}
"""The labels of the factors' values, keyed by factor. Other values are unchanged."""

HUES = {
    "No Cooling": None,
    "Distributed": 1,
    "Periodically redistributed": 2,
    "Last layer": 0,
}
"""Indices of the arms' colours in the palette, keyed by arm label; None is black."""

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
"""The units of claims whose numbers are shares, in words for a reader."""

_AFTER = "_after_scaling"
_LAST = "_last_epoch"

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
    "bleu",
}
"""Metrics in tables that are shares, without the suffixes `_AFTER` and `_LAST`.
"""


def value_label(factor: str, value: Any) -> str:
    """The label of a factor's value: the papers' word, or else the value as text.

    Args:
        factor: The name of the factor.
        value: The value.
    """
    labels = LABELS.get(factor, {})
    if value in labels:
        return labels[value]
    if isinstance(value, float):
        text = f"{value:g}"
        return f"factor {text}" if factor == "factor" else text
    return str(value)


def dataset_label(name: str) -> str:
    """A data set in words: "CIFAR-10, 10,000 images" for `cifar10-10000`.

    The number at the end of a name is the percentage of the training data if it is
    below 100, and otherwise the number of images or texts. For drawn characters, it is
    the number of classes. An unknown name is returned unchanged. The name may consist
    of the names of two data sets, joined by "vs".
    """
    if " vs " in name:
        return " vs ".join(map(dataset_label, name.split(" vs ")))
    base, _, number = name.rpartition("-")
    if name in DATASETS or not number.isdecimal():
        return DATASETS.get(name, name)
    count = int(number)
    if base in _DRAWN:
        return _DRAWN[base].format(count)
    if base not in DATASETS:
        return name
    if count < PERCENT:
        return f"{DATASETS[base]}, {count} % of the images"
    unit = "texts" if base in _TEXTS else "images"
    return f"{DATASETS[base]}, {count:,} {unit}"


def network_label(name: str) -> str:
    """A network in words: "small VGG with batch norm" for `small-vgg-bn`.

    An unknown name is returned unchanged.
    """
    start = next((size for size in _SIZES if name.startswith(size)), "")
    base = name.removeprefix(start)
    endings: list[str] = []
    while base not in NETWORKS:
        base, dash, part = base.rpartition("-")
        if not dash:
            return name
        if part.isdecimal():
            endings.insert(0, f", {part} wide")
        elif part in _PARTS:
            endings.insert(0, _PARTS[part])
        else:
            return name
    return "".join([_SIZES.get(start, ""), NETWORKS[base], *endings])


def backbone_label(name: str) -> str:
    """A backbone in words: "MobileNetV1 × 0.25" for `mobilenetv1_025`.

    An unknown name is returned unchanged.
    """
    family, _, size = name.rpartition("-")
    if family in _FAMILIES and size.isdecimal():
        return f"{_FAMILIES[family]}, {size}"
    return BACKBONES.get(name, name)


def statistic_label(name: str) -> str:
    """A statistic of embeddings in words; an unknown name is returned unchanged."""
    return STATISTICS.get(name, name)


def task_label(dataset: str, network: str) -> str:
    """A data set and a network in words, with a semicolon between them."""
    return f"{dataset_label(dataset)}; {network_label(network)}"


def column_label(name: str) -> str:
    """A column of a table in words: "data set" for `dataset`."""
    return COLUMNS.get(name, spaced(name))


def spaced(name: str) -> str:
    """Replace the underscores in `name` with spaces."""
    return name.replace("_", " ")


def role_label(name: str) -> str:
    """The purpose of runs in words: "Table 1" for `table_1`."""
    return spaced(name).capitalize()


_VECTORS = {"glove_6b_50d_10k.npz": "GloVe of 6 billion tokens, 50 numbers a word"}
"""Words for the files of word vectors, keyed by file name."""


def embeddings_label(text: str) -> str:
    """The source of word vectors, described in words, with a space before each "%"."""
    file, *rest = text.split(", ")
    return re.sub(r"(?<=\d)%", " %", ", ".join([_VECTORS.get(file, file), *rest]))


NAMES: Mapping[str, Callable[[str], str]] = {
    "dataset": dataset_label,
    "network": network_label,
    "backbone": backbone_label,
    "embeddings": embeddings_label,
    "statistic": statistic_label,
    "loss": spaced,
    "optimizer_state": spaced,
    "refit": spaced,
    "role": role_label,
    "select": spaced,
}
"""Functions that replace names from the parameters with words, keyed by column."""


def with_names(table: pd.DataFrame) -> pd.DataFrame:
    """Replace the names of data sets, networks and the like in a table with words."""
    words = {
        column: [
            label(name) if isinstance(name, str) else name for name in table[column]
        ]
        for column, label in NAMES.items()
        if column in table
    }
    return table.assign(**words)


_TASKS = {
    "cifar10-vgg": "small VGG on CIFAR-10",
    "imdb-cnn": "CNN on IMDb",
    "newsgroups20-cnn": "CNN on 20 Newsgroups",
    "sst-tree-lstm": "Tree-LSTM on SST",
}
"""Words for the experiments that claims mention, keyed by name in the parameters."""

_NAME = re.compile(r"(?<!profile )(?<!study )(?<![\w/-])[a-z]\w*(?:-\w+)*(?![\w/-])")
"""Matches what may be a name from the parameters, except profiles and studies."""


def in_sentence(text: str) -> str:
    """Replace the names of data sets, networks and the like in `text` with words.

    A name that consists of letters only is left unchanged, because it may be an English
    word.
    """

    def words(match: re.Match[str]) -> str:
        name = match[0]
        if name.isalpha():
            return name
        if name in _TASKS:
            return _TASKS[name]
        labels = (dataset_label, network_label, backbone_label, statistic_label)
        candidates = (label(name) for label in labels)
        return next((label for label in candidates if label != name), name)

    return _NAME.sub(words, text)


def loss_label(run: Mapping[str, Any] | pd.Series) -> str:
    """The papers' name for a loss, from its factors: "CE", "FL-3", "LS-0.05"."""
    loss = run["loss"]
    if loss in _PLAIN_LOSSES:
        return _PLAIN_LOSSES[loss]
    if loss == "label_smoothing":
        return f"LS-{float(run['smoothing']):g}"
    if loss in _GAMMAS:
        return f"{_GAMMAS[loss]}-{run['gamma']}"
    return str(loss)


def loss_name(run: Mapping[str, Any] | pd.Series) -> str:
    """A loss in words for a sentence, with its gamma: "focal loss, gamma 3"."""
    name = f"{str(run['loss']).replace('_', ' ')} loss"
    if pd.isna(run["gamma"]):
        return name
    return f"{name}, gamma {run['gamma']}"


def cooling_label(run: Mapping[str, Any] | pd.Series) -> str:
    """The Cooling paper's name for the mode of `run`, with its non-default settings."""
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
    """A kind of network in words, with a remark on batch norm if this is optional."""
    kind = run["architecture"]
    name = ARCHITECTURES.get(kind, str(kind))
    if kind not in _MAY_BE_NORMALISED:
        return name
    return f"{name} {'with' if run['batch_norm'] else 'without'} batch norm"


def is_share(metric: str) -> bool:
    """Whether a metric is a share.

    A metric with "%" in its name is a share, too: the authors' notebooks print it as a
    percentage.
    """
    return _when(metric)[0] in SHARES or "%" in metric


def metric_label(metric: str) -> str:
    """A metric in words: "ECE after scaling" for `ece_after_scaling`."""
    name, end = _when(metric)
    words = METRICS.get(name, spaced(name))
    return f"{words}, last epoch" if end == _LAST else f"{words}{spaced(end)}"


def _when(metric: str) -> tuple[str, str]:
    """Split a metric's name into the metric and the suffix for when it was measured."""
    for end in (_AFTER, _LAST):
        if metric.endswith(end):
            return metric.removesuffix(end), end
    return metric, ""


def in_points(unit: str) -> str | None:
    """The unit of a share in points or percent; None if `unit` is not for a share."""
    return UNITS.get(unit)


def _count(number: int, singular: str, plural: str) -> str:
    return singular if number == 1 else f"{number} {plural}"

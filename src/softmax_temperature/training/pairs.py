"""Networks whose initial logits have a given size (temperature_check paper)."""

from torch import nn

from softmax_temperature.data.seeds import seed_of
from softmax_temperature.early_learning.pair import CorrelatedPair
from softmax_temperature.networks.registry import build_network
from softmax_temperature.params.network import Network
from softmax_temperature.params.temperature_check import number_in
from softmax_temperature.training.samples import Samples
from softmax_temperature.training.trainer import Trainer


def build_start(spec: Network, start: str, *, classes: int, seed: int) -> nn.Module:
    """Build a network, or a pair of networks for the starts "pair-c" and "norm-n".

    See `params.temperature_check.Training`.
    """
    model = build_network(spec, classes=classes, seed=seed)
    if number_in(start, "norm-") is not None:
        return CorrelatedPair(model, model, 1.0, share=0.0)
    correlation = number_in(start, "pair-")
    if correlation is None:
        return model
    other = build_network(spec, classes=classes, seed=seed_of(seed, "other"))
    return CorrelatedPair(model, other, correlation)


def start_norm(trainer: Trainer, held_out: Samples, start: str) -> float:
    """Return the mean norm of the tempered logits of `held_out` before training.

    Tempered logits are logits times the loss's inverse temperature. For the start
    "norm-n", the share of the pair's frozen logits is first set so that the mean norm
    is n. Raises LeakError for test data.
    """
    samples = held_out.for_fitting()
    norm = _mean_norm(trainer, samples)
    wanted = number_in(start, "norm-")
    if wanted is None or not isinstance(trainer.network, CorrelatedPair):
        return norm
    trainer.network.share = 1 - wanted / norm
    return _mean_norm(trainer, samples)


def _mean_norm(trainer: Trainer, samples: Samples) -> float:
    logits, _ = trainer.evaluate(samples.inputs)
    tempered = trainer.objective.tempered(logits)
    return float(tempered.double().norm(dim=1).mean())

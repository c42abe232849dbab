"""Networks that start with logits of a wanted size, as the starts of the
temperature_check paper name them.
"""

from torch import nn

from softmax_temperature.data.seeds import seed_of
from softmax_temperature.early_learning.pair import CorrelatedPair
from softmax_temperature.networks.registry import build_network
from softmax_temperature.params.network import Network
from softmax_temperature.params.temperature_check import number_in
from softmax_temperature.training.samples import Samples
from softmax_temperature.training.trainer import Trainer


def build_start(spec: Network, start: str, *, classes: int, seed: int) -> nn.Module:
    """A network, or the pair that "pair-c" and "norm-n" stand for (see
    `params.temperature_check.Training`).
    """
    model = build_network(spec, classes=classes, seed=seed)
    if number_in(start, "norm-") is not None:
        return CorrelatedPair(model, model, 1.0, share=0.0)
    if (correlation := number_in(start, "pair-")) is None:
        return model
    return CorrelatedPair(
        model,
        build_network(spec, classes=classes, seed=seed_of(seed, "other")),
        correlation,
    )


def start_norm(
    trainer: Trainer, held_out: Samples, start: str, *, inverse_temperature: float
) -> float:
    """The mean norm of the tempered logits before the first step, brought to that of
    "norm-n".

    Raises LeakError for test data.
    """
    inputs = held_out.for_fitting().inputs

    def norm() -> float:
        logits, _ = trainer.evaluate(inputs)
        return float((inverse_temperature * logits).double().norm(dim=1).mean())

    if (
        isinstance(trainer.network, CorrelatedPair)
        and (wanted := number_in(start, "norm-")) is not None
    ):
        trainer.network.share = 1 - wanted / norm()
    return norm()

"""Norms over a training, against sums written out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from torch import Tensor

from softmax_temperature.training import Diverged, Norms, Trainer


def norm(tensors: Iterable[Tensor]) -> float:
    return math.sqrt(sum(float(value) ** 2 for tensor in tensors for value in tensor.flatten().tolist()))


def test_norms_are_those_of_loops_over_numbers(make_trainer: Callable[..., Trainer], make_images: Any) -> None:
    trainer, images = make_trainer(clip_norm=0.5), make_images(10, seed=2).inputs
    norms = Norms(images)
    gradients: list[float] = []

    def note(each: Trainer) -> None:
        gradients.append(norm(parameter.grad for parameter in each.network.parameters() if parameter.grad is not None))

    trainer.after_batch += [norms.after_batch, note]
    for epoch in (1, 2):
        gradients.clear()
        trainer.epoch()
        norms.after_epoch(trainer)
        logits, _ = trainer.evaluate(images)
        assert len(gradients) == trainer.steps_per_epoch == 2
        assert norms.history[-1] == pytest.approx(
            {
                "epoch": epoch,
                "logit_norm": sum(norm([row]) for row in logits) / 10,
                "weight_norm": norm(trainer.network.parameters()),
                "gradient_norm": sum(gradients) / 2,
            },
            rel=1e-5,
        )
    assert max(gradients) < 0.5 + 1e-5, "as the optimizer used them"


def test_a_norm_that_overflows_is_a_divergence(make_trainer: Callable[..., Trainer], make_images: Any) -> None:
    trainer = make_trainer(lr=1e-30)
    norms = Norms(make_images(10, seed=2).inputs)
    trainer.after_batch += [enlarge, norms.after_batch]
    trainer.epoch()
    with pytest.raises(Diverged, match="gradients and weights are inf and"):
        norms.after_epoch(trainer)
    assert norms.history == []


def enlarge(trainer: Trainer) -> None:
    """Gradients that are finite, one by one."""
    for parameter in trainer.network.parameters():
        assert parameter.grad is not None
        parameter.grad.fill_(1e30)

"""Cooling: the temperature of a network corrected while it trains (cooling paper,
Algorithm 3.1).
"""

import math

import torch
from torch import Tensor, nn, optim

from softmax_temperature.cooling.last_layer import (
    as_stored,
    hold,
    last_layer_temperature,
    set_last_layer_temperature,
)
from softmax_temperature.cooling.optimizer_state import (
    check_policy,
    rescale_optimizer_state,
)
from softmax_temperature.cooling.redistribution import (
    parameter_scales,
    plan_redistribution,
    rescale_parameters,
)
from softmax_temperature.metrics.checks import as_rows, check_positive
from softmax_temperature.scaling import TemperatureFit, fit_temperature

# Maximal and reset temperature of the special cases of Algorithm 3.1 ("Summary",
# section 3.2).
LIMITS = {"last_layer": (math.inf, math.inf), "distributed": (0.0, 1.0)}
MODES = (*LIMITS, "periodic")
REFITS = ("whole", "increment")


class Cooling:
    """Corrects the temperature of a network once per Cooling period (Algorithm 3.1).

    Takes hold of the network in place: from then on `model(images)` returns its logits
    divided by a scalar buffer, `cooling_temperature`, which starts at 1 and is part of
    `state_dict()`. All state lives in the network: to resume, build it, take hold of it
    (before `torch.compile`), and load the state. In each period the temperature T of
    the network *in front of the buffer* is fitted anew, and T^factor is what the
    network is divided by from then on.

    - "last_layer" changes that buffer alone (Definition 3.1).
    - "distributed" spreads each correction over the layers and leaves the buffer at 1
      (Definition 3.2; `plan_redistribution`).
    - "periodic" changes the buffer while it stays up to `max_temperature`; above, it is
      set to `reset_temperature`, and the excess, its ratio to that, is spread over the
      layers (Definition 3.4).

    Args:
        model: Returns one tensor of logits, shape (n, classes) or (n, classes, ...).
        mode: "last_layer", "distributed" or "periodic".
        factor: Cooling factor κ; 1 corrects fully, 0 never.
        max_temperature: Above which "periodic" redistributes; at least 0, and infinity
            for never.
        reset_temperature: What "periodic" then keeps in the last layer.
        refit: "whole" raises the whole temperature of the last layer to the factor,
            "increment" only what a fit to the present logits adds to it.

    Attributes:
        last_fit: What the last call of `cool` found, or None; if it is `at_bound`, that
            call changed nothing.
        redistribution: What "distributed" and "periodic" do to the parameters; None for
            "last_layer".

    Raises:
        ValueError: If an argument is out of range, the network or one that it is a part
            of is compiled, or it cannot be redistributed exactly.

    Examples:
        >>> import torch
        >>> network = torch.nn.Linear(2, 3)
        >>> cooling = Cooling(network)
        >>> images, labels = torch.randn(90, 2, generator=torch.manual_seed(0)), torch.arange(90) % 3
        >>> before = network(images).detach()
        >>> applied = cooling.cool(before, labels)
        >>> torch.allclose(network(images), before / applied)
        True
    """

    # Deviation: "Temperature minimising cross entropy" and "update using new" in
    # Algorithm 3.1, lines 1 and 12, leave open whether the factor acts on the whole
    # temperature or on what is added to it. "whole" is the default, as in the
    # algorithm's wording; "increment" is the other reading. They agree at factor 1, and
    # in "distributed" mode.

    def __init__(
        self,
        model: nn.Module,
        *,
        mode: str = "last_layer",
        factor: float = 1.0,
        max_temperature: float = 100.0,
        reset_temperature: float = 100.0,
        refit: str = "whole",
    ) -> None:
        for name, value, choices in (("mode", mode, MODES), ("refit", refit, REFITS)):
            if value not in choices:
                raise ValueError(
                    f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}"
                )
        if not (math.isfinite(factor) and factor >= 0):
            raise ValueError(f"factor must be finite and at least 0, got {factor}")
        if not max_temperature >= 0:
            raise ValueError(
                f"max_temperature must be at least 0, got {max_temperature}"
            )
        if not (reset_temperature == max_temperature == math.inf):
            check_positive(reset_temperature, "reset_temperature")
        self.model, self.mode, self.factor, self.refit = (
            model,
            mode,
            float(factor),
            refit,
        )
        self.max_temperature, self.reset_temperature = LIMITS.get(
            mode, (max_temperature, reset_temperature)
        )
        self.redistribution = (
            None if mode == "last_layer" else plan_redistribution(model)
        )
        self.last_fit: TemperatureFit | None = None
        hold(model)

    @property
    def temperature(self) -> float:
        """What divides the logits in the last layer now."""
        return last_layer_temperature(self.model)

    def cool(
        self,
        logits: Tensor,
        labels: Tensor,
        *,
        optimizer: optim.Optimizer | None = None,
        policy: str = "keep",
    ) -> float:
        """Correct the temperature from held-out logits, once per period; returns what
        the logits are divided by.

        Held-out logits that separate the labels, or say nothing about them, have no
        best temperature: the network stays as it is, 1 is returned, and
        `last_fit.at_bound` is true.

        Args:
            logits: Of held-out images, as the network gives them now in evaluation
                mode, (n, classes, ...).
            labels: True classes, integers, shape (n,) or (n, ...), without pixels that
                have no label.
            optimizer: Whose state to carry over the rescaling of its parameters.
            policy: What to do with that state, see `rescale_optimizer_state`.

        Raises:
            ValueError: If an argument is malformed or no float can hold the new
                temperature; nothing has changed then.
        """
        check_policy(optimizer, policy)
        present = self.temperature
        check_positive(present, "cooling_temperature")
        fit = fit_temperature(*as_rows(logits, labels), criterion="nll")
        if fit.at_bound:
            # Deviation: the paper does not say what happens when the likelihood has no
            # optimum, as with a small held-out set that is classified without an error.
            # A search bound is no temperature, so nothing happens.
            self.last_fit = fit
            return 1.0
        kept, excess = self._divided(self._whole(present, fit.temperature))
        if self.redistribution is not None and excess != 1:
            scales = parameter_scales(self.model, self.redistribution, excess)
            if optimizer is not None:
                rescale_optimizer_state(optimizer, scales, policy)
            rescale_parameters(scales)
        set_last_layer_temperature(self.model, kept)
        self.last_fit = fit
        return kept / present * excess

    def _whole(self, present: float, correction: float) -> float:
        """The new temperature of the network in front of the buffer."""
        # Fitted to the logits at hand, not to those in front of the buffer, the search
        # stays far from its bounds.
        logarithms = torch.tensor([present, correction], dtype=torch.float64).log()
        powers = torch.tensor(
            [self.factor if self.refit == "whole" else 1.0, self.factor],
            dtype=torch.float64,
        )
        return (powers @ logarithms).exp().item()

    def _divided(self, whole: float) -> tuple[float, float]:
        """What the last layer keeps of the temperature, and what is left for the
        layers.
        """
        check_positive(as_stored(self.model, whole), "temperature")
        if whole <= self.max_temperature:
            return as_stored(self.model, whole), 1.0
        kept = as_stored(self.model, self.reset_temperature)
        return kept, whole / kept

"""Cooling: correct the temperature of a network while it trains.

Cooling paper, Algorithm 3.1.
"""

import math
from dataclasses import replace

import torch
from torch import Tensor, nn, optim

from softmax_temperature.cooling.function_scales import hold_scales
from softmax_temperature.cooling.held_out_logits import (
    check_columns,
    check_mode,
)
from softmax_temperature.cooling.last_layer import (
    as_stored,
    check_not_compiled,
    ends_in_sigmoid,
    hold,
    last_layer_temperature,
    passes,
    set_last_layer_temperature,
)
from softmax_temperature.cooling.optimizer_state import (
    check_policy,
    rescale_optimizer_state,
)
from softmax_temperature.cooling.redistribution import (
    Redistribution,
    parameter_scales,
    plan_redistribution,
    redistribute,
)
from softmax_temperature.cooling.structure import Structure, check_unchanged
from softmax_temperature.metrics.checks import (
    ArgumentError,
    as_rows,
    check_argument_order,
    check_at_least_zero,
    check_labels,
    check_logits,
    check_positive,
)
from softmax_temperature.metrics.class_axis import check_axes
from softmax_temperature.metrics.class_order import check_class_order
from softmax_temperature.metrics.probability_check import (
    NO_SIGMOID,
    NO_SOFTMAX,
    check_no_softmax_at_end,
    check_not_log_probs,
    check_not_probs,
    lie_in_unit_interval,
)
from softmax_temperature.scaling import TemperatureFit, search_temperature

# For each mode, the maximum temperature and the reset temperature with which Algorithm
# 3.1 reduces to that mode ("Summary", section 3.2).
LIMITS = {"last_layer": (math.inf, math.inf), "distributed": (0.0, 1.0)}
MODES = (*LIMITS, "periodic")
DEFAULT_LIMIT = 100.0
REFITS = ("whole", "increment")


class TemperatureOutOfRange(ValueError):
    """Raised if a new temperature is too large or too small for its dtype."""


class Cooling:
    """Corrects the temperature of a network at each call of `cool` (Algorithm 3.1).

    Modifies the network in place: `model(images)` then returns logits divided by the
    scalar buffer `cooling_temperature`, which starts at 1 and is part of
    `state_dict()`. All state that a resumed run needs is in the network. To resume,
    build the network, create this object (before `torch.compile`), and load the state.
    Each call of `cool` refits the temperature T of the *undivided* logits. With the
    default `refit`, these logits are then divided by T^factor.

    The division is a forward hook of `model` itself. Modules that are made from its
    parts, such as a slice `model[:3]` or `torch.fx.symbolic_trace(model)`, do not have
    the hook: their logits are not divided, and must not be passed to `cool`. The same
    applies to logits of `model.forward(images)`, which skips hooks, and of the module
    inside a `DataParallel` that was passed as `model`. With such logits, every call of
    `cool` would multiply the temperature again; `cool` detects this only if it gets the
    same logits twice. A `copy.deepcopy` has the hook.

    The logits must come from the network itself. An average of its weights (EMA, such
    as torch's `AveragedModel`) has other weights and a temperature of its own, which
    lags behind that of the network; `cool` does not detect its logits. After the last
    update of the average, `Cooling(average.module).cool(average(images), labels)` gives
    it the right temperature.

    In the first epochs T can be far below 1: logits and gradients are then amplified,
    and training may collapse. Use a smaller learning rate, start Cooling after a few
    epochs, or use `factor=0.5`; watch the accuracy.

    - "last_layer" changes only the buffer (Definition 3.1).
    - "distributed" spreads each correction over the layers and leaves the buffer at 1
      (Definition 3.2; `plan_redistribution`). Activations such as tanh then hold the
      scale of their input in a buffer `cooling_scale`, which also starts at 1.
    - "periodic" changes the buffer as long as it stays at or below `max_temperature`.
      If the buffer would exceed `max_temperature`, "periodic" sets it to
      `reset_temperature` and spreads the ratio of the two temperatures over the layers
      (Definition 3.4).

    Args:
        model: The network. It must return one tensor of logits of shape (n, classes) or
            (n, classes, ...), not of probabilities or log-probabilities.
        mode: "last_layer", "distributed" or "periodic".
        factor: Cooling factor κ; 1 corrects fully, 0 not at all.
        max_temperature: The temperature, at least 0, above which "periodic"
            redistributes. With infinity, it never redistributes.
        reset_temperature: The temperature of the last layer after "periodic" has
            redistributed.
        refit: "whole" raises the whole temperature of the last layer to the power κ;
            "increment" raises only the correction that was fitted to the current
            logits.

    Attributes:
        last_fit: The fit of the last call of `cool`, or None. If it is `at_bound`, that
            call changed nothing.
        redistribution: How "distributed" and "periodic" spread a temperature over the
            parameters; None for "last_layer".

    Raises:
        TypeError: If `model` is not a torch module.
        ValueError: If an argument is out of range or is not used in `mode`; if the
            network ends in a softmax or a sigmoid; if the network, or a network that
            contains it, is compiled; or if `mode` requires a redistribution that cannot
            be exact, as with tied weights, weight norm or attention. Mode "last_layer"
            accepts such a network.

    Examples:
        >>> import torch
        >>> network = torch.nn.Linear(2, 3)
        >>> cooling = Cooling(network)
        >>> images = torch.randn(90, 2, generator=torch.manual_seed(0))
        >>> labels = torch.arange(90) % 3
        >>> before = network(images).detach()
        >>> applied = cooling.cool(before, labels)
        >>> torch.allclose(network(images), before / applied)
        True
    """

    # Deviation: by default the factor acts on the whole temperature ("whole"), which is
    # closer to the paper's wording. Algorithm 3.1, lines 1 and 12 ("Temperature
    # minimising cross entropy" and "update using new"), leaves open whether the factor
    # acts only on the correction ("increment"). The two agree at factor 1, and in
    # "distributed" mode.

    # The temperature that the last call of `cool` set, and sums of that call's logits.
    _undivided: tuple[float, tuple[float, ...]] | None = None

    def __init__(
        self,
        model: nn.Module,
        *,
        mode: str = "last_layer",
        factor: float = 1.0,
        max_temperature: float = DEFAULT_LIMIT,
        reset_temperature: float = DEFAULT_LIMIT,
        refit: str = "whole",
    ) -> None:
        _check_model(model)
        _check_choice("mode", mode, MODES)
        _check_choice("refit", refit, REFITS)
        check_at_least_zero(factor, "factor")
        if max_temperature != math.inf:
            check_at_least_zero(max_temperature, "max_temperature")
        if not (reset_temperature == max_temperature == math.inf):
            check_positive(reset_temperature, "reset_temperature")
        if mode != "periodic":
            _check_unused("max_temperature", max_temperature, mode)
            _check_unused("reset_temperature", reset_temperature, mode)
        self.model = model
        self.mode = mode
        self.factor = float(factor)
        self.refit = refit
        limits = LIMITS.get(mode, (max_temperature, reset_temperature))
        self.max_temperature, self.reset_temperature = limits
        self.redistribution: Redistribution | None = None
        if mode != "last_layer":
            self.redistribution = plan_redistribution(model)
        self.last_fit: TemperatureFit | None = None
        # Whether an output outside [0, 1] has shown that the network does not end in a
        # sigmoid.
        self._is_judged = False
        hold(model)
        if self.redistribution is not None:
            hold_scales(model, self.redistribution.functions)
        self._structure = Structure.of(model)

    @property
    def temperature(self) -> float:
        """The temperature that divides the logits in the last layer."""
        return last_layer_temperature(self.model)

    def cool(
        self,
        logits: Tensor,
        labels: Tensor,
        *,
        optimizer: optim.Optimizer | None = None,
        policy: str = "keep",
    ) -> float:
        """Correct the network's temperature from held-out logits, once per period.

        There is no best temperature if the held-out logits separate the labels or are
        independent of them, or if all labels are of one class. The network then does
        not change, the method returns 1, and `last_fit.at_bound` is true.

        Args:
            logits: The network's own logits for held-out images, not those of an
                average of its weights, of shape (n, classes, ...), computed in
                evaluation mode, that is, after `model.eval()`. Logits of tokens, of
                shape (batch, tokens, classes), are refused; pass `logits.movedim(-1,
                1)` instead. If there are as many tokens as classes, the shape does not
                show the order of the dimensions; only the labels can then reveal a
                wrong order.
            labels: Integer true classes of shape (n,) or (n, ...). Pixels without a
                label must be left out of both `logits` and `labels`.
            optimizer: The optimizer whose state `policy` adapts when parameters are
                rescaled.
            policy: Treatment of that state, see `rescale_optimizer_state`.

        Returns:
            The factor by which this call divided the network's logits.

        Warns:
            UserWarning: If the network has dropout or batch norm, and either it
                computed the logits, as its last output, in training mode, or it has run
                only in training mode since the last call.

        Raises:
            ValueError: If an argument is malformed, the logits and the network's output
                have different numbers of classes, the network returns probabilities or
                log-probabilities, the new temperature is too large or too small for its
                dtype (`TemperatureOutOfRange`), or the network's layers have changed so
                that the planned redistribution no longer applies. In all these cases
                `cool` does not change the network.
        """
        check_policy(optimizer, policy)
        if self.redistribution is not None:
            self._structure = check_unchanged(
                self.model, self._structure, self.redistribution
            )
        present = self.temperature
        check_positive(present, "cooling_temperature")
        rows, classes = _checked_rows(logits, labels)
        self._check_of_network(rows, present)
        fit = search_temperature(rows, classes, criterion="nll")
        if bool((classes == classes[0]).all()):
            # All labels belong to one class. `check_two_classes` would raise an error,
            # but training must go on.
            fit = replace(fit, at_bound=True)
        if fit.at_bound:
            # Deviation: nothing changes if the likelihood has no optimum, for instance
            # on a small held-out set that is classified perfectly, because a bound of
            # the search is not an estimate. The paper does not say what happens then.
            self.last_fit = fit
            passes(self.model).forget()
            return 1.0
        whole = self._whole(present, fit.temperature)
        in_last_layer, excess = self._divided(whole)
        if self.redistribution is not None and excess != 1:
            if optimizer is not None:
                scales = parameter_scales(self.model, self.redistribution, excess)
                rescale_optimizer_state(optimizer, scales, policy)
            redistribute(self.model, self.redistribution, excess)
        set_last_layer_temperature(self.model, in_last_layer)
        self.last_fit = fit
        passes(self.model).forget()
        applied = in_last_layer / present * excess
        # Logits in a narrow type may stay the same if they are divided by a number near
        # 1.
        changed = abs(applied - 1) > 4 * torch.finfo(rows.dtype).eps
        if changed and in_last_layer != present:
            self._undivided = (in_last_layer, _sums(rows))
        return applied

    def _check_of_network(self, rows: Tensor, present: float) -> None:
        """Refuse rows that cannot be the network's logits, or warn of them.

        Args:
            rows: The logits, shape (n, classes).
            present: The temperature that divides the network's logits.
        """
        check_columns(self.model, rows.shape[1])
        self._check_divided(rows, present)
        # Check the undivided logits, because only their rows sum to one if the network
        # ends in a softmax.
        self._check_not_probs(rows * present if present != 1 else rows)
        check_mode(self.model, rows, stacklevel=3)

    def _check_divided(self, rows: Tensor, present: float) -> None:
        """Refuse logits that were computed before the last change of the temperature.

        Args:
            rows: The logits, shape (n, classes).
            present: The temperature that divides the network's logits.
        """
        if self._undivided == (present, _sums(rows)):
            raise ArgumentError(
                f"logits are the same as before they were divided by {present:.6g}, so "
                "they do not come from model(images)",
                "Compute them anew with model(images), not with model.forward(images), "
                "a part of the network or the module inside DataParallel.",
            )

    def _check_not_probs(self, undivided: Tensor) -> None:
        """Refuse a network that returns probabilities or their logarithms.

        Args:
            undivided: The logits before the buffer divides them, shape (n, classes).
        """
        of_sigmoid = ends_in_sigmoid(self.model)
        if of_sigmoid:
            raise ArgumentError(
                "model must return logits, but ends in a sigmoid", NO_SIGMOID
            )
        # Check at every call until an output lies outside [0, 1], because before
        # training all outputs of a sigmoid are near 0.5. Then stop for good, because
        # Cooling may move all logits of a network that ends in a ReLU into [0, 1].
        inside = lie_in_unit_interval(undivided)
        self._is_judged = self._is_judged or not inside
        check_not_probs(
            undivided,
            remedy=NO_SOFTMAX,
            sigmoids=of_sigmoid is None and not self._is_judged,
            of_network=True,
        )
        check_not_log_probs(undivided)

    def _whole(self, present: float, correction: float) -> float:
        """The new temperature for the undivided logits."""
        # The correction is fitted to the current logits instead of the undivided ones,
        # which keeps the search far from its bounds.
        temperatures = torch.tensor([present, correction], dtype=torch.float64)
        present_power = self.factor if self.refit == "whole" else 1.0
        powers = torch.tensor([present_power, self.factor], dtype=torch.float64)
        return (powers @ temperatures.log()).exp().item()

    def _divided(self, whole: float) -> tuple[float, float]:
        """Split `whole` into the temperatures of the last and of the other layers."""
        in_last_layer = as_stored(self.model, whole)
        if not 0 < in_last_layer < math.inf:
            raise TemperatureOutOfRange(
                f"temperature must be finite and positive, got {in_last_layer!r}"
            )
        if whole <= self.max_temperature:
            return in_last_layer, 1.0
        in_last_layer = as_stored(self.model, self.reset_temperature)
        return in_last_layer, whole / in_last_layer


def _check_model(model: nn.Module) -> None:
    """Refuse what is not a network that can hold a temperature and return logits."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch module, got {type(model).__name__}")
    if isinstance(model, torch.jit.ScriptModule):
        raise ArgumentError(
            f"model must be passed before torch.jit, got a {type(model).__name__}",
            "Pass the network itself, and script or trace it afterwards.",
        )
    check_not_compiled(model)
    check_no_softmax_at_end(model, "model", log=True)


def _checked_rows(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Check logits (n, classes, ...) and labels; return one row for each label."""
    check_argument_order(logits, labels)
    rows, classes = as_rows(logits, labels)
    check_logits(rows, masked=True)
    check_labels(classes, rows, masked=True)
    check_axes(labels, logits)
    check_class_order(classes, rows)
    return rows, classes


def _sums(rows: Tensor) -> tuple[float, ...]:
    """Return sums that identify the logits, so that no copy of them must be kept."""
    finite = rows.detach().double().nan_to_num(neginf=0)
    return (len(rows), finite.sum().item(), finite.square().sum().item())


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        listed = ", ".join(map(repr, choices))
        raise ArgumentError(
            f"{name} must be one of {listed}, got {value!r}", "Give one of them."
        )


def _check_unused(name: str, value: float, mode: str) -> None:
    """Raise ValueError if the limit `name`, which `mode` does not use, was given."""
    if value != DEFAULT_LIMIT:
        raise ValueError(
            f"{name} is only for mode 'periodic', got {value!r} in mode {mode!r}: omit "
            "it, or choose that mode"
        )

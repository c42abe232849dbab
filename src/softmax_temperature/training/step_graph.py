"""The training step as a CUDA graph: one launch instead of hundreds.

Small networks spend most of their time on launching kernels.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from softmax_temperature.metrics.checks import ArgumentError
from softmax_temperature.runner.progress import say

# Number of steps that run without a graph before a step is captured. In these steps
# libraries choose kernels, and the optimizer creates its state.
WARM_UP = 3


class _Unknown:
    """Stands for the epoch during capture; capture fails if the step reads it."""

    def __repr__(self) -> str:
        return "an unknown one"


_UNKNOWN: Any = _Unknown()


def say_not_captured(reason: str) -> str:
    """Tell the user why the steps are not captured, and return the reason."""
    say(f"the steps of this training are not captured as a CUDA graph: {reason}")
    return reason


class StepGraph:
    """Takes a few steps without a graph, captures one, and replays it from then on.

    `step` takes a table of row indices and random numbers, and the position in the
    recipe, and returns the loss. A replay reads the current contents of the captured
    step's tensors, so everything that changes between steps must be in tensors. If
    capturing fails, `fallback` is set to the reason, and no step uses a graph.
    """

    def __init__(self, step: Callable[[Tensor, float], Tensor]) -> None:
        self.fallback: str | None = None
        self._step = step
        self._steps = 0
        self._stream = torch.cuda.Stream()
        self._captured: tuple[torch.cuda.CUDAGraph, Tensor, Tensor] | None = None

    def __call__(self, table: Tensor, position: float) -> Tensor:
        """Take a step, by replaying the captured one if it exists; return the loss."""
        if self._captured is None and self._steps == WARM_UP and self.fallback is None:
            self._capture(table)
        if self._captured is not None:
            graph, input_table, loss = self._captured
            input_table.copy_(table)
            graph.replay()
            return loss.clone()
        # Take these steps on a separate stream, which torch requires for the warm-up
        # before a capture.
        self._steps += 1
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            loss = self._step(table, position)
        torch.cuda.current_stream().wait_stream(self._stream)
        return loss

    def _capture(self, table: Tensor) -> None:
        graph = torch.cuda.CUDAGraph()
        input_table = table.clone()
        try:
            with torch.cuda.graph(graph):
                loss = self._step(input_table, _UNKNOWN)
            self._captured = (graph, input_table, loss)
        except (TypeError, ArgumentError) as error:
            reason = f"its loss changes with the epoch ({error})"
            self.fallback = say_not_captured(reason)
        except RuntimeError as error:
            self.fallback = say_not_captured(" ".join(str(error).split()))

"""What the networks share: the form of a classifier, activations, and how weights start."""

from collections.abc import Callable, Collection

import torch
from torch import Tensor, nn


class Classifier(nn.Module):
    """A network whose last layer, `classifier`, makes `num_classes` logits of `features`."""

    classifier: nn.Module

    def features(self, inputs: Tensor) -> Tensor:
        """What `classifier` reads, (n, features), or (n, features, height, width) for pixels: here all other layers."""
        for name, layer in self.named_children():
            if name != "classifier":
                inputs = layer(inputs)
        return inputs

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits (n, num_classes) of images (n, 3, height, width) or of tokens (n, length)."""
        logits: Tensor = self.classifier(self.features(inputs))
        return logits


class CReLU(nn.Module):
    """The concatenated ReLU (Shang et al. 2016): relu(x) and then relu(-x) along dimension 1, which it doubles."""

    def __init__(self) -> None:
        super().__init__()
        self.relu = nn.ReLU()

    def forward(self, inputs: Tensor) -> Tensor:
        """Of inputs (n, channels, ...): shape (n, 2 channels, ...)."""
        return torch.cat((self.relu(inputs), self.relu(-inputs)), dim=1)


def rectifier(activation: str) -> tuple[Callable[[], nn.Module], int]:
    """The constructor of ReLU or CReLU (cooling paper, section 4.2), and how many channels it makes of one."""
    check_choice("activation", activation, ("relu", "crelu"))
    return (nn.ReLU, 1) if activation == "relu" else (CReLU, 2)


@torch.no_grad()
def redraw(network: nn.Module, draw: Callable[[Tensor], object], *, dense: bool = True) -> None:
    """Draw the weights of convolutions, and of dense layers unless told not to; their biases become 0."""
    for module in network.modules():
        if isinstance(module, (nn.Conv1d, nn.Conv2d)) or (dense and isinstance(module, nn.Linear)):
            draw(module.weight)
            if module.bias is not None:
                module.bias.zero_()


def check_choice(name: str, value: str, choices: Collection[str]) -> None:
    """Refuse an argument of a network that is none of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be {' or '.join(map(repr, choices))}, got {value!r}")

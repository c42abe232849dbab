"""Training of whole backbones from any library, with their own preprocessing."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from softmax_temperature.networks.preprocess import Preprocess
from softmax_temperature.params.recipe import Recipe, Schedule
from softmax_temperature.params.shared import PretrainRecipe
from softmax_temperature.training.samples import Samples


@dataclass(frozen=True)
class PreprocessedImages(Samples):
    """Uint8 images (n, 1 or 3, height, width), and labels (n,).

    `preprocess` maps the images to the network's inputs.
    """

    preprocess: Preprocess
    one_shape: ClassVar[bool] = True

    def prepare(self, inputs: Tensor, recipe: Recipe) -> Tensor:  # noqa: ARG002
        """Preprocess images to (b, 3, size, size) float32, channels last."""
        return self.preprocess(inputs, device=inputs.device)


class WholeNetwork(nn.Module):
    """A network in the form that the training loop expects.

    Its `classifier` is an identity that is applied to the logits.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.classifier = nn.Identity()

    def forward(self, inputs: Tensor) -> Tensor:
        """Compute logits (n, classes)."""
        logits: Tensor = self.classifier(self.network(inputs))
        return logits


def pretraining_recipe(how: PretrainRecipe) -> Recipe:
    """Make a recipe for SGD in float32; the learning rate falls to 0 along a cosine."""
    return Recipe(
        **{name: getattr(how, name) for name in PretrainRecipe.model_fields},
        planned_epochs=how.epochs,
        optimizer="sgd",
        epsilon=1e-8,
        schedule=Schedule(name="cosine"),
        reduction="mean",
        clip_norm=None,
        crop_padding=0,
        flip=False,
        mean=None,
        std=None,
        precision="float32",
    )

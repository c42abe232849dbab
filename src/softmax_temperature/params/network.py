"""Descriptions of networks in `params.yaml`: those that are trained from scratch, and
frozen backbones.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from softmax_temperature.runner.section import Section

# fmt: off
Architecture = Literal[
    "bottleneck_resnet", "cifar_resnet", "convnet", "densenet", "gru", "mlp", "text_cnn", "tree_lstm", "vgg",
    "wide_resnet",
]
# fmt: on
"""The names of `networks.registry`, which would import torch."""


class Network(Section):
    """`architecture` names it, `arguments` go to its constructor.

    `gpu_share` is the part of a GPU that its training fills, as 1 for a large network;
    null for one of `workers` parts. It changes no result, and is no part of a cell's
    fingerprint.
    """

    architecture: Architecture
    arguments: dict[str, Any] = {}
    gpu_share: Annotated[float, Field(gt=0, le=1)] | None = Field(None, exclude=True)


class Backbone(Section):
    """A frozen network that turns images into embeddings of `embedding` numbers.

    `weights` says where the parameters come from: "hub" (the library's own, under
    `tag`), "file" (`file`, safetensors, below data.root), "pretrain" (the pipeline's
    own stage) or "untrained" (random, seeded). `tensor` is the embedding: "head_input"
    what the last linear layer receives, "mean_features" the mean over all positions of
    the last convolutional map, "output" what the network returns.

    Weights from the hub bring their own preprocessing. For the others, the shorter side
    is brought to `resize` pixels (null: `input_size`) by antialiased `interpolation`,
    the central square of `input_size` is cut out, and pixels on the scale 0 to
    `pixel_scale`, in the order `channels`, become (pixel - mean) / std.
    """

    library: Literal["timm", "torchvision", "facenet", "project"]
    architecture: str
    weights: Literal["hub", "file", "pretrain", "untrained"]
    embedding: PositiveInt
    tensor: Literal["head_input", "mean_features", "output"] = "head_input"
    tag: str | None = None
    file: str | None = None
    arguments: dict[str, Any] = {}  # Of the constructor.
    input_size: PositiveInt | None = None
    resize: PositiveInt | None = None
    interpolation: Literal["bilinear", "bicubic"] = "bilinear"
    mean: Annotated[list[float], Field(min_length=3, max_length=3)] | None = None
    std: Annotated[list[PositiveFloat], Field(min_length=3, max_length=3)] | None = None
    channels: Literal["rgb", "bgr"] = "rgb"
    pixel_scale: PositiveFloat = 1.0

    @model_validator(mode="after")
    def _is_described_once(self) -> Self:
        hub, described = self.weights == "hub", (self.input_size, self.mean, self.std)
        if hub and (self.tag is None or self.library not in ("timm", "torchvision")):
            raise ValueError(
                "weights: hub needs the library timm or torchvision, and a `tag`: one network has many"
            )
        if hub and any((*described, self.resize)):
            raise ValueError(
                "weights: hub bring their own preprocessing; leave out input_size, resize, mean and std"
            )
        if not hub and not all(described):
            raise ValueError("weights other than hub need input_size, mean and std")
        if self.weights == "file" and self.file is None:
            raise ValueError("weights: file needs `file`, a path below data.root")
        if self.resize and self.input_size and self.resize < self.input_size:
            raise ValueError(
                f"resize: {self.resize} is smaller than the square of {self.input_size} to cut out"
            )
        return self

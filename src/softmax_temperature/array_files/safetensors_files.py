"""Files of named tensors in the safetensors form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open

from softmax_temperature.array_files.array_file import ArrayFile, BadFile

if TYPE_CHECKING:
    from numpy.typing import NDArray


class SafetensorsFile(ArrayFile):
    """Named tensors; the library compares the header with the file's length when it is opened."""

    def __init__(self, path: Path, matrix: str) -> None:
        super().__init__(path, matrix)
        try:
            with safe_open(path, framework="pt") as file:
                self.shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, OSError) as error:
            raise BadFile(f"is not a safetensors file, or cut short ({error})") from error

    @staticmethod
    def form(matrix: str) -> str:
        """What the file must hold."""
        return f"Save it with safetensors: {matrix} floating point of shape (n, ...), labels integers of shape (n,)."

    def names(self) -> list[str]:
        """The tensors."""
        return list(self.shapes)

    def numbers(self, name: str) -> int:
        """How many numbers a tensor holds."""
        return math.prod(self.shapes[name])

    def shape(self, name: str) -> tuple[int, ...]:
        """A tensor's shape."""
        return self.shapes[name]

    def load(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Read tensors; one in bfloat16, which numpy does not have, comes as float32."""
        import torch

        with safe_open(self.path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in names}
        return {name: (one.float() if one.dtype == torch.bfloat16 else one).numpy() for name, one in tensors.items()}

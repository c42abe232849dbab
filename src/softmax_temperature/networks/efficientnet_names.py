"""Translation of EfficientNet's layer names from TensorFlow's code to timm's.

The names of weights converted from TensorFlow number all blocks of the network
consecutively; timm's names number them within each stage.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

_STEM_AND_HEAD = {
    "_conv_stem": "conv_stem",
    "_bn0": "bn1",
    "_conv_head": "conv_head",
    "_bn1": "bn2",
    "_fc": "classifier",
}
# Names in blocks of the first stage, which do not expand their channels.
_SEPARABLE_BLOCK = {
    "_depthwise_conv": "conv_dw",
    "_bn1": "bn1",
    "_project_conv": "conv_pw",
    "_bn2": "bn2",
}
_INVERTED_BLOCK = {
    "_expand_conv": "conv_pw",
    "_bn0": "bn1",
    "_depthwise_conv": "conv_dw",
    "_bn1": "bn2",
    "_project_conv": "conv_pwl",
    "_bn2": "bn3",
}


def has_tensorflow_names(names: Collection[str]) -> bool:
    """Whether `names` are the names of weights in TensorFlow's code."""
    return "_conv_stem.weight" in names


def timm_names(names: Iterable[str], network: Iterable[str]) -> dict[str, str]:
    """Translate the names of weights into timm's names.

    Args:
        names: Names as in TensorFlow's code, such as `_blocks.3._expand_conv.weight`.
        network: The names of the weights of timm's network, in the network's order.

    Returns:
        The name in timm for each of `names`. A name without a counterpart is returned
        unchanged.
    """
    given = list(names)
    expanding = {_block_of(name) for name in given if "._expand_conv." in name}
    places = list(dict.fromkeys(filter(None, map(_stage_and_block, network))))
    renamed = {}
    for name in given:
        block = _block_of(name)
        if block is None:
            renamed[name] = _with_layer(name, _STEM_AND_HEAD)
        elif block < len(places):
            layers = _INVERTED_BLOCK if block in expanding else _SEPARABLE_BLOCK
            within = name.split(".", 2)[2]
            renamed[name] = f"{places[block]}.{_with_layer(within, layers)}"
        else:
            renamed[name] = name
    return renamed


def _block_of(name: str) -> int | None:
    """The block number in a name such as `_blocks.3._bn0.weight`, here 3, or None."""
    parts = name.split(".")
    is_in_block = parts[0] == "_blocks" and len(parts) > 2 and parts[1].isdecimal()
    return int(parts[1]) if is_in_block else None


def _stage_and_block(name: str) -> str | None:
    """The prefix `blocks.1.0` of a name such as `blocks.1.0.bn1.weight`, or None."""
    parts = name.split(".")
    return ".".join(parts[:3]) if parts[0] == "blocks" else None


def _with_layer(name: str, layers: dict[str, str]) -> str:
    layer, _, rest = name.partition(".")
    return f"{layers.get(layer, layer)}.{rest}"

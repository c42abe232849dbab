"""Profiles: named overlays on the defaults, which make a complete `params.yaml` with its comments.

Mappings merge key by key; numbers, texts and lists replace what was there, and bring their own comment (the source of
the value), so that a comment never speaks of a value that is gone.
"""

from __future__ import annotations

import copy
from io import StringIO
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from softmax_temperature.artifacts import write_text
from softmax_temperature.errors import InputError, nearest
from softmax_temperature.params import Params, read_yaml, validate

PROFILES = Path("profiles")
DEFAULTS = "defaults"


def profile_names(folder: Path = PROFILES) -> list[str]:
    """The profiles that exist, sorted."""
    return sorted(path.stem for path in folder.glob("*.yaml") if path.stem != DEFAULTS)


def render_profile(name: str, folder: Path = PROFILES) -> tuple[str, Params]:
    """The text of the `params.yaml` that a profile makes, and what it says.

    Args:
        name: the profile.
        folder: where the overlays and the defaults lie.

    Raises:
        InputError: there is no such profile, or it is not valid over the defaults.
    """
    names = profile_names(folder)
    if name not in names:
        raise InputError(f"unknown profile {name!r}", where=str(folder), remedy=nearest(name, names))
    merged = read_yaml(folder / f"{DEFAULTS}.yaml")
    _overlay(merged, read_yaml(folder / f"{name}.yaml"))
    merged["profile"] = name
    merged.yaml_set_start_comment(f"Written by `softmax-temperature profile {name}`; edit freely, then `dvc repro`.")
    return _text(merged), validate(merged, where=f"{folder / name}.yaml over {DEFAULTS}.yaml")


def apply_profile(name: str, target: Path = Path("params.yaml"), folder: Path = PROFILES) -> Params:
    """Write a profile's `params.yaml`; nothing is written unless all of it is valid."""
    text, params = render_profile(name, folder)
    write_text(target, text)
    return params


def _overlay(base: CommentedMap, top: CommentedMap) -> None:
    for key, value in top.items():
        if isinstance(value, CommentedMap) and isinstance(base.get(key), CommentedMap):
            _overlay(base[key], value)
            continue
        base[key] = copy.deepcopy(value)
        base.ca.items.pop(key, None)
        if key in top.ca.items:
            base.ca.items[key] = top.ca.items[key]


def _text(content: CommentedMap) -> str:
    yaml = YAML(typ="rt")
    yaml.width = 120
    yaml.indent(mapping=2, sequence=4, offset=2)
    stream = StringIO()
    yaml.dump(content, stream)
    return stream.getvalue()

"""Profiles: named overlays on the defaults, which make a complete `params.yaml` with
its comments.

Mappings merge key by key; numbers, texts and lists replace what was there, and bring
their own comment (the source of the value), so that a comment never speaks of a value
that is gone.
"""

import copy
import re
from io import StringIO
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import CommentMark
from ruamel.yaml.representer import RoundTripRepresenter
from ruamel.yaml.tokens import CommentToken

from softmax_temperature.params import Params, read_yaml, validate
from softmax_temperature.runner.errors import InputError, nearest

COMMENT_COLUMN = 37
PROFILES = Path("profiles")
DEFAULTS = "defaults"
HEADING = """Written by `softmax-temperature profile {name}`; edit freely, then `dvc repro`.
Every value ends with its source: a section of the paper that its block is named after, or ours and why."""


def profile_names(folder: Path = PROFILES) -> list[str]:
    """The profiles that exist, sorted."""
    return sorted(path.stem for path in folder.glob("*.yaml") if path.stem != DEFAULTS)


def render_profile(name: str, folder: Path = PROFILES) -> tuple[str, Params]:
    """The text of the `params.yaml` that a profile makes from overlays and defaults in
    a folder, and what it says.
    """
    if not (names := profile_names(folder)):
        what = "no such folder, or no profile in it"
        raise InputError(
            what, where=str(folder), remedy="Run this in the project's root folder."
        )
    if name not in names:
        raise InputError(
            f"unknown profile {name!r}", where=str(folder), remedy=nearest(name, names)
        )
    merged = read_yaml(folder / f"{DEFAULTS}.yaml", kind="rt")
    top = read_yaml(folder / f"{name}.yaml", kind="rt") or CommentedMap()
    if not isinstance(top, CommentedMap):
        what = "is no mapping of parameters to values"
        raise InputError(
            what,
            where=str(folder / f"{name}.yaml"),
            remedy="Write it as profiles/mini.yaml.",
        )
    _overlay(merged, top)
    merged["profile"] = name
    merged.yaml_set_start_comment(HEADING.format(name=name))
    yaml, stream = YAML(typ="rt"), StringIO()
    yaml.width, yaml.Representer = 120, _Representer
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.dump(merged, stream)
    # An empty line before each section, also where an overlay filled one in.
    text = re.sub(r"(?<!\n)\n(?=\w+:[^\n]*\n )", "\n\n", stream.getvalue())
    return text, validate(
        YAML(typ="safe").load(text), where=f"{folder / name}.yaml over {DEFAULTS}.yaml"
    )


class _Representer(RoundTripRepresenter):
    """Writes null as a word; ruamel would write nothing."""


_Representer.add_representer(
    type(None),
    lambda writer, _: writer.represent_scalar("tag:yaml.org,2002:null", "null"),
)


def _overlay(base: CommentedMap, top: CommentedMap) -> None:
    for key, value in top.items():
        if (
            isinstance(value, CommentedMap)
            and value
            and isinstance(base.get(key), CommentedMap)
        ):  # {} empties it
            _overlay(base[key], value)
            continue
        # What ruamel keeps with a key's comment though it belongs to what follows:
        # empty lines and headings.
        below = "\n" + _comment(base, key).partition("\n")[2]
        base[key] = copy.deepcopy(value)
        base.ca.items.pop(key, None)
        if isinstance(value, CommentedMap):
            base.ca.items[key] = top.ca.items.get(key, [None, None, None, None])
        elif (text := _comment(top, key).partition("\n")[0] + below).strip(" ") not in (
            "",
            "\n",
        ):
            base.ca.items[key] = [
                None,
                None,
                CommentToken(text, CommentMark(COMMENT_COLUMN), None),
                None,
            ]


def _comment(mapping: CommentedMap, key: str) -> str:
    """What ruamel keeps behind the value of a key, or nothing."""
    token = mapping.ca.items.get(key, [None] * 4)[2]
    return "" if token is None else str(token.value)

"""Profiles: overlays on the defaults, from which `params.yaml` is generated.

A mapping in a profile is merged, key by key, with the mapping in the defaults; its
comment, if it has one, replaces the comment there. A number, text or list in a profile
replaces the default and the default's comment, which gives the source of the value. So
no comment describes a value that has been replaced.
"""

import copy
import re
import subprocess
from collections.abc import Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import CommentMark
from ruamel.yaml.tokens import CommentToken

from softmax_temperature.params import Params, read_yaml, validate
from softmax_temperature.runner.errors import InputError, nearest

COMMENT_COLUMN = 37
PROFILES = Path("profiles")
# The longest line on which a mapping may stay in braces. ruamel breaks a line that is
# longer than 80 columns.
_WIDTH = 78
# The indentation of one level.
_INDENT = 2
# Maximum number of dumps. The first few dumps may move a comment, because ruamel can
# attach it elsewhere when it reads the text back; later dumps leave the comment there.
_MOST_DUMPS = 5
# Maximum number of edited parameters that a message names.
_MOST_NAMED = 3
DEFAULTS = "defaults"
HEADING = (
    "Written by `softmax-temperature profile {name}`; edit freely, then `dvc repro`.\n"
    "Every value ends with its source: a section of the paper that its block is named "
    "after, or ours and why."
)


def profile_names(folder: Path = PROFILES) -> list[str]:
    """The profiles that exist, sorted."""
    return sorted(path.stem for path in folder.glob("*.yaml") if path.stem != DEFAULTS)


def render_profile(name: str, folder: Path = PROFILES) -> tuple[str, Params]:
    """Merge a profile with the defaults.

    Args:
        name: The profile.
        folder: Folder with the defaults and the profiles.

    Returns:
        The text of `params.yaml`, and the validated parameters.

    Raises:
        InputError: If the profile is unknown, or its parameters are wrong.
    """
    names = profile_names(folder)
    if not names:
        raise InputError(
            "no profiles found",
            where=str(folder),
            remedy="Run this in the project's root folder.",
        )
    if name not in names:
        raise InputError(
            f"unknown profile {name!r}", where=str(folder), remedy=nearest(name, names)
        )
    merged = read_yaml(folder / f"{DEFAULTS}.yaml", kind="rt")
    top = read_yaml(folder / f"{name}.yaml", kind="rt") or CommentedMap()
    if not isinstance(top, CommentedMap):
        raise InputError(
            "is not a mapping of parameters to values",
            where=str(folder / f"{name}.yaml"),
            remedy="Write it like profiles/mini.yaml.",
        )
    _overlay(merged, top)
    merged["profile"] = name
    merged["notebooks"]["study"] = (top.get("notebooks") or {}).get("study", name)
    merged.yaml_set_start_comment(HEADING.format(name=name))
    text = _as_yaml(merged)
    parameters = YAML(typ="safe").load(text)
    where = f"{folder / name}.yaml over {DEFAULTS}.yaml"
    return text, validate(parameters, where=where)


def refuse_edited(path: Path, text: str, name: str, folder: Path = PROFILES) -> None:
    """Refuse to overwrite a parameter file whose edits would be lost.

    Nothing is lost if the file is missing or empty, or if its values are those of the
    new text, of the last commit, or of the profile that the file names.

    Args:
        path: The parameter file.
        text: The text to write.
        name: The profile that `text` is made from.
        folder: Folder with the defaults and the profiles.

    Raises:
        InputError: If the file has such edits, or is not YAML.
    """
    if not path.is_file():
        return
    remedy = (
        "Move them to profiles/ or commit them; or discard them: softmax-temperature "
        f"profile {name} --force"
    )
    try:
        values = read_yaml(path)
    except InputError as error:
        raise InputError(
            "is not valid YAML, so its edits cannot be compared with a profile",
            where=str(path),
            remedy=remedy,
        ) from error
    if values is None or values == _values(text) or values == _values(_committed(path)):
        return
    named = values.get("profile") if isinstance(values, dict) else None
    if named not in profile_names(folder):
        raise InputError(
            "has edits: it names no profile in profiles/",
            where=str(path),
            remedy=remedy,
        )
    profile_text, _ = render_profile(named, folder)
    edited = list(_different(values, _values(profile_text)))
    if edited:
        more = len(edited) - _MOST_NAMED
        shown = ", ".join(edited[:_MOST_NAMED])
        if more > 0:
            shown += f" and {more} more"
        raise InputError(
            f"has edits that profile {named} lacks ({shown})",
            where=str(path),
            remedy=remedy,
        )


def _committed(path: Path) -> str:
    """The text of `path` in the last commit; "" outside Git, or if not committed."""
    command = ["git", "show", f"HEAD:./{path.name}"]
    try:
        done = subprocess.run(  # noqa: S603
            command, cwd=path.parent, capture_output=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.decode("utf-8", errors="replace")


def _values(text: str) -> Any:
    """The values of the YAML `text`, without comments."""
    return YAML(typ="safe").load(text)


def _different(
    values: Mapping[str, Any], others: Mapping[str, Any], within: str = ""
) -> Iterator[str]:
    """The dotted names of the entries that differ between two nested mappings."""
    for key in dict.fromkeys([*values, *others]):
        name = f"{within}{key}"
        if key not in values or key not in others:
            yield name
        elif isinstance(values[key], dict) and isinstance(others[key], dict):
            yield from _different(values[key], others[key], f"{name}.")
        elif values[key] != others[key]:
            yield name


def _as_yaml(parameters: CommentedMap) -> str:
    """The text of params.yaml in the form that `dvc exp run -S` writes.

    DVC reads the file and rewrites it with ruamel's own settings, which write null as
    an empty value.
    """
    _open(parameters)
    text = _dumped(parameters)
    # Add an empty line before each section, because a section from an overlay has none.
    text = re.sub(r"(?<!\n)\n(?=\w+:[^\n]*\n )", "\n\n", text)
    for _ in range(_MOST_DUMPS):
        loaded = YAML().load(text)
        _open(loaded)
        again = _dumped(loaded)
        if again == text:
            break
        text = again
    return text


def _open(mapping: CommentedMap, indent: int = 0) -> None:
    """Make ruamel write lists, and mappings that are too long for a line, as blocks.

    A block has one line per item. DVC replaces all lists with plain lists, which ruamel
    writes as blocks unless they are inside braces. A mapping that is too long for a
    line must not stay in braces, because ruamel breaks a long line after any word.
    """
    for key, value in mapping.items():
        if isinstance(value, CommentedSeq):
            mapping[key] = _plain(value)
            _move_comment(mapping, key)
        elif isinstance(value, CommentedMap):
            if value and indent + len(f"{key}: {_on_one_line(value)}") > _WIDTH:
                value.fa.set_block_style()
                _move_comment(mapping, key)
            _open(value, indent + _INDENT)


def _plain(value: Any) -> Any:
    """The list `value` and the lists in it, at any depth, as plain Python lists."""
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value


def _move_comment(mapping: CommentedMap, key: str) -> None:
    """Move the comment after the value of `key` to the key itself."""
    comment = _comment(mapping, key)
    if not comment.strip().partition("\n")[2]:
        # Remove the blank lines after the comment: they would end up between the key
        # and its value.
        comment = comment.rstrip("\n")
    if comment:
        token = CommentToken(comment, CommentMark(COMMENT_COLUMN), None)
        mapping.ca.items[key][2] = token


def _on_one_line(value: Any) -> str:
    """Format `value` as ruamel writes it inside braces, without comments."""
    if isinstance(value, dict):
        parts = [f"{key}: {_on_one_line(part)}" for key, part in value.items()]
        return f"{{{', '.join(parts)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_on_one_line, value))}]"
    return str(value)


def _dumped(parameters: CommentedMap) -> str:
    yaml = YAML()
    yaml.default_flow_style = False
    stream = StringIO()
    yaml.dump(parameters, stream)
    return stream.getvalue()


def _overlay(base: CommentedMap, top: CommentedMap) -> None:
    """Merge `top` and its comments into `base`; an empty mapping empties a section."""
    for key, value in top.items():
        is_mapping = isinstance(value, CommentedMap)
        if is_mapping and value and isinstance(base.get(key), CommentedMap):
            _overlay(base[key], value)
            _replace_comment(base, top, key)
            continue
        # Keep the lines below the comment: ruamel stores the empty lines and headings
        # that precede the next key with the comment of this key.
        below = "\n" + _comment(base, key).partition("\n")[2]
        base[key] = copy.deepcopy(value)
        base.ca.items.pop(key, None)
        if is_mapping:
            base.ca.items[key] = top.ca.items.get(key, [None, None, None, None])
            continue
        comment = _comment(top, key).partition("\n")[0] + below
        if comment.strip(" ") not in ("", "\n"):
            token = CommentToken(comment, CommentMark(COMMENT_COLUMN), None)
            base.ca.items[key] = [None, None, token, None]


def _replace_comment(base: CommentedMap, top: CommentedMap, key: str) -> None:
    """Give the mapping at `key` in `base` the comment that `top` has, if any."""
    comment = _comment(top, key).partition("\n")[0]
    if comment.strip():
        below = _comment(base, key).partition("\n")[2]
        token = CommentToken(f"{comment}\n{below}", CommentMark(COMMENT_COLUMN), None)
        base.ca.items.setdefault(key, [None] * 4)[2] = token


def _comment(mapping: CommentedMap, key: str) -> str:
    """The comment that ruamel stores after the value of `key`; "" if there is none."""
    token = mapping.ca.items.get(key, [None] * 4)[2]
    return "" if token is None else str(token.value)

"""Classes that params.yaml names, by a short name or as "package.module:Class"."""

import re
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from softmax_temperature.runner.errors import InputError, nearest
from softmax_temperature.runner.section import Section

REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


def reference_to(name: str, table: Mapping[str, str], kind: str) -> str:
    """Return the "package.module:Class" for `name`; refuse an unknown name."""
    if name in table:
        return table[name]
    if REFERENCE.fullmatch(name):
        return name
    remedy = (
        f"{nearest(name, table)} Write a class of your own as package.module:Class."
    )
    raise InputError(f"unknown {kind}", where=f"{kind} {name!r}", remedy=remedy)


def implementations(value: Any) -> Iterator[str]:
    """Yield the classes named in the section `value` and in its nested sections."""
    if isinstance(value, Section):
        yield from value.implementations()
        for _, part in value:
            yield from implementations(part)


def module_of(reference: str) -> str:
    """Return the module in `reference`, which is a "package.module:Class"."""
    return reference.partition(":")[0]


def search_project_folder() -> None:
    """Let this process import modules next to params.yaml (the current folder)."""
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)


def load_class(reference: str, base: type) -> Any:
    """Load the class `reference`; refuse a class that is not a subclass of `base`."""
    search_project_folder()
    module, _, name = reference.partition(":")
    try:
        loaded = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"cannot be imported ({error})",
            where=reference,
            remedy="Put the module next to params.yaml, or install its package.",
        ) from error
    if not (isinstance(loaded, type) and issubclass(loaded, base)):
        raise InputError(
            f"is not a subclass of {base.__name__}",
            where=reference,
            remedy=f"Derive it from {base.__module__}.{base.__qualname__}.",
        )
    return loaded

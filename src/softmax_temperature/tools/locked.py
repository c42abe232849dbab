"""Print the lines of requirements.lock that the project needs with some extras.

The program runs before anything is installed, so it uses only the standard library:

    python src/softmax_temperature/tools/locked.py EXTRA...

A package in the lock is needed if pyproject.toml names it for the library, its build or
one of the extras, or if the lock's comments `# via` say that a needed package requires
it. If CPU builds of the pinned torch and torchvision are installed, the lines of these
two and of the packages that only CUDA needs are left out, so that the installed builds
are kept.
"""

import re
import sys
import tomllib
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[3]
# Packages that the CPU build replaces or does not need, and the prefixes of packages
# that only the CUDA build requires.
TORCH = ("torch", "torchvision", "triton")
CUDA = ("nvidia-", "cuda-")

_PIN = re.compile(r"([\w.-]+)==([^\s;]+)")
_PARENT = re.compile(r"^ +#(?: via)? +(?!via$)([\w.-]+)", re.MULTILINE)


class Pin(NamedTuple):
    """A package in the lock, with the packages that require it, and its lines."""

    name: str
    version: str
    parents: frozenset[str]
    text: str


def read_pins(lock: str) -> list[Pin]:
    """The pins in `lock`, the text of a lock file that uv wrote with annotations."""
    pins = []
    for text in re.findall(r"^[^\s#].*\n(?:[ ].*\n)*", lock, re.MULTILINE):
        pin = _PIN.match(text)
        if pin is None:
            raise SystemExit(
                f"requirements.lock: this line is not a pin: {text.splitlines()[0]}"
            )
        parents = frozenset(map(_normal, _PARENT.findall(text)))
        pins.append(Pin(_normal(pin[1]), pin[2], parents, text))
    return pins


def needed(
    pins: Sequence[Pin], project: dict[str, Any], extras: Iterable[str]
) -> list[Pin]:
    """The pins that the library, its build and `extras` need, in the lock's order."""
    about = project["project"]
    requirements = [*project["build-system"]["requires"], *about["dependencies"]]
    for extra in extras:
        if extra not in about["optional-dependencies"]:
            raise SystemExit(f"pyproject.toml has no extra {extra!r}")
        requirements += about["optional-dependencies"][extra]
    names = {
        _normal(re.split(r"[^\w.-]", text, maxsplit=1)[0]) for text in requirements
    }
    before = 0
    while len(names) > before:
        before = len(names)
        names |= {pin.name for pin in pins if pin.parents & names}
    return [pin for pin in pins if pin.name in names]


def without_cuda(pins: Iterable[Pin]) -> list[Pin]:
    """The pins without torch, torchvision and the packages that only CUDA needs."""
    return [
        pin for pin in pins if pin.name not in TORCH and not pin.name.startswith(CUDA)
    ]


def has_cpu_build(pins: Iterable[Pin]) -> bool:
    """Whether CPU builds of the pinned torch and torchvision are installed."""
    wanted = {pin.name: f"{pin.version}+cpu" for pin in pins}
    try:
        return all(version(name) == wanted[name] for name in ("torch", "torchvision"))
    except PackageNotFoundError:
        return False


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main(extras: Sequence[str]) -> None:
    """Print the lines of requirements.lock that the project needs with `extras`."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pins = needed(read_pins(lock), project, extras)
    if has_cpu_build(pins):
        pins = without_cuda(pins)
    sys.stdout.write("".join(pin.text for pin in pins))


if __name__ == "__main__":
    main(sys.argv[1:])

"""Renders each profile once, because rendering one takes a second."""

from pathlib import Path

from softmax_temperature.params import Params
from softmax_temperature.tools.profiles import DEFAULTS, render_profile
from tests.conftest import ROOT

PROFILES = ROOT / "profiles"
# What was rendered, by the profile's name, the text of the defaults and its own text.
_RENDERED: dict[tuple[str, str, str], tuple[str, Params]] = {}


def rendered(name: str, folder: Path = PROFILES) -> tuple[str, Params]:
    """What `render_profile` returns, which no test may change.

    Two folders with the same files give the same objects.
    """
    files = [folder / f"{stem}.yaml" for stem in (DEFAULTS, name)]
    if not all(file.is_file() for file in files):
        return render_profile(name, folder)
    defaults, own = (file.read_text(encoding="utf-8") for file in files)
    key = name, defaults, own
    if key not in _RENDERED:
        _RENDERED[key] = render_profile(name, folder)
    return _RENDERED[key]


def profile(name: str) -> Params:
    """The parameters of a profile."""
    return rendered(name)[1]

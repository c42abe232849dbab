"""Reads the committed profiles once, because reading one takes half a second."""

from functools import cache

from softmax_temperature.params import Params
from softmax_temperature.tools.profiles import render_profile
from tests.conftest import ROOT

PROFILES = ROOT / "profiles"


@cache
def rendered(name: str) -> tuple[str, Params]:
    """A profile's params.yaml, as text and as parameters, which no test may change."""
    return render_profile(name, PROFILES)


def profile(name: str) -> Params:
    """The parameters of a profile."""
    return rendered(name)[1]

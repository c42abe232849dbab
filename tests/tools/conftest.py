"""Reports without diagrams, for tests that look at none."""

from typing import Any

import pytest

from softmax_temperature.tools import calibrate


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the diagrams of reports empty, because drawing one takes two seconds."""

    def nothing(*_: object, **__: object) -> Any:
        return None

    monkeypatch.setattr(calibrate, "reliability_diagram", nothing)
    monkeypatch.setattr(calibrate, "encoded", lambda *_: b"")
    files = {"png": b"", "svg": b""}
    monkeypatch.setattr(calibrate, "encoded_untrimmed", lambda _: files)

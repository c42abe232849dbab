"""What users import from the top of the package: cheap to import, with examples that run."""

from __future__ import annotations

import doctest
import subprocess
import sys

import pytest

import softmax_temperature


@pytest.mark.parametrize("name", softmax_temperature.__all__)
def test_the_example_of_each_name_runs(name: str) -> None:
    (example,) = doctest.DocTestFinder(recurse=False).find(getattr(softmax_temperature, name), name)
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


def test_importing_the_package_imports_no_library() -> None:
    code = "import sys, softmax_temperature as s; s.__version__; print(*{name.split('.')[0] for name in sys.modules})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "numpy", "pandas", "sklearn", "matplotlib"} & set(found)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ImportError, match="cannot import name 'TemperatureScalar'"):
        from softmax_temperature import TemperatureScalar  # type: ignore[attr-defined]  # noqa: F401

"""The closure follows imports, and the digest follows code rather than words about it."""

import subprocess
import sys
from importlib.metadata import packages_distributions, version
from pathlib import Path
from shutil import copytree

import pytest

from softmax_temperature.runner import fingerprint
from softmax_temperature.runner.fingerprint import (
    EXCLUDED,
    PACKAGE,
    import_closure,
    source_path,
)

STAGES = sorted(
    f"{PACKAGE}.stages.{path.stem}"
    for path in source_path(f"{PACKAGE}.stages").parent.glob("[a-z]*.py")
)
DIGEST = "from softmax_temperature.runner.fingerprint import code_digest; print(code_digest('{}'))"


def test_libraries_have_the_names_and_versions_that_are_installed() -> None:
    supplied = packages_distributions()
    closures = {name for stage in STAGES for name in import_closure(stage)}
    graph = fingerprint._graph(EXCLUDED)
    used = {
        library
        for name in closures
        for library in graph.find_modules_directly_imported_by(name)
    }
    libraries = {
        name for name in used if name in supplied and not name.startswith(PACKAGE)
    }
    assert {"numpy", "torch"} <= libraries
    for name in libraries:
        assert fingerprint._version(name) in {
            version(each) for each in supplied[name]
        }, name


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package, to be changed."""
    folder = tmp_path_factory.mktemp("package")
    copytree(
        source_path(PACKAGE).parent, folder / PACKAGE, ignore=lambda *_: {"__pycache__"}
    )
    return folder


def _digest(package: Path) -> str:
    command = [
        sys.executable,
        "-c",
        DIGEST.format(f"{PACKAGE}.stages.classifier_temperature"),
    ]
    return subprocess.run(
        command,
        env={"PYTHONPATH": str(package)},
        text=True,
        capture_output=True,
        check=True,
    ).stdout


def test_science_changes_the_digest_but_not_the_runner_params_or_words(
    package: Path,
) -> None:
    before = _digest(package)
    for room in ("runner/cells.py", "params/shared.py", "papers/shared/sources.py"):
        with (package / PACKAGE / room).open("a") as file:
            file.write("\nADDED = 1\n")
    trainer = package / PACKAGE / "cosine_classifier/trainer.py"
    trainer.write_text(
        trainer.read_text().replace('"""Trains', '# Why.\n"""In other words, trains', 1)
    )
    assert _digest(package) == before
    trainer.write_text(f"{trainer.read_text()}\nADDED = 1\n")
    assert _digest(package) != before

"""The closure follows imports, and the digest follows code rather than words about it."""

import subprocess
import sys
from importlib.metadata import packages_distributions, version
from pathlib import Path
from shutil import copytree

import pytest

from softmax_temperature.runner import fingerprint
from softmax_temperature.runner.fingerprint import EXCLUDED, PACKAGE, import_closure, source_path

STAGES = sorted(f"{PACKAGE}.stages.{path.stem}" for path in source_path(f"{PACKAGE}.stages").parent.glob("[a-z]*.py"))
DIGEST = "from softmax_temperature.runner.fingerprint import code_digest; print(code_digest('{}'))"


@pytest.mark.parametrize("stage", STAGES)
def test_the_closure_holds_imports_and_parents_but_not_how_cells_are_run_or_shown(stage: str) -> None:
    closure = import_closure(stage)
    assert {PACKAGE, f"{PACKAGE}.stages", stage} <= set(closure)
    assert all(source_path(name).is_file() and not EXCLUDED & set(name.split(".")[1:2]) for name in closure)


def test_libraries_have_the_names_and_versions_that_are_installed() -> None:
    supplied = packages_distributions()
    closures = {name for stage in STAGES for name in import_closure(stage)}
    graph = fingerprint._graph(EXCLUDED)
    used = {library for name in closures for library in graph.find_modules_directly_imported_by(name)}
    libraries = {name for name in used if name in supplied and not name.startswith(PACKAGE)}
    assert {"numpy", "torch"} <= libraries
    for name in libraries:
        assert fingerprint._version(name) in {version(each) for each in supplied[name]}, name


SOURCE = '"""Doc."""\n\n# comment\ndef f(a):\n    """Doc of f."""\n    return a + 1  # why\n'


@pytest.mark.parametrize(
    ("other", "equal"),
    [
        (SOURCE.replace("# comment", "# another"), True),
        (SOURCE.replace("Doc of f.", "Better words."), True),
        (SOURCE.replace('    """Doc of f."""\n', ""), True),
        (SOURCE.replace("+ 1", "+ 2"), False),
        (SOURCE.replace("f(a)", "f(a, b=0)"), False),
    ],
)
def test_comments_and_docstrings_do_not_count(tmp_path: Path, other: str, equal: bool) -> None:
    paths = [tmp_path / "one.py", tmp_path / "two.py"]
    for path, text in zip(paths, (SOURCE, other), strict=True):
        path.write_text(text)
    assert (fingerprint.code_only(paths[0]) == fingerprint.code_only(paths[1])) is equal


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package, to be changed."""
    folder = tmp_path_factory.mktemp("package")
    copytree(source_path(PACKAGE).parent, folder / PACKAGE, ignore=lambda *_: {"__pycache__"})
    return folder


def _digest(package: Path) -> str:
    command = [sys.executable, "-c", DIGEST.format(f"{PACKAGE}.stages.classifier_temperature")]
    return subprocess.run(command, env={"PYTHONPATH": str(package)}, text=True, capture_output=True, check=True).stdout


def test_science_changes_the_digest_but_not_the_runner_params_or_words(package: Path) -> None:
    before = _digest(package)
    for room in ("runner/cells.py", "params/shared.py", "papers/shared/sources.py"):
        with (package / PACKAGE / room).open("a") as file:
            file.write("\nADDED = 1\n")
    trainer = package / PACKAGE / "cosine_classifier/trainer.py"
    trainer.write_text(f"# Why.\n{trainer.read_text()}")
    assert _digest(package) == before
    trainer.write_text(f"{trainer.read_text()}\nADDED = 1\n")
    assert _digest(package) != before

"""The closure follows imports, and the digest follows code rather than words about it."""

from __future__ import annotations

import ast
from importlib.metadata import packages_distributions, version
from pathlib import Path

import pytest

from softmax_temperature.runner import code_digest
from softmax_temperature.runner.fingerprint import import_closure, source_path


def test_closure_holds_imports_and_parents_of_this_package_only() -> None:
    closure = import_closure("softmax_temperature.stages.describe")
    assert "softmax_temperature.dataset_statistics" in closure
    assert "softmax_temperature.stages" in closure
    assert "softmax_temperature" in closure
    assert all(name.startswith("softmax_temperature") for name in closure)


def test_imports_for_type_checking_are_not_followed() -> None:
    for stage in ("fetch", "pretrain", "embed", "describe", "search", "rescaling", "heuristic"):
        closure = import_closure(f"softmax_temperature.stages.{stage}")
        assert "softmax_temperature.params" not in closure, f"{stage} would be stale with any new parameter"
        assert not any(".papers" in name for name in closure), stage
        runner = {f"softmax_temperature.{name}" for name in ("cells", "engines", "programs", "machine")}
        assert not runner & set(closure), f"{stage} would be stale with any change of how cells are run"
    assert "softmax_temperature.dataset_statistics" not in import_closure("softmax_temperature.stages.search")


def test_every_module_has_its_source() -> None:
    for name in import_closure("softmax_temperature.stages.search"):
        assert source_path(name).is_file(), name


def test_libraries_have_the_names_and_versions_that_file_lists_say() -> None:
    supplied = packages_distributions()
    stages = sorted(Path(source_path("softmax_temperature.stages")).parent.glob("[a-z]*.py"))
    closures = {name for path in stages for name in import_closure(f"softmax_temperature.stages.{path.stem}")}
    graph = code_digest._graph()
    used = {library for name in closures for library in graph.find_modules_directly_imported_by(name)}
    libraries = {name for name in used if name in supplied and not name.startswith(code_digest.PACKAGE)}
    assert {"PIL", "numpy", "sklearn", "torch"} <= libraries
    for name in libraries:
        by_files = ",".join(f"{one} {version(one)}" for one in sorted(set(supplied[name])))
        assert code_digest._version(name) == by_files


@pytest.mark.parametrize(
    ("module", "expected"), [("_pytest", f"pytest {pytest.__version__}"), ("no_such_library", "unknown")]
)
def test_a_library_by_another_name_is_looked_up(module: str, expected: str) -> None:
    assert code_digest._version(module) == expected


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
def test_digest_counts_code_not_words(tmp_path: Path, other: str, equal: bool) -> None:
    paths = [tmp_path / "one.py", tmp_path / "two.py"]
    for path, text in zip(paths, (SOURCE, other), strict=True):
        path.write_text(text)
        ast.parse(text)
    first, second = (code_digest.code_only(path) for path in paths)
    assert (first == second) is equal

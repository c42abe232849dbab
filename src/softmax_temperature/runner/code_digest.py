"""The digest of the code that a function runs: the modules it reaches by import, and the libraries those use.

Comments and docstrings do not count, so explaining code does not make results stale; changing it does. Imports made
for type checking alone are not followed.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path

import grimp

from softmax_temperature.runner.artifacts import canonical_json, digest_of_text

PACKAGE = "softmax_temperature"

_NAMED_OTHERWISE = {"PIL": "pillow", "sklearn": "scikit-learn"}
"""Libraries by the modules that are not named like them. What is not said here is looked up in the file lists of all
libraries, which takes a third of a second in every process."""


@cache
def import_closure(module: str) -> tuple[str, ...]:
    """The modules of this package that importing `module` runs, itself and parent packages included, sorted.

    Args:
        module: a dotted name, for instance "softmax_temperature.scaling"; of a module outside this package only
            its own file counts.
    """
    if not _in_package(module):
        return (module,)
    own = {name for name in {module, *_graph().find_upstream_modules(module)} if _in_package(name)}
    return tuple(sorted({parent for name in own for parent in _with_parents(name)}))


@cache
def code_digest(module: str) -> str:
    """One sha256 over the closure's code and the versions of the libraries that it imports directly.

    Within one process this is the code as it was when first asked for.
    """
    return fresh_code_digest(module)


def fresh_code_digest(module: str) -> str:
    """The same, as the files are now."""
    closure = import_closure(module)
    inside = [name for name in closure if _in_package(name)]
    used = {name for own in inside for name in _graph().find_modules_directly_imported_by(own) if not _in_package(name)}
    return digest_of_text(
        canonical_json(
            {
                "modules": {name: digest_of_text(code_only(source_path(name))) for name in closure},
                "libraries": {name: _version(name) for name in sorted(used - sys.stdlib_module_names)},
            }
        )
    )


def source_path(module: str) -> Path:
    """The file that holds a module; one of this package is found without importing it."""
    if not _in_package(module):
        return Path(str(sys.modules[module].__file__))
    path = Path(__file__).parents[1].joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def _graph() -> grimp.ImportGraph:
    return grimp.build_graph(
        PACKAGE, include_external_packages=True, exclude_type_checking_imports=True, cache_dir=None
    )


def _in_package(module: str) -> bool:
    return module.split(".")[0] == PACKAGE


def _with_parents(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)]


def _version(module: str) -> str:
    name = _NAMED_OTHERWISE.get(module, module)
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        names = _distributions().get(module, [])
    return ",".join(f"{name} {version(name)}" for name in sorted(set(names))) or "unknown"


@cache
def _distributions() -> Mapping[str, list[str]]:
    return packages_distributions()


def code_only(path: Path) -> str:
    """The code of a file in one form, without comments and docstrings."""
    return _code_only(path.read_text(encoding="utf-8"))


@cache  # Every cell asks, before and after: what has not changed is not parsed again.
def _code_only(source: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and _has_docstring(
            node
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def _has_docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return ast.get_docstring(node, clean=False) is not None

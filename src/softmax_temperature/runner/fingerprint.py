"""The digest of the code that a cell runs: the modules its function reaches by import,
and the libraries they use.

Comments and docstrings do not count, so explaining code does not make results stale;
changing it does. How cells are run, how parameters are validated and what is done with
results do not count either: see `EXCLUDED`.
"""

import ast
import sys
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import grimp

from softmax_temperature.runner.artifacts import digest_of, digest_of_text

PACKAGE = "softmax_temperature"
EXCLUDED = frozenset({"runner", "params", "papers", "tools"})
"""Rooms whose code is no part of a result. The parameters' values are: a cell is given
them.
"""
# Libraries that are not named like their modules.
_DISTRIBUTIONS = {"PIL": "pillow", "sklearn": "scikit-learn", "ruamel": "ruamel.yaml"}
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def import_closure(
    module: str, *, excluded: frozenset[str] = EXCLUDED
) -> tuple[str, ...]:
    """The modules of this package that `module` imports, directly or not, itself and
    its packages included, sorted.

    Not the package's root, which names things for users, excluded rooms, and what is
    imported for type checking alone.
    """
    if not _in_package(module):
        return (module,)
    found = [
        module,
        *filter(_in_package, _graph(excluded).find_upstream_modules(module)),
    ]
    return tuple(
        sorted(
            {
                name.rsplit(".", cut)[0]
                for name in found
                for cut in range(name.count("."))
            }
        )
    )


@cache
def code_digest(module: str) -> str:
    """One sha256 over the closure's code and the versions of the libraries that it
    imports directly.

    Within one process this is the code as it was when first asked for.
    """
    closure = import_closure(module)
    imports = map(
        _graph(EXCLUDED).find_modules_directly_imported_by, filter(_in_package, closure)
    )
    used = {name for names in imports for name in names if not _in_package(name)}
    modules = {name: digest_of_text(code_only(source_path(name))) for name in closure}
    libraries = {name: _version(name) for name in used - sys.stdlib_module_names}
    return digest_of({"modules": modules, "libraries": libraries})


def source_path(module: str) -> Path:
    """The file that holds a module; one of this package is found without importing it."""
    if not _in_package(module):
        return Path(str(sys.modules[module].__file__))
    path = Path(__file__).parents[1].joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def code_only(path: Path) -> str:
    """The code of a file in one form, without comments and docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if (
            isinstance(node, _DOCUMENTED)
            and ast.get_docstring(node, clean=False) is not None
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


@cache
def _graph(excluded: frozenset[str]) -> grimp.ImportGraph:
    options = {"include_external_packages": True, "exclude_type_checking_imports": True}
    graph = grimp.build_graph(PACKAGE, cache_dir=None, **options)
    for name in graph.modules:
        if _in_package(name) and excluded.intersection(name.split(".")[1:2]):
            graph.remove_module(name)
    return graph


def _in_package(module: str) -> bool:
    return module.split(".")[0] == PACKAGE


def _version(module: str) -> str:
    with suppress(PackageNotFoundError):
        return version(_DISTRIBUTIONS.get(module, module))
    return "unknown"

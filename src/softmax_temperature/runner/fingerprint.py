"""The digest of the code that a cell runs.

The digest covers the module of the cell's function, the modules that it imports,
directly or indirectly, and the versions of the libraries that these modules import.
Comments, docstrings and descriptions of attributes do not count, so that a better
explanation does not make results stale. Modules that run cells, validate parameters or
report results do not count either (see `EXCLUDED`), nor does the registry of stages, so
that a new stage does not make another stage's cells stale.
"""

import ast
import sys
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec, resolve_name
from pathlib import Path

import grimp

from softmax_temperature.runner.artifacts import digest_of, digest_of_text
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.implementations import search_project_folder

PACKAGE = "softmax_temperature"
EXCLUDED = frozenset({"runner", "params", "papers", "tools"})
"""Subpackages whose code is not part of a fingerprint.

Parameter values are part of the fingerprint, because a cell receives them.
"""
# Packages whose __init__ only exports names for users, and imports them on demand.
_NAMES_FOR_USERS = frozenset({PACKAGE, f"{PACKAGE}.losses"})
# The registry of stages does not count, because everything that it passes to a cell is
# in the cell's plan.
_NOT_COUNTED = _NAMES_FOR_USERS | {f"{PACKAGE}.stages"}
# The library of each module whose name differs from the library's.
_DISTRIBUTIONS = {"PIL": "pillow", "sklearn": "scikit-learn", "ruamel": "ruamel.yaml"}
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def import_closure(
    module: str, *, excluded: frozenset[str] = EXCLUDED
) -> tuple[str, ...]:
    """Return the names of the modules that `module` imports, directly or indirectly.

    The names are sorted. The closure includes `module` itself, and the parent packages
    of its modules. If `module` is the project's own (next to params.yaml), the closure
    also includes the project's other modules that it imports. The closure leaves out
    packages that only export names for users, the registry of stages, excluded folders,
    and imports for type checking.
    """
    if not _in_package(module):
        return _closure_of_project_module(module, excluded)
    upstream = _graph(excluded).find_upstream_modules(module)
    modules = {module, *filter(_in_package, upstream)}
    parents = {parent for name in modules for parent in _parents(name)}
    return tuple(sorted((modules | parents) - _NOT_COUNTED))


def _closure_of_project_module(
    module: str, excluded: frozenset[str]
) -> tuple[str, ...]:
    modules: set[str] = set()
    pending = [module]
    while pending:
        name = pending.pop()
        if name in modules:
            continue
        modules.add(name)
        if _in_package(name):
            modules.update(import_closure(name, excluded=excluded))
            continue
        pending += filter(_in_project, _parents(name))
        package_modules = set(filter(_in_package, _graph(excluded).modules))
        for imported in _imported_names(name):
            if imported in package_modules or _in_project(imported):
                pending.append(imported)
    return tuple(sorted(modules - _NOT_COUNTED))


@cache
def code_digest(module: str) -> str:
    """Compute the sha256 of the code in `module`'s closure and its libraries' versions.

    Libraries count if a module of the closure imports them directly. Within one process
    the code is read once, at the first call.
    """
    closure = import_closure(module)
    imported = {library for name in closure for library in _libraries(name)}
    modules = {name: digest_of_text(code_only(source_path(name))) for name in closure}
    libraries = {name: _version(name) for name in imported - sys.stdlib_module_names}
    return digest_of({"modules": modules, "libraries": libraries})


def project_files(module: str) -> list[Path]:
    """List the files of the project's own modules in the closure of `module`."""
    return [source_path(name) for name in import_closure(module) if _in_project(name)]


def source_path(module: str) -> Path:
    """The file of `module`, which is not imported if it belongs to this package."""
    if not _in_package(module):
        return _project_file(module)
    path = Path(__file__).parents[1].joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _project_file(module: str) -> Path:
    file = getattr(sys.modules.get(module), "__file__", None)
    search_project_folder()
    with suppress(ImportError, ValueError):
        spec = None if file else find_spec(module)
        file = spec.origin if spec is not None and spec.has_location else file
    if file:
        return Path(file)
    raise InputError(
        "module not found",
        where=module,
        remedy="Put it next to params.yaml, or install its package.",
    )


def _in_project(module: str) -> bool:
    """Whether `module`'s file is in the current folder, but not in site-packages."""
    top = module.partition(".")[0]
    if top == PACKAGE or top in sys.stdlib_module_names:
        return False
    # Search from the top, because looking for a module imports its parent packages.
    for name in (top, module):
        try:
            path = _project_file(name).resolve()
        except InputError:
            return False
        if not path.is_relative_to(Path.cwd()) or "site-packages" in path.parts:
            return False
    return True


def _imported_names(module: str) -> set[str]:
    """List the modules that `module` may import; `from a import b` gives a and a.b.

    For a name that a package exports to users, the result contains the module that
    defines the name.
    """
    names: set[str] = set()
    path = source_path(module)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = "." * node.level + (node.module or "")
            origin = resolve_name(parent, package) if node.level else parent
            names.add(origin)
            names.update(_defining_module(origin, alias.name) for alias in node.names)
    return names


def _defining_module(package: str, name: str) -> str:
    if package in _NAMES_FOR_USERS:
        modules = import_module(package)._MODULES  # noqa: SLF001 - our own table
        if name in modules:
            return f"{package}.{modules[name]}"
    return f"{package}.{name}"


def _libraries(module: str) -> set[str]:
    """List the top-level names of the libraries that `module` imports directly."""
    if _in_package(module):
        imported = _graph(EXCLUDED).find_modules_directly_imported_by(module)
    else:
        imported = {name for name in _imported_names(module) if not _in_project(name)}
    return {name.split(".")[0] for name in imported if not _in_package(name)}


def _parents(module: str) -> set[str]:
    """The parent packages of `module`."""
    return {module.rsplit(".", cut)[0] for cut in range(1, module.count(".") + 1)}


@cache
def code_only(path: Path) -> str:
    """Return the code in the file `path` in a normalised form, without explanations.

    Explanations are comments, docstrings, and the strings below attributes and
    constants.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED):
            code = [part for part in node.body if not _is_description(part)]
            node.body = code or [ast.Pass()]
    return ast.unparse(tree)


def _is_description(statement: ast.stmt) -> bool:
    """Whether the statement is a string that nothing reads, such as a docstring."""
    if not isinstance(statement, ast.Expr):
        return False
    value = statement.value
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


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

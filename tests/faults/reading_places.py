"""The functions of the package that read files, found in its source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "softmax_temperature"
SOURCE = Path(__file__).parents[2] / "src" / PACKAGE

_READING = re.compile(
    r"(^|\.)(open|read_text|read_bytes|safe_open|load_file|ZipFile|TarFile|ParquetFile|read_csv|read_table|read_parquet|"
    r"read_pickle|fromfile|memmap|genfromtxt|loadtxt|loadmat|is_zipfile|model_validate_json|literal_eval)$"
    r"|^(np|torch|json|pickle|joblib|nbformat|tarfile|tomllib)\.(load|loads|read|reads|open)$"
    r"|^YAML\(.*\)\.load$"
)
_OF_OUR_OWN = re.compile(r"^(os\.open|LogitsArchive\.open|read_csv|read_table|read_text)$")
"""Not a file's content, or a function of the package that is listed itself."""


def reading_places() -> set[str]:
    """`module.Class.function`, without the package's name, for each function that has the call of a reader in it."""
    return {place for path in SOURCE.rglob("*.py") for place in _places(path)}


def _places(path: Path) -> Iterator[str]:
    module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    yield from _below(ast.parse(path.read_text(encoding="utf-8")), module)


def _below(node: ast.AST, name: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if isinstance(child, ast.Call) and _reads(child):
            yield name
        yield from _below(child, f"{name}.{child.name}" if inside else name)  # type: ignore[attr-defined]


def _reads(call: ast.Call) -> bool:
    function = ast.unparse(call.func)
    constants = (node.value for each in call.args for node in ast.walk(each) if isinstance(node, ast.Constant))
    writes = any(value in ("w", "wb", "xb", "x", "ab") for value in constants)
    return bool(_READING.search(function)) and not _OF_OUR_OWN.match(function) and not writes

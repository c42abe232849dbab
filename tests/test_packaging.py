"""The files that say what to install agree with each other, and `make` sets up once."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Mapping
from importlib.metadata import packages_distributions, requires
from pathlib import Path
from typing import Any

import pytest
import torch
import torchvision.ops
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version
from ruamel.yaml import YAML

PYTHONS = ("3.11", "3.12", "3.13")
PLATFORMS = {
    "linux-x86_64": {"sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64"},
    "linux-aarch64": {"sys_platform": "linux", "platform_system": "Linux", "platform_machine": "aarch64"},
    "macos-arm64": {"sys_platform": "darwin", "platform_system": "Darwin", "platform_machine": "arm64"},
}
ENVIRONMENTS = {
    f"{name}-{python}": {
        **platform,
        "os_name": "posix",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "python_version": python,
        "python_full_version": f"{python}.9",
    }
    for name, platform in PLATFORMS.items()
    for python in PYTHONS
}
INSTALL_FILES = ("pyproject.toml", "requirements.lock", "environment.yml", "Makefile", ".pre-commit-config.yaml")
ADDRESS = re.compile(
    r"\w+://\S*|--(?:extra-)?index-url|--find-links|--trusted-host|\S+\.(?:org|com|net|io)\b\S*|\S*/simple\b\S*",
    re.IGNORECASE,
)

Project = dict[str, Any]
Lock = list[tuple[Requirement, list[str]]]  # Each pinned requirement with its hashes.


@pytest.fixture(scope="module")
def project(project_root: Path) -> Project:
    return tomllib.loads((project_root / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def lock(project_root: Path) -> Lock:
    return read_lock((project_root / "requirements.lock").read_text(encoding="utf-8"))


def read_lock(text: str) -> Lock:
    entries = re.findall(r"^([^\s#].*?) ?\\?\n((?: +.*\n)*)", text, flags=re.MULTILINE)
    return [(Requirement(head), re.findall(r"--hash=sha256:([0-9a-f]{64})\b", body)) for head, body in entries]


def pins(lock: Lock, environment: Mapping[str, str]) -> dict[str, list[Version]]:
    """The versions that one machine installs, by name."""
    found: dict[str, list[Version]] = defaultdict(list)
    for pinned, _ in lock:
        if pinned.marker is None or pinned.marker.evaluate(dict(environment)):
            found[canonicalize_name(pinned.name)].append(version_of(pinned))
    return found


def version_of(pinned: Requirement) -> Version:
    (only,) = pinned.specifier
    assert only.operator == "==", f"{pinned} is not pinned"
    return Version(only.version)


def direct_dependencies(project: Project) -> list[Requirement]:
    """What pyproject.toml asks for: the package, its extras and its build backend."""
    extras = project["project"]["optional-dependencies"].values()
    listed = [project["build-system"]["requires"], project["project"]["dependencies"], *extras]
    return [Requirement(text) for group in listed for text in group]


def test_every_line_of_the_lock_is_a_pin_with_hashes(lock: Lock) -> None:
    assert len(lock) > 100
    assert [str(pinned) for pinned, hashes in lock if not hashes] == []
    assert all(version_of(pinned) for pinned, _ in lock)


@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_every_direct_dependency_is_pinned_once_inside_its_range(
    project: Project, lock: Lock, environment: dict[str, str]
) -> None:
    pinned = pins(lock, environment)
    assert {name: versions for name, versions in pinned.items() if len(versions) != 1} == {}
    for wanted in direct_dependencies(project):
        (version,) = pinned[canonicalize_name(wanted.name)]
        assert version in wanted.specifier, f"{wanted} against {version}"


@pytest.mark.parametrize("name", INSTALL_FILES)
def test_install_files_hold_no_address(project_root: Path, name: str) -> None:
    assert ADDRESS.findall((project_root / name).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("folder", "extras"),
    [
        ("src", ("pipeline", "notebooks", "translation", "ray")),
        ("pipeline", ("pipeline",)),
        ("benchmarks", ("pipeline", "notebooks", "ray", "dev")),
        ("tests", ("pipeline", "notebooks", "translation", "ray", "dev")),
    ],
)
def test_every_import_is_a_declared_dependency(
    project: Project, project_root: Path, folder: str, extras: tuple[str, ...]
) -> None:
    optional = project["project"]["optional-dependencies"]
    listed = [*project["project"]["dependencies"], *(text for extra in extras for text in optional[extra])]
    declared = {canonicalize_name(Requirement(text).name) for text in listed}
    files = list((project_root / folder).rglob("*.py"))
    own = {"softmax_temperature", "benchmarks", "tests", *(path.stem for path in files)}
    own |= {"lightning", "transformers"}  # Their users have them: Cooling's callbacks import them when they are called.
    imported = {name for path in files for name in top_level_imports(path)} - sys.stdlib_module_names - own

    assert files
    sources = packages_distributions()
    assert {name for name in imported if not declared & {canonicalize_name(one) for one in sources[name]}} == set()


def top_level_imports(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    named = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and node.level == 0}
    return {name.split(".")[0] for name in plain | named}


def test_torchvision_and_torch_are_a_pair(lock: Lock) -> None:
    (locked,) = pins(lock, ENVIRONMENTS["linux-x86_64-3.11"])["torch"]
    (wish,) = [wish for wish in map(Requirement, requires("torchvision") or []) if wish.name == "torch"]
    assert locked in wish.specifier
    assert torch.__version__ in wish.specifier
    # Compiled operators load only beside the torch they were built for. Of two boxes that overlap the better one stays.
    boxes = torch.tensor([[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 1.9]])
    assert torchvision.ops.nms(boxes, torch.tensor([0.1, 0.9]), iou_threshold=0.5).tolist() == [1]


def test_python_range_agrees_everywhere(project: Project, project_root: Path) -> None:
    supported = SpecifierSet(project["project"]["requires-python"])
    conda = YAML(typ="safe").load((project_root / "environment.yml").read_text(encoding="utf-8"))
    (conda_python,) = [text for text in conda["dependencies"] if str(text).startswith("python")]

    assert SpecifierSet(conda_python.removeprefix("python")) == supported
    assert [version for version in ("3.10", *PYTHONS, "3.14") if version in supported] == list(PYTHONS)
    assert project["tool"]["mypy"]["python_version"] == PYTHONS[0]
    assert project["tool"]["ruff"]["target-version"] == f"py{PYTHONS[0].replace('.', '')}"


def test_conda_installs_from_the_lock_and_nothing_else(project_root: Path) -> None:
    conda = YAML(typ="safe").load((project_root / "environment.yml").read_text(encoding="utf-8"))
    others = [entry for entry in conda["dependencies"] if not str(entry).startswith("python")]
    assert others == ["pip", {"pip": ["-r requirements.lock"]}]


def test_make_lists_every_target(project_root: Path) -> None:
    text = (project_root / "Makefile").read_text(encoding="utf-8")
    (declared,) = re.findall(r"^\.PHONY: (.*)$", text, flags=re.MULTILINE)
    listed = re.findall(r"^make ([\w-]+) +\S", make("--silent", folder=project_root), flags=re.MULTILINE)
    assert sorted(listed) == sorted(declared.split())


@pytest.fixture
def set_up_checkout(project_root: Path, tmp_path: Path) -> Path:
    """A checkout in a path with a space, with an environment that is younger than what it was made from."""
    checkout = tmp_path / "my checkout"
    (checkout / ".venv").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copy(project_root / name, checkout)
        os.utime(checkout / name, (1_000_000, 1_000_000))
    (checkout / ".venv" / ".installed").touch()
    return checkout


@pytest.mark.parametrize("target", ["repro", "test", "lint"])
def test_make_sets_nothing_up_again(set_up_checkout: Path, target: str) -> None:
    assert "pip install" not in make("--dry-run", target, folder=set_up_checkout)


@pytest.mark.parametrize("changed", ["requirements.lock", "pyproject.toml"])
def test_make_sets_up_again_when_what_to_install_changed(set_up_checkout: Path, changed: str) -> None:
    os.utime(set_up_checkout / changed, (4_000_000_000, 4_000_000_000))
    assert "pip install" in make("--dry-run", "test", folder=set_up_checkout)


def make(*arguments: str, folder: Path) -> str:
    # A make above this one would pass its own options down.
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
    command = [shutil.which("make") or "make", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout

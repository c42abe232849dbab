"""The files that pin dependencies agree; `make` sets up the environment only once."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import defaultdict
from importlib.metadata import (
    PackageNotFoundError,
    packages_distributions,
    requires,
)
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

from softmax_temperature.tools import locked
from softmax_temperature.tools.locked import needed, read_pins
from tests.conftest import ROOT
from tests.profiles import rendered

PYTHONS = ("3.11", "3.12", "3.13")
PLATFORMS = {
    "linux-x86_64": {
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": "x86_64",
    },
    "linux-aarch64": {
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": "aarch64",
    },
    "macos-arm64": {
        "sys_platform": "darwin",
        "platform_system": "Darwin",
        "platform_machine": "arm64",
    },
}
PYTHON = {
    "os_name": "posix",
    "implementation_name": "cpython",
    "platform_python_implementation": "CPython",
}
# Matches a host, a URL with a scheme, or a pip option that names a host.
ADDRESS = re.compile(
    r"\w+:/{2}\S*|--\S*(?:index|links|host)\S*|\S+[.](?:org|com|net|io)\b\S*",
    re.IGNORECASE,
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DEPENDENCIES, EXTRAS = (
    PROJECT["project"]["dependencies"],
    PROJECT["project"]["optional-dependencies"],
)
CONDA: dict[str, Any] = YAML(typ="safe").load(
    (ROOT / "environment.yml").read_text(encoding="utf-8")
)
# Pairs of a pinned requirement and its hashes.
LOCK = [
    (Requirement(head), re.findall(r"--hash=sha256:([0-9a-f]{64})\b", body))
    for head, body in re.findall(
        r"^([^\s#].*?) ?\\?\n((?: +.*\n)*)",
        (ROOT / "requirements.lock").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
]


def pins(platform: str, python: str) -> dict[str, list[Version]]:
    """The versions that a machine with this platform and Python installs, keyed by
    name.
    """
    environment = (
        PLATFORMS[platform]
        | PYTHON
        | {"python_version": python, "python_full_version": f"{python}.9"}
    )
    found: dict[str, list[Version]] = defaultdict(list)
    for pinned, _ in LOCK:
        if pinned.marker is None or pinned.marker.evaluate(dict(environment)):
            found[canonicalize_name(pinned.name)].append(version_of(pinned))
    return found


def version_of(pinned: Requirement) -> Version:
    (only,) = pinned.specifier
    assert only.operator == "==", f"{pinned} is not pinned"
    return Version(only.version)


def test_every_line_of_the_lock_is_a_pin_with_hashes() -> None:
    assert len(LOCK) > 100
    assert all(version_of(pinned) and hashes for pinned, hashes in LOCK)
    # Allow nothing else in the lock, so that no line can choose a download address.
    pin, digest, comment = (
        r"[\w.-]+==\S+( ; .+)? \\",
        r" +--hash=sha256:[0-9a-f]{64}( \\)?",
        r" +#( via)?( [\w.() -]+)?",
    )
    known = re.compile(f"{pin}|{digest}|{comment}")
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not known.fullmatch(line)] == []


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_direct_dependency_is_pinned_once_inside_its_range(
    platform: str, python: str
) -> None:
    pinned = pins(platform, python)
    assert {
        name: versions for name, versions in pinned.items() if len(versions) != 1
    } == {}
    for text in [
        *PROJECT["build-system"]["requires"],
        *DEPENDENCIES,
        *(text for texts in EXTRAS.values() for text in texts),
    ]:
        wanted = Requirement(text)
        (version,) = pinned[canonicalize_name(wanted.name)]
        assert version in wanted.specifier, f"{wanted} against {version}"


@pytest.mark.parametrize(
    "name",
    [
        "pyproject.toml",
        "requirements.lock",
        "environment.yml",
        "Makefile",
        ".pre-commit-config.yaml",
    ],
)
def test_install_files_contain_no_address(name: str) -> None:
    assert ADDRESS.findall((ROOT / name).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("folder", "extras"),
    [
        ("src", ("pipeline", "notebooks", "weights", "translation", "ray")),
        ("pipeline", ("pipeline",)),
        ("benchmarks", ("pipeline", "notebooks", "ray", "dev")),
        ("tests", ("pipeline", "notebooks", "translation", "ray", "dev")),
    ],
)
def test_every_import_is_a_declared_dependency(
    folder: str, extras: tuple[str, ...]
) -> None:
    listed = [*DEPENDENCIES, *(text for extra in extras for text in EXTRAS[extra])]
    declared = {canonicalize_name(Requirement(text).name) for text in listed}
    files = list((ROOT / folder).rglob("*.py"))
    own = {"softmax_temperature", "benchmarks", "tests", *(path.stem for path in files)}
    own |= {
        "lightning",
        "transformers",
    }  # Cooling's callbacks import these, and only when they are called.
    imported = (
        {name for path in files for name in top_level_imports(path)}
        - sys.stdlib_module_names
        - own
    )

    assert files
    sources = packages_distributions()
    assert {
        name
        for name in imported
        if not declared & {canonicalize_name(one) for one in sources[name]}
    } == set()


def top_level_imports(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    plain = {
        alias.name
        for node in nodes
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    named = {
        node.module or ""
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.level == 0
    }
    return {name.split(".")[0] for name in plain | named}


ROOMS = (  # Each entry may import those before it; `__init__` may import all.
    *(
        "data.seeds",
        "runner",
        "params",
        "metrics",
        "losses",
        "scaling",
        "dataset_statistics",
        "cosine_classifier",
    ),
    *(
        "heuristic",
        "cooling",
        "early_learning",
        "data",
        "networks",
        "training",
        "stages",
        "papers.shared",
        "papers",
    ),
    "tools",
)


def test_no_room_imports_one_above_it() -> None:
    source = ROOT / "src"
    modules = {
        path: ".".join(path.relative_to(source).with_suffix("").parts)
        for path in source.rglob("*.py")
    }
    del modules[source / "softmax_temperature" / "__init__.py"]
    imports = (
        (module, name)
        for path, module in modules.items()
        for name in module_level_imports(path)
    )
    own = (
        each
        for each in imports
        if each[1].startswith("softmax_temperature.") and "__version__" not in each[1]
    )
    assert [
        f"{module} imports {name}"
        for module, name in own
        if room_of(name) > room_of(module)
    ] == []


def room_of(module: str) -> int:
    inside = module.removeprefix("softmax_temperature.") + "."
    return ROOMS.index(
        max((room for room in ROOMS if inside.startswith(f"{room}.")), key=len)
    )


def module_level_imports(path: Path) -> list[str]:
    """Imports at a module's top level, with the names imported from each package."""
    found: list[str] = []
    rest: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while rest:
        node = rest.pop()
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            rest += ast.iter_child_nodes(node)
    return found


def test_torchvision_and_torch_are_a_pair() -> None:
    (locked,) = pins("linux-x86_64", "3.11")["torch"]
    (wish,) = [
        wish
        for wish in map(Requirement, requires("torchvision") or [])
        if wish.name == "torch"
    ]
    assert locked in wish.specifier
    assert torch.__version__ in wish.specifier
    # Compiled operators load only with the torch version that they were built for. Of
    # two overlapping boxes, the operator keeps the box with the better score.
    boxes = torch.tensor([[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 1.9]])
    assert torchvision.ops.nms(
        boxes, torch.tensor([0.1, 0.9]), iou_threshold=0.5
    ).tolist() == [1]


def test_python_range_agrees_everywhere_and_conda_installs_only_from_the_lock() -> None:
    supported = SpecifierSet(PROJECT["project"]["requires-python"])
    python, *others = CONDA["dependencies"]
    assert SpecifierSet(python.removeprefix("python")) == supported
    assert others == ["pip", {"pip": ["-r requirements.lock"]}]
    assert [
        version for version in ("3.10", *PYTHONS, "3.14") if version in supported
    ] == list(PYTHONS)
    assert PROJECT["tool"]["mypy"]["python_version"] == PYTHONS[0]
    assert (
        PROJECT["tool"]["ruff"]["target-version"] == f"py{PYTHONS[0].replace('.', '')}"
    )


def test_make_lists_every_target() -> None:
    (declared,) = re.findall(
        r"^\.PHONY: (.*)$",
        (ROOT / "Makefile").read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
    listed = re.findall(
        r"^make ([\w-]+) +\S", make("--silent", folder=ROOT), flags=re.MULTILINE
    )
    assert sorted(listed) == sorted(declared.split())


@pytest.mark.parametrize("target", ["repro", "test", "lint"])
@pytest.mark.parametrize("changed", [None, "requirements.lock", "pyproject.toml"])
def test_make_sets_up_again_only_when_what_to_install_changed(
    target: str, changed: str | None, tmp_path: Path
) -> None:
    checkout = tmp_path / "my checkout"
    (checkout / ".venv").mkdir(parents=True)
    (checkout / ".venv" / ".installed").touch()
    (checkout / ".venv" / ".installed-all").touch()
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, checkout)
        os.utime(
            checkout / name, 2 * (4_000_000_000 if name == changed else 1_000_000,)
        )
    assert ("-m venv" in make("--dry-run", target, folder=checkout)) is (
        changed is not None
    )


@pytest.mark.parametrize(
    ("target", "installs"), [("repro", False), ("report", False), ("test", True)]
)
def test_only_the_tests_and_checks_install_all_extras(
    target: str, installs: bool, tmp_path: Path
) -> None:
    (tmp_path / ".venv").mkdir()
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path)
        os.utime(tmp_path / name, (1_000_000, 1_000_000))
    (tmp_path / ".venv" / ".installed").touch()
    commands = make("--dry-run", target, folder=tmp_path)
    assert "-m venv" not in commands
    assert ("dev translation ray > .venv/wanted.lock" in commands) is installs


def closure(names: set[str]) -> set[str]:
    """All direct and indirect requirements on this machine, from packages' metadata."""
    found: set[str] = set()
    rest = set(names)
    while rest:
        name = rest.pop()
        found.add(name)
        try:
            texts = requires(name) or []
        except PackageNotFoundError:
            continue
        for requirement in map(Requirement, texts):
            is_needed = requirement.marker is None or requirement.marker.evaluate(
                {"extra": ""}
            )
            if is_needed:
                rest |= {canonicalize_name(requirement.name)} - found
    return found


LIGHT = ("pipeline", "notebooks", "weights")
HEAVY = {"ray", "sacrebleu", "transformers", "lightning", "mypy", "pytest", "mkdocs"}


def test_the_lines_for_all_extras_are_the_whole_lock() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pins = read_pins(text)
    assert "".join(pin.text for pin in pins) == text
    assert needed(pins, PROJECT, EXTRAS) == pins


def test_the_lines_for_some_extras_include_all_that_they_require() -> None:
    pins = read_pins((ROOT / "requirements.lock").read_text(encoding="utf-8"))
    names = {pin.name for pin in needed(pins, PROJECT, LIGHT)}
    listed = [*DEPENDENCIES, *(text for extra in LIGHT for text in EXTRAS[extra])]
    direct = {canonicalize_name(Requirement(text).name) for text in listed}
    assert closure(direct) - names == set()
    assert not names & HEAVY


def test_an_unknown_extra_or_a_line_without_a_pin_is_refused() -> None:
    with pytest.raises(SystemExit, match="no extra 'gpu'"):
        needed([], PROJECT, ["gpu"])
    with pytest.raises(SystemExit, match="not a pin: torch>=2"):
        read_pins("torch>=2\n")


def test_a_cpu_build_of_the_pinned_torch_stays_and_cuda_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pins = read_pins((ROOT / "requirements.lock").read_text(encoding="utf-8"))
    pinned = {pin.name: pin.version for pin in pins}

    def named(ending: str) -> set[str]:
        monkeypatch.setattr(locked, "version", lambda name: pinned[name] + ending)
        locked.main(LIGHT)
        return {pin.name for pin in read_pins(capsys.readouterr().out)}

    whole = named("")
    # A version other than the pinned one is replaced.
    assert named(".post1+cpu") == whole
    left_out = whole - named("+cpu")
    assert {"torch", "torchvision", "triton", "nvidia-cublas"} <= left_out
    torch_alone = {canonicalize_name(Requirement(text).name) for text in DEPENDENCIES}
    assert left_out & (torch_alone | {"jinja2", "sympy", "networkx"}) == {"torch"}


def make(*arguments: str, folder: Path) -> str:
    # If these variables were kept, an outer make would pass its options to this make.
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("MAKE", "MFLAGS"))
    }
    command = [shutil.which("make") or "make", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_make_repro_ends_with_its_report_and_its_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Make runs the real recipe, with one-line programs in place of DVC and the
    project's command.
    """
    for name in ("Makefile", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path)
    text, _ = rendered("smoke")
    (tmp_path / "params.yaml").write_text(text, encoding="utf-8")
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name, line in {
        "dvc": "echo ran",
        "softmax-temperature": "echo judged",
        "python": f'exec "{sys.executable}" "$@"',
    }.items():
        program = programs / name
        program.write_text(f"#!/bin/sh\n{line}\n")
        program.chmod(0o755)
    (tmp_path / ".git").touch()
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    printed = make("repro", "READY=", folder=tmp_path)
    last = [line for line in printed.splitlines() if line][-3:]
    assert last == ["ran", "The report: results/smoke/index.html", "judged"]

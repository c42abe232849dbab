"""The closure follows imports; its digest depends on code, but not on comments."""

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import packages_distributions, version
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from softmax_temperature.params.implementations import NETWORKS
from softmax_temperature.runner import fingerprint
from softmax_temperature.runner.fingerprint import (
    EXCLUDED,
    PACKAGE,
    code_only,
    import_closure,
    source_path,
)
from softmax_temperature.stages.cooling import train_cooling
from softmax_temperature.stages.early_learning import early_learning
from softmax_temperature.stages.focal import train_focal
from tests.conftest import ROOT
from tests.profiles import profile

STAGES = sorted(
    f"{PACKAGE}.stages.{path.stem}"
    for path in source_path(f"{PACKAGE}.stages").parent.glob("[a-z]*.py")
)
DIGEST = (
    "from softmax_temperature.runner.fingerprint import code_digest; "
    "print(code_digest('{}'))"
)


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


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The folder of a copy of the package, which tests may edit."""
    # Copy the bytecode too; otherwise Python would compile the modules again.
    copytree(source_path(PACKAGE).parent, tmp_path / PACKAGE)
    return tmp_path


Printed = Callable[..., str]


@pytest.fixture(scope="module")
def printed() -> Printed:
    """A function that runs code with the package in a folder, and returns the code's
    output.
    """

    def run(package: Path, code: str, *arguments: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env={"PYTHONPATH": str(package)},
            text=True,
            capture_output=True,
            check=True,
        ).stdout

    return run


def test_the_digest_depends_on_scientific_code_but_not_on_runner_params_or_words(
    package: Path, printed: Printed
) -> None:
    code = DIGEST.format(f"{PACKAGE}.stages.classifier_temperature")
    before = printed(package, code)
    for room in ("runner/cells.py", "params/shared.py", "papers/shared/sources.py"):
        with (package / PACKAGE / room).open("a") as file:
            file.write("\nADDED = 1\n")
    trainer = package / PACKAGE / "cosine_classifier/trainer.py"
    trainer.write_text(
        trainer.read_text().replace('"""', '# Why.\n"""In other words: ', 1)
    )
    assert printed(package, code) == before
    trainer.write_text(f"{trainer.read_text()}\nADDED = 1\n")
    assert printed(package, code) != before


def test_a_description_of_an_attribute_is_not_code(tmp_path: Path) -> None:
    plain = "LIMIT = 3\nclass Box:\n    size: int\n    def area(self): return 'm2'\n"
    described = plain.replace("3\n", '3\n"""At most."""\n').replace(
        "int\n", 'int\n    """In metres."""\n'
    )
    paths = [tmp_path / "plain.py", tmp_path / "described.py", tmp_path / "unit.py"]
    for path, text in zip(
        paths, (plain, described, described.replace("m2", "cm2")), strict=True
    ):
        path.write_text(text)
    codes = [code_only(path) for path in paths]
    assert codes[0] == codes[1]
    assert codes[1] != codes[2]


DIGESTS = """
import json, sys
from pathlib import Path
from softmax_temperature.params import validate
from softmax_temperature.runner.artifacts import digest_of
from softmax_temperature.runner.loading import uncollected
from softmax_temperature.tools.profiles import render_profile
from softmax_temperature.stages import REGISTRY, stages_of


def digests(profiles, arms):
    content = render_profile("smoke", profiles)[1].model_dump()
    content["focal"]["arms"] |= arms
    content["focal"]["tasks"]["digits"]["arms"] = None
    params = validate(content, where="smoke")
    cells = {}
    for program in dict.fromkeys(entry.program for entry in REGISTRY):
        with uncollected():
            stages = stages_of(program)
        for stage in stages:
            for cell in stage.cells(params):
                parts = [cell.parameters, cell.code(), sorted(map(str, cell.inputs))]
                cells[f"{stage.name}/{cell.name}"] = digest_of(parts)
    return cells
"""
CELLS = f"""{DIGESTS}
print(json.dumps(digests(Path(sys.argv[1]), json.loads(sys.argv[2]))))
"""
POLY = """
from softmax_temperature.losses.base import SampleLoss
from softmax_temperature.losses.probabilities import log_prob_and_complement


class PolyLoss(SampleLoss):
    def losses(self, logits, labels, epoch):
        log_true, log_others = log_prob_and_complement(logits, labels)
        return -log_true + log_others.exp()
"""
ENTRY = '"poly": "softmax_temperature.losses.poly:PolyLoss",'


Cells = Callable[..., dict[str, str]]


@pytest.fixture(scope="module")
def cells(printed: Printed) -> Cells:
    """A function that computes the digests of profile `smoke`, without the data's."""

    def run(package: Path, arms: str = "{}") -> dict[str, str]:
        text = printed(package, CELLS, str(ROOT / "profiles"), arms)
        content: dict[str, str] = json.loads(text)
        return content

    return run


@pytest.fixture(scope="module")
def before() -> dict[str, str]:
    """The digests of the cells with the unchanged package, which is imported here."""
    names: dict[str, Any] = {}
    exec(compile(DIGESTS, "digests", "exec"), names)  # noqa: S102 - our own text
    found: dict[str, str] = names["digests"](ROOT / "profiles", {})
    return found


REGISTERED = """REGISTRY = (
    Registration(
        name="count",
        program="count",
        module="count",
        paper=None,
        output=Path("data/count"),
    ),
"""
STAGE = """
from softmax_temperature.stages import stage


@stage
def count(params):
    return []
"""


def test_a_new_loss_or_stage_and_an_edited_loss_make_only_their_own_cells_stale(
    package: Path, cells: Cells, before: dict[str, str]
) -> None:
    stages = package / PACKAGE / "stages"
    (stages / "count.py").write_text(STAGE)
    registry = stages / "__init__.py"
    text = registry.read_text()
    changed = text.replace("REGISTRY = (\n", REGISTERED, 1)
    assert changed != text
    registry.write_text(changed)
    losses = package / PACKAGE / "losses"
    (losses / "poly.py").write_text(POLY)
    table = package / PACKAGE / "params/implementations.py"
    text = table.read_text()
    table.write_text(text.replace("LOSSES = {", f"LOSSES = {{{ENTRY}", 1))
    with (losses / "mmce_loss.py").open("a") as file:
        file.write("\nADDED = 1\n")
    after = cells(package, '{"Poly": {"loss": "poly"}}')
    assert len(before) > 150
    assert {name.rpartition("/")[0] for name in after.keys() - before.keys()} == {
        "train_focal/digits/Poly",
        "evaluate_focal/digits/Poly",
    }
    different = {name for name in before if after[name] != before[name]}
    assert {name.rpartition("/")[0] for name in different} == {
        "train_focal/digits/MMCE",
        "train_focal/digits/MMCE-written",
    }


def test_an_edited_network_is_part_of_the_code_of_only_the_cells_that_name_it() -> None:
    smoke = profile("smoke")
    vgg = NETWORKS["vgg"]
    for stage in (train_cooling, train_focal, early_learning):
        for cell in stage.cells(smoke):
            named = cell.parameters["network"]["architecture"] == "vgg"
            assert (vgg in cell.code()) == named
            closure = import_closure(cell.run.__module__)
            assert f"{PACKAGE}.networks.vgg" not in closure


def test_cells_import_no_code_through_the_packages_that_offer_names_to_users() -> None:
    graph = fingerprint._graph(frozenset())
    for package in fingerprint._NAMES_FOR_USERS - {PACKAGE}:
        assert graph.find_modules_that_directly_import(package) == set()

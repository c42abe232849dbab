"""A project of three stages that DVC runs in a second: an artifact, one made from it, and a table in results/."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ENVIRONMENT = {
    **os.environ,
    "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    "PYTHONPATH": os.pathsep.join(sys.path),
    "DVC_NO_ANALYTICS": "1",
}
HEAD = """
from pathlib import Path
from softmax_temperature.runner.artifacts import new_artifact, open_artifact, write_json, write_text
from softmax_temperature.stages.programs import exit_code
"""
PROGRAMS = {
    "make_numbers.py": """
def work():
    with new_artifact(Path("data/numbers"), kind="numbers", about={}) as output:
        write_json(output / "some.json", list(range(100)))
        (output / "more").mkdir()
        write_json(output / "more" / "others.json", list(range(100, 200)))
""",
    "make_squares.py": """
def work():
    numbers = open_artifact(Path("data/numbers"), kind="numbers").json("some.json")
    with new_artifact(Path("data/squares"), kind="squares", about={}) as output:
        write_json(output / "squares.json", [number**2 for number in numbers])
""",
    "make_table.py": """
def work():
    squares = open_artifact(Path("data/squares"), kind="squares").json("squares.json")
    write_text(Path("results/toy/tables/squares.csv"), "square\\n" + "".join(f"{square}\\n" for square in squares))
""",
}
GRAPH = """
stages:
  numbers:
    cmd: python make_numbers.py
    deps: [make_numbers.py]
    outs:
      - data/numbers: {persist: true}
  squares:
    cmd: python make_squares.py
    deps: [make_squares.py, data/numbers]
    outs:
      - data/squares: {persist: true}
  table:
    cmd: python make_table.py
    deps: [make_table.py, data/squares]
    outs:
      - results/toy/tables: {cache: false}
"""


def make(folder: Path) -> Path:
    """A project that was not run; each program says on standard error that it runs."""
    folder.mkdir(parents=True)
    for name, work in PROGRAMS.items():
        said = f"import sys; print('RUN {name}', file=sys.stderr)"
        (folder / name).write_text(f"{HEAD}{work}\n{said}\nsys.exit(exit_code(work))\n")
    (folder / "dvc.yaml").write_text(GRAPH)
    (folder / ".dvc").mkdir()
    (folder / ".dvc" / "config").write_text(
        "[core]\n    no_scm = true\n    analytics = false\n    check_update = false\n"
    )
    return folder


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command in the project."""
    return subprocess.run(words, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False)


def dvc(folder: Path, *words: str) -> str:
    """A command of DVC that has to go through; returns what it and the stages said."""
    done = run(folder, sys.executable, "-m", "dvc", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def contents(folder: Path) -> dict[str, bytes]:
    """All that the stages and DVC have made."""
    parts = ("data", "results", ".dvc/cache")
    paths = (path for part in parts for path in sorted((folder / part).rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}

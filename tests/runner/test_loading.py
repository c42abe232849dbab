"""Programs import without the garbage collector and declare cells without a compiler.

Each program of a stage starts in a process of its own, so its start is most of its
time.
"""

import gc
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from softmax_temperature.runner.loading import uncollected
from tests.conftest import ROOT

# The smoke profile has every kind of network that a study declares.
DECLARES = """
import gc, sys
sys.path.insert(0, sys.argv[1])
import own_source
from pathlib import Path
from softmax_temperature.tools.profiles import render_profile
from softmax_temperature.tools.programs import run_program

assert not gc.isenabled()

def work():
    assert gc.isenabled()
    assert gc.get_freeze_count() > 10_000
    from softmax_temperature.runner.loading import undrawn
    from softmax_temperature.stages.focal import train_focal

    smoke = render_profile("smoke", Path(sys.argv[2]))[1]
    with undrawn():
        assert train_focal.cells(smoke)
    assert "torch._dynamo" not in sys.modules

sys.exit(run_program(work, None, arguments=[]))
"""


def test_a_program_works_with_the_collector_and_declares_without_the_compiler() -> None:
    folders = [str(ROOT / "pipeline"), str(ROOT / "profiles")]
    done = subprocess.run(
        [sys.executable, "-c", DECLARES, *folders],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_collector_is_off_in_the_block_and_leaves_what_was_imported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "imported_here.py").write_text("OBJECTS = [[] for _ in range(100)]\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = gc.get_freeze_count()
    with uncollected():
        assert not gc.isenabled()
        import_module("imported_here")
    assert gc.isenabled()
    assert gc.get_freeze_count() > before + 100
    before = gc.get_freeze_count()
    with pytest.raises(ImportError), uncollected():
        import_module("no_such_module")
    assert gc.isenabled()
    # Nothing was imported, so a test's own objects are still collected.
    assert gc.get_freeze_count() <= before

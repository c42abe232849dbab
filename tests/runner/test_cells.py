"""Cells run once, fail separately, and publish exactly what they declared."""

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from softmax_temperature.data.seeds import seed_of
from softmax_temperature.runner import cells as cells_module
from softmax_temperature.runner import distributed
from softmax_temperature.runner.artifacts import (
    ArtifactError,
    new_artifact,
    open_artifact,
    write_json,
)
from softmax_temperature.runner.cells import (
    Cell,
    CellsFailed,
    Job,
    alone,
    fingerprint,
    run_cells,
)
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.timing import read_timing
from tests.serial import SERIAL

OUTPUT = Path("data/squares")


def square(job: Job, number: int) -> None:
    """Write the square of a number, and append a line to a log outside of the cell."""
    if number == 3:
        raise ZeroDivisionError("three")
    if number == 4:
        raise InputError(
            "wrong number", where=f"{number} in {job.work}", remedy="Take another."
        )
    with Path("log.txt").open("a") as log:
        log.write(f"{number}\n")
    write_json(job.output / "square.json", {"square": number**2, "seed": job.seed})


def copy_input(job: Job, **_: int) -> None:
    write_json(job.output / "copy.json", job.inputs["source"].json("source.json"))


def log() -> list[int]:
    return [int(line) for line in Path("log.txt").read_text().split()]


def run(*numbers: int) -> None:
    cells = [Cell(f"n-{number}", square, {"number": number}) for number in numbers]
    run_cells(cells, output=OUTPUT, compute=SERIAL, seed=0)


def source(value: int) -> dict[str, Path]:
    with new_artifact(Path("data/source"), kind="source", about={}) as output:
        write_json(output / "source.json", {"value": value})
    return {"source": Path("data/source")}


def test_finished_cells_do_not_run_again_and_the_output_holds_what_is_declared() -> (
    None
):
    run(1, 2)
    before = open_artifact(OUTPUT / "n-2").digest
    run(1, 2)
    assert log() == [1, 2]
    run(2, 5)
    assert log() == [1, 2, 5]
    assert open_artifact(OUTPUT / "n-2").digest == before
    assert {path.name for path in OUTPUT.iterdir()} == {"n-2", "n-5"}
    with pytest.raises(ValueError, match="not unique"):
        run(1, 1)


def test_a_failed_cell_stops_no_other_and_only_it_runs_again() -> None:
    for _ in range(2):
        with pytest.raises(CellsFailed, match="2 of 4 cells failed") as caught:
            run(1, 3, 4, 5)
        assert log() == [1, 5]
        assert not OUTPUT.exists()
    assert list(caught.value.failures) == ["n-3", "n-4"]
    assert (
        "ZeroDivisionError: three (trace: data/cells/squares/n-3/"
        in caught.value.failures["n-3"]
    )
    assert caught.value.failures["n-4"].endswith("wrong number. Take another.")


def continue_at(job: Job, form: str) -> None:
    """Continue from the number that the saved state has under the key `form`."""
    checkpointer = job.checkpointer()
    done = 0

    def restore(state: dict[str, int]) -> None:
        nonlocal done
        done = state[form]

    checkpointer.resume(restore)
    checkpointer.save_if_due(lambda: {form: 5})
    if Path("stop").exists():
        raise KeyboardInterrupt
    write_json(job.output / "done.json", done)


def test_a_checkpoint_that_its_cell_cannot_use_is_set_aside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run_with(form: str) -> None:
        # Simulate a code change that the fingerprint misses.
        cell = Cell("n", continue_at, {"form": form})
        monkeypatch.setattr(cells_module, "fingerprint", lambda *_: "f" * 64)
        run_cells([cell], output=OUTPUT, compute=SERIAL, seed=0)

    Path("stop").touch()
    with pytest.raises(KeyboardInterrupt):
        run_with("steps")
    Path("stop").unlink()
    run_with("epochs")
    assert open_artifact(OUTPUT / "n").json("done.json") == 0
    (aside,) = cells_module.WORK.rglob("checkpoint.pt.damaged")
    assert aside.is_file()


@pytest.mark.parametrize("name", ["square.json", "manifest.json", "timing.json"])
def test_a_flipped_bit_is_detected_and_the_next_run_repairs_it(name: str) -> None:
    run(1)
    expected = (OUTPUT / "n-1" / "square.json").read_bytes()
    (path,) = cells_module.WORK.rglob(
        name
    )  # Published files are hard links to this file.
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    if name == "timing.json":
        assert read_timing(path.parent) is None
    run(1)
    assert (OUTPUT / "n-1" / "square.json").read_bytes() == expected
    assert log() == ([1] if name == "timing.json" else [1, 1])


def test_a_damaged_input_fails_the_cell_and_a_missing_one_the_stage() -> None:
    cell = Cell("copy", copy_input, {"number": 0}, source(1))
    Path("data/source/source.json").write_text("{}")
    with pytest.raises(CellsFailed, match=r"data/source/source\.json: damaged"):
        run_cells([cell], output=OUTPUT, compute=SERIAL, seed=0)
    Path("data/source/manifest.json").unlink()
    with pytest.raises(ArtifactError, match="data/source: missing or incomplete"):
        run_cells([cell], output=OUTPUT, compute=SERIAL, seed=0)


def test_fingerprint_depends_on_parameters_inputs_seed_and_function() -> None:
    base = Cell("a", square, {"number": 1}, source(1))
    prints = {fingerprint(base, 0), fingerprint(base, 1)}
    prints.add(fingerprint(Cell("a", square, {"number": 2}, base.inputs), 0))
    prints.add(fingerprint(Cell("a", copy_input, {"number": 1}, base.inputs), 0))
    source(2)
    prints.add(fingerprint(base, 0))
    assert len(prints) == 5


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (MemoryError(), True),
        (RuntimeError("CUBLAS_STATUS_ALLOC_FAILED"), True),
        (RuntimeError("shapes differ"), False),
    ],
)
def test_a_cell_that_runs_out_of_memory_says_what_to_lower(
    error: Exception, remedy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(cells_module, "_run", fail)
    with pytest.raises(CellsFailed) as caught:
        run(1)
    assert ("Lower compute.workers or the batch size" in str(caught.value)) is remedy
    assert f"{type(error).__name__}: {error}" in str(caught.value)


def test_a_second_process_waits_for_a_lock_and_says_so() -> None:
    program = (
        "from pathlib import Path; from softmax_temperature.runner.cells import alone\n"
    )
    program += "with alone(Path('a')): print('mine')"
    with alone(Path("a")):
        command = [sys.executable, "-c", program]
        other = subprocess.Popen(
            command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert other.stderr is not None
        assert (
            "a: another process is using this folder; waiting"
            in other.stderr.readline()
        )
        assert other.poll() is None
    assert other.communicate(timeout=60)[0] == "mine\n"


def test_a_seed_is_the_digest_of_where_it_is_used() -> None:
    # The expected seed comes from the output of `printf 0/s/a | sha256sum`.
    assert seed_of(0, "s", "a") == 0xF52E7C21BA19E36D >> 1 != seed_of(0, "s", "b")


def test_a_pulled_run_continues_from_its_published_results() -> None:
    run(1, 2)
    expected = open_artifact(OUTPUT / "n-1").digest
    shutil.rmtree(cells_module.WORK)
    run(1, 2, 5)
    assert log() == [1, 2, 5], "1 or 2 ran again"
    assert open_artifact(OUTPUT / "n-1").digest == expected
    assert read_timing(OUTPUT / "n-1") is None


def test_published_results_that_are_damaged_or_of_another_fingerprint_run_again() -> (
    None
):
    run(1, 2)
    shutil.rmtree(cells_module.WORK)
    (OUTPUT / "n-1" / "square.json").write_text("{}")
    run(1, 2)
    assert log() == [1, 2, 1]
    shutil.rmtree(cells_module.WORK)
    (OUTPUT / "n-1").rename(OUTPUT / "n-5")
    run(5, 2)
    assert log() == [1, 2, 1, 5]


def test_results_that_are_links_into_a_cache_are_copied() -> None:
    run(1)
    shutil.rmtree(cells_module.WORK)
    cached = Path("cached.json")
    published = OUTPUT / "n-1" / "square.json"
    published.rename(cached)
    published.symlink_to(cached.resolve())
    run(1)
    cached.unlink()
    assert open_artifact(OUTPUT / "n-1").problems() == []
    assert log() == [1]


def test_a_rank_without_a_world_runs_its_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    # Run the module once more, because it reads the variables when it is imported.
    assert not runpy.run_path(distributed.__file__)["is_follower"]()
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert runpy.run_path(distributed.__file__)["is_follower"]()

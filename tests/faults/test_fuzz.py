"""Whatever stands in a file, reading it gives what it says, or the documented error on one line: nothing else."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings

from softmax_temperature.runner.errors import InputError
from tests.faults.readers import READERS, TRUSTED
from tests.faults.readers.reader import Reader
from tests.faults.reading_places import PACKAGE, reading_places

pytestmark = [
    # These go on after what they warn of; whether they were right to is seen in what comes out.
    pytest.mark.filterwarnings("ignore::UserWarning:PIL", "ignore::PIL.Image.DecompressionBombWarning"),
    pytest.mark.filterwarnings("ignore:Detected pickle protocol:UserWarning"),
    pytest.mark.filterwarnings("ignore::ruamel.yaml.error.ReusedAnchorWarning"),
    pytest.mark.filterwarnings("ignore:Your element with mimetype:UserWarning"),
    pytest.mark.filterwarnings("ignore:Reading `.npy` or `.npz` file required additional header parsing:UserWarning"),
]

MEMORY = 8 * 2**30
"""Bytes of addresses beyond those in use: a file of some bytes must not ask for more."""
INPUTS, SOAKED = 400, 100_000
"""How many inputs all readers together are given, at least."""
FEWEST = 5
"""Inputs of the slowest reader."""


def test_every_reader_is_fuzzed_or_trusted_for_a_reason() -> None:
    fuzzed = {place for reader in READERS.values() for place in reader.places}
    assert fuzzed | TRUSTED.keys() == reading_places()
    assert not fuzzed & TRUSTED.keys()
    assert all(TRUSTED.values())


@pytest.mark.parametrize("name", READERS)
def test_valid_content_is_read_where_the_list_says(tmp_path: Path, name: str) -> None:
    entered: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith(f"{PACKAGE}."):
            entered.add(f"{module.removeprefix(f'{PACKAGE}.')}.{frame.f_code.co_qualname}")

    for number, content in enumerate(READERS[name].seeds()):
        (tmp_path / str(number)).mkdir()
        sys.setprofile(note)
        try:
            READERS[name].read(tmp_path / str(number), content)
        finally:
            sys.setprofile(None)
    assert set(READERS[name].places) <= entered


@pytest.fixture
def bounded_memory() -> Iterator[None]:
    """No more than `MEMORY` beyond what is in use: a bomb is an error here, not the end of the machine."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (in_use + MEMORY, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.usefixtures("bounded_memory")
@pytest.mark.parametrize("name", READERS)
def test_nothing_but_the_documented_error_comes_out(tmp_path: Path, name: str) -> None:
    counts = new_counts()
    fuzz(READERS[name], tmp_path, inputs_of(READERS[name], INPUTS), counts)
    assert counts["inputs"] >= FEWEST


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.usefixtures("bounded_memory")
def test_soak_of_all_readers(
    tmp_path: Path, project_root: Path, record_property: Callable[[str, object], None]
) -> None:
    """Other inputs each time: the seed is in the record, and in SOAK_SEED to repeat it."""
    started, number = time.monotonic(), int(os.environ.get("SOAK_SEED", time.time_ns() % 2**32))
    record: dict[str, Any] = {"seed": number, "readers": {}}
    crashes: list[Exception] = []
    for name, reader in READERS.items():
        counts = record["readers"][name] = new_counts()
        try:
            fuzz(reader, tmp_path, inputs_of(reader, SOAKED), counts, number=number)
        except Exception as error:  # noqa: BLE001  # Whatever it is: the other readers have their turn too.
            crashes.append(error)
        record |= {key: sum(each[key] for each in record["readers"].values()) for key in counts}
        record |= {"crashes": len(crashes), "seconds": round(time.monotonic() - started)}
        (project_root / "soak").mkdir(exist_ok=True)
        (project_root / "soak" / "fuzz.json").write_text(json.dumps(record, indent=1) + "\n")
    for key in ("seed", "inputs", "read", "refused", "crashes"):
        record_property(key, record[key])
    if crashes:
        raise ExceptionGroup(f"{len(crashes)} readers crashed", crashes)
    assert record["inputs"] >= SOAKED


def inputs_of(reader: Reader, total: int) -> int:
    """As many for each reader, but fewer for the slow ones."""
    shares = sum(each.share for each in READERS.values())
    return max(FEWEST, -int(-total * reader.share // shares))


def new_counts() -> Counter[str]:
    """How many inputs there were, and how many of them were read or refused."""
    return Counter(inputs=0, read=0, refused=0)


def fuzz(reader: Reader, place: Path, inputs: int, counts: Counter[str], *, number: int | None = None) -> None:
    """Read so many contents, those of a number, or always the same ones, and count them."""
    folder = place / "fuzzed"

    @given(reader.change(list(reader.seeds())))
    @settings(max_examples=inputs, suppress_health_check=list(HealthCheck), derandomize=number is None)
    def read(content: Any) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        counts["inputs"] += 1
        try:
            reader.read(folder, content)
            counts["read"] += 1
        except reader.errors as error:
            counts["refused"] += 1
            if isinstance(error, InputError) and "\n" in str(error):
                raise AssertionError(f"more than one line: {error}") from error

    (read if number is None else seed(number)(read))()

"""The temperature grid trained from shards: as in memory where all rows fit, as good where they do not, and bounded."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from softmax_temperature.cosine_classifier import TemperatureGridTrainer, train_temperature_grid
from softmax_temperature.runner.errors import InputError
from softmax_temperature.shards import ShardedEmbeddings, TrainingRows, train_grid_on_shards
from softmax_temperature.tools.suggest import Options, is_sharded, suggest_for_shards, summary

from .made import made_shards, rows_of

ALPHAS = (1.0, 10.0, 40.0)


def trainer(shards: ShardedEmbeddings, buffer_rows: int, *, precision: str = "float32") -> TemperatureGridTrainer:
    rows = TrainingRows(shards, buffer_bytes=4 * shards.dim * buffer_rows)
    return TemperatureGridTrainer(rows, ALPHAS, batch_size=32, lr=1.0, seed=3, precision=precision)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float64"])
def test_one_buffer_gives_the_bits_of_training_in_memory(tmp_path: Path, precision: str) -> None:
    shards = made_shards(tmp_path, [60, 5, 90])
    in_memory = TemperatureGridTrainer(
        rows_of(tmp_path, "train"), ALPHAS, batch_size=32, lr=1.0, seed=3, precision=precision
    )
    streamed = trainer(shards, 1000, precision=precision)
    for _ in range(3):
        in_memory.epoch()
        streamed.epoch()
    assert torch.equal(streamed.state_dict()["weights"], in_memory.state_dict()["weights"])  # type: ignore[arg-type]


def test_accuracies_of_one_buffer_are_those_in_memory(tmp_path: Path) -> None:
    shards = made_shards(tmp_path, [200, 150], noise=2.0)
    options = {"epochs": 4, "batch_size": 32, "lr": 1.0, "repeats": 2, "seed": 5}
    streamed = train_grid_on_shards(shards, ALPHAS, **options)  # type: ignore[arg-type]
    in_memory = train_temperature_grid(rows_of(tmp_path, "train"), rows_of(tmp_path, "test"), ALPHAS, **options)  # type: ignore[arg-type]
    torch.testing.assert_close(streamed.curves, in_memory.curves, rtol=0, atol=1e-12)
    assert streamed.evaluated == in_memory.evaluated == 35


def test_every_row_is_in_one_batch_of_an_epoch_and_portions_stay_small(tmp_path: Path) -> None:
    shards = made_shards(tmp_path, [100, 37, 80, 3])
    grid = trainer(shards, 64)
    expected = torch.nn.functional.normalize(rows_of(tmp_path, "train")[0], dim=1)
    orders = []
    for epoch in (0, 1, 0):
        rows, batches = [], []
        for portion in grid._rows.portions(epoch):
            assert len(portion.labels) <= 64 + 32, "a buffer, and what filled no batch of the one before"
            rows += [portion.embeddings[numbers] for numbers in portion.batches]
            batches += [len(numbers) for numbers in portion.batches]
        assert batches == [32] * (197 // 32) + [197 % 32]
        orders.append(torch.cat(rows))
    assert torch.equal(orders[0], orders[2]), "the same epoch, the same order"
    assert not torch.equal(orders[0], orders[1])
    for order in orders[:2]:
        torch.testing.assert_close(order[order[:, 0].argsort()], expected[expected[:, 0].argsort()])


def test_a_resumed_training_gives_the_bits_of_an_uninterrupted_one(tmp_path: Path) -> None:
    shards = made_shards(tmp_path, [100, 37, 80])
    whole, first, second = (trainer(shards, 64) for _ in range(3))
    for _ in range(3):
        whole.epoch()
    first.epoch()
    second.load_state_dict(first.state_dict())
    for _ in range(2):
        second.epoch()
    assert torch.equal(whole.state_dict()["weights"], second.state_dict()["weights"])  # type: ignore[arg-type]


def test_small_buffers_train_as_well(tmp_path: Path) -> None:
    shards = made_shards(tmp_path, [400] * 5, dim=16, classes=10, noise=1.0, test_every=7)
    whole, parts = (
        train_grid_on_shards(shards, ALPHAS, epochs=8, batch_size=32, lr=1.0, buffer_bytes=4 * 16 * rows).accuracy
        for rows in (10_000, 100)
    )
    assert float(whole.max()) > 0.9
    assert (parts - whole).abs().max() < 0.03, "two standard errors of 290 rows at 0.93"


def test_without_rows_to_test_on_there_is_one_error(tmp_path: Path) -> None:
    shards = made_shards(tmp_path, [20], test_every=1000)
    shards.index.test.clear()
    with pytest.raises(InputError, match="there is no row to test on"):
        train_grid_on_shards(shards, ALPHAS, epochs=1, batch_size=32, lr=1.0)
    with pytest.raises(ValueError, match="epochs must be at least 1"):
        train_grid_on_shards(shards, ALPHAS, epochs=0, batch_size=32, lr=1.0)
    with pytest.raises(ValueError, match="buffer_bytes must be at least 1"):
        TrainingRows(shards, buffer_bytes=0)


BOUNDED = """
import sys
from pathlib import Path
from softmax_temperature.shards import open_embedded, train_grid_on_shards

def peak():
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024

shards = open_embedded(sys.argv[1])
def train(buffer_bytes):
    train_grid_on_shards(shards, [1.0, 20.0], epochs=1, batch_size=256, lr=1.0, buffer_bytes=buffer_bytes)
    return peak()

small = train(2**19)
before = peak()
print(train(2**21) - small, train(2**30) - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="the kernel does not say what was resident")
def test_memory_is_that_of_the_buffer_and_not_of_the_data(tmp_path: Path) -> None:
    """64 MiB of rows: with a buffer of 2 MiB training takes a fraction, with one for all more than that."""
    made_shards(tmp_path, [16_384] * 4, dim=256, classes=4)
    done = subprocess.run(
        [sys.executable, "-c", BOUNDED, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1", "PATH": ""},
    )
    buffered, whole = (int(number) / 2**20 for number in done.stdout.split())
    assert buffered < 24
    assert whole > 64


# ---- the command `suggest`


def test_suggest_describes_a_sample_and_searches_on_all_rows(tmp_path: Path) -> None:
    made_shards(tmp_path, [120, 90], dim=8)
    assert is_sharded(tmp_path)
    found = suggest_for_shards(tmp_path, Options(verify=True, epochs=2))
    assert found["rows"] == {"train": 189, "test": 21, "described": 189, "held_out": True}
    assert (found["search"]["train_rows"], found["search"]["test_rows"]) == (189, 21)
    assert (found["statistics"]["n_samples"], found["statistics"]["n_classes"]) == (189, 3)
    assert "from the statistics of 189 rows; 21 rows" in summary(found)


def test_suggest_says_how_many_rows_it_drew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_shards(tmp_path, [120, 90], dim=8)
    monkeypatch.setattr("softmax_temperature.tools.suggest.sharded.SAMPLE_ROWS", 100)
    first, again, other = (suggest_for_shards(tmp_path, Options(seed=seed)) for seed in (0, 0, 1))
    assert first["rows"]["described"] == 100
    assert first["statistics"] == again["statistics"] != other["statistics"]
    assert first["statistics"]["avg_samp_class"] == 63, "of all rows, not of the sample"
    assert "from the statistics of 100 rows, drawn at random from 189" in summary(first)


def test_the_snippet_of_the_docs_runs(
    tmp_path: Path, project_root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made_shards(tmp_path / "embedded", [120, 90])
    page = (project_root / "docs/your_own_data.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "docs", "exec"), {})  # noqa: S102  # Our own text.
    assert "tensor" in capsys.readouterr().out

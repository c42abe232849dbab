"""Embedding in shards: what one would get in memory, whoever does it and however often it was interrupted."""

from __future__ import annotations

import json
import sys
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from softmax_temperature.networks.embeddings import extract
from softmax_temperature.params import Compute
from softmax_temperature.runner.artifacts import MANIFEST
from softmax_temperature.runner.errors import InputError
from softmax_temperature.shards.embed_shard import NAMES
from softmax_temperature.shards.embedding import Extraction, embed_data_set
from softmax_temperature.shards.held_out import is_held_out
from softmax_temperature.shards.images import PIXEL_BYTES, batches
from softmax_temperature.shards.index import read_index
from softmax_temperature.tools import cli
from tests.faults.victims import Victim

from .data import CHOICE, CLASSES, DIM, PARAMS, compute, pixels, samples, write_class_folders, write_tar, write_tars


def embed(source: Path, output: Path, *, run: Compute | None = None, per_shard: int = 50) -> dict[str, object]:
    extraction = Extraction(batch_size=16, images_per_shard=per_shard)
    return embed_data_set(source, CHOICE, output, compute=run or compute(), extraction=extraction)


def contents(output: Path) -> dict[str, bytes]:
    files = [output / "index.json", *(path for path in (output / "shards").rglob("*") if path.is_file())]
    return {path.relative_to(output).as_posix(): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def tars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tars(tmp_path_factory.mktemp("source") / "tars")


@pytest.fixture(scope="module")
def whole(tars: Path) -> dict[str, bytes]:
    """What one worker makes without an interruption."""
    with chdir(tars.parent):
        embed(Path("tars"), tars.parent / "whole")
    return contents(tars.parent / "whole")


@pytest.mark.usefixtures("whole")
def test_embeddings_are_those_of_the_same_images_in_memory(tars: Path) -> None:
    images = torch.from_numpy(np.stack([pixels(number) for number in range(120)])).permute(0, 3, 1, 2).contiguous()
    network, preprocess, _ = CHOICE.load()
    expected = torch.cat(list(extract(network, preprocess, images.split(16))))
    seen = []
    for shard in range(3):
        place = tars.parent / f"whole/shards/s-{shard}"
        found = load_file(place / "embeddings.safetensors")
        names = (place / NAMES).read_text().splitlines()
        assert names == [f"s-{shard}/{number:06d}" for number in range(shard * 40, shard * 40 + 40)]
        for split in ("train", "test"):
            rows = found[f"{split}.index"]
            assert all(is_held_out(names[row]) == (split == "test") for row in rows)
            assert found[f"{split}.labels"].tolist() == [row % CLASSES for row in (rows + shard * 40).tolist()]
            torch.testing.assert_close(found[f"{split}.embeddings"], expected[rows + shard * 40], rtol=1e-5, atol=1e-6)
            seen += (rows + shard * 40).tolist()
    assert sorted(seen) == list(range(120))


def test_class_folders_are_cut_into_pieces_of_the_order_of_their_names(tmp_path: Path) -> None:
    source = write_class_folders(tmp_path / "folders")
    found = embed(source, tmp_path / "out", per_shard=50)
    index = read_index(tmp_path / "out")
    assert [entry.train + entry.test for entry in index.shards] == [50, 50, 20]
    assert index.class_names == ["a", "b", "c", "d"]
    assert {int(label): index.train[label] + index.test[label] for label in index.train} == dict.fromkeys(range(4), 30)
    names = [(tmp_path / f"out/shards/part-{part:05d}" / NAMES).read_text().splitlines() for part in range(3)]
    assert [name for part in names for name in part] == sorted(
        f"{'abcd'[number % 4]}/{number:04d}.png" for number in range(120)
    )
    assert (found["classes"], found["dim"]) == (CLASSES, DIM)


def test_two_workers_leave_the_bytes_of_one(tars: Path, whole: dict[str, bytes], tmp_path: Path) -> None:
    with chdir(tars.parent):
        embed(Path("tars"), tmp_path / "out", run=compute(engine="processes", workers=2))
    assert contents(tmp_path / "out") == whole


@pytest.mark.usefixtures("patient_ray")
@pytest.mark.filterwarnings("ignore")  # Ray's own; what it computes is what is tested.
def test_workers_on_ray_leave_the_bytes_of_one(
    tars: Path, whole: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tars.parent)
    embed(Path("tars"), tmp_path / "out", run=compute(engine="ray", workers=2))
    assert contents(tmp_path / "out") == whole


def stamps(output: Path) -> dict[Path, tuple[int, int]]:
    """Every finished shard in the work folder, with what changes when it is made again."""
    places = (output / "work/shards").glob(f"*/*/result/{MANIFEST}")
    return {place: (place.stat().st_ino, place.stat().st_mtime_ns) for place in places}


def test_a_killed_run_goes_on_and_repeats_no_finished_shard(
    tars: Path, whole: dict[str, bytes], tmp_path: Path
) -> None:
    (tmp_path / "tars").symlink_to(tars)
    (tmp_path / "work.py").write_text(WORK)
    (tmp_path / "hold").touch()
    victim = Victim([sys.executable, "work.py"], tmp_path)
    while not stamps(tmp_path / "out"):
        assert victim.process.poll() is None, victim.output
    victim.kill()
    finished = stamps(tmp_path / "out")
    assert len(finished) == 1, "it was killed in the middle"
    assert not (tmp_path / "out/index.json").exists()
    (tmp_path / "hold").unlink()
    assert Victim([sys.executable, "work.py"], tmp_path).wait() == 0
    assert {place: stamps(tmp_path / "out")[place] for place in finished} == finished
    assert contents(tmp_path / "out") == whole


WORK = """
import time
from pathlib import Path
from softmax_temperature.runner.cells import Job
from softmax_temperature.shards.embedding import Extraction, embed_data_set
from tests.shards.data import CHOICE, compute

say = Job.progress

def say_and_hold(job, done, total):  # Behind the first shard, as long as it is told to.
    say(job, done, total)
    while Path("hold").exists() and any(Path("out/work/shards").glob("*/*/result/manifest.json")):
        time.sleep(0.01)

Job.progress = say_and_hold  # In the worker too.

if __name__ == "__main__":
    run = compute(engine="processes", workers=1, cell_minutes=5)  # In a process of its own, which has to end too.
    embed_data_set(Path("tars"), CHOICE, Path("out"), compute=run, extraction=Extraction(batch_size=16))
"""


def test_a_new_shard_is_embedded_alone(tmp_path: Path) -> None:
    source = write_tars(tmp_path / "tars", shards=1)
    embed(source, tmp_path / "out")
    before = stamps(tmp_path / "out")
    write_tar(source / "t.tar", samples(range(200, 220)))
    embed(source, tmp_path / "out")
    assert {place: stamps(tmp_path / "out")[place] for place in before} == before
    assert [entry.name for entry in read_index(tmp_path / "out").shards] == ["s-0", "t"]


def test_large_images_make_smaller_batches() -> None:
    class Images:
        names, labels = ["a"] * 5, [0] * 5

        def content(self, row: int) -> bytes:
            from .data import encoded

            return encoded(np.zeros((4096, 4096, 3), np.uint8), "BMP" if row else "PNG")

        def place(self, row: int) -> str:
            return str(row)

    assert 4096 * 4096 * 3 < PIXEL_BYTES < 2 * 4096 * 4096 * 3
    assert [len(batch) for batch in batches(Images(), range(3), 64)] == [2, 1]


# ---- what is refused


def refused(source: Path, output: Path) -> str:
    with pytest.raises(InputError) as error:
        embed(source, output)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_damaged_image_is_named_and_other_shards_are_kept(tmp_path: Path) -> None:
    source = write_tars(tmp_path / "tars", shards=1)
    write_tar(source / "t.tar", {"9.jpg": b"\xff\xd8 no image", "9.cls": b"0"})
    said = refused(source, tmp_path / "out")
    assert "1 of 2 shards were not embedded, the others are kept; t: " in said
    assert f"{source}/t.tar/9.jpg: not a readable image" in said
    assert len(stamps(tmp_path / "out")) == 1


def test_sources_that_are_none(tmp_path: Path) -> None:
    assert "no such file or folder" in refused(tmp_path / "nothing", tmp_path / "out")
    (tmp_path / "empty").mkdir()
    assert "has 0 class folders with images and no tar files" in refused(tmp_path / "empty", tmp_path / "out")
    write_class_folders(tmp_path / "parted/train", images=8)
    assert "is divided into parts. Give one of them" in refused(tmp_path / "parted", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_of_somebody_else_is_not_replaced(tmp_path: Path) -> None:
    source = write_tars(tmp_path / "shards", shards=1)
    assert "is there, and was not made by this command" in refused(source, tmp_path)
    assert [path.name for path in source.iterdir()] == ["s-0.tar"]


def test_the_command_embeds_and_says_what_comes_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tars(tmp_path / "tars", shards=1)
    (tmp_path / "params.yaml").write_text(PARAMS)
    monkeypatch.chdir(tmp_path)
    words = ["embed", "tars", "--backbone", "tiny", "--out", "out", "--engine", "serial", "--batch-size", "16"]
    monkeypatch.setattr(sys, "argv", ["softmax-temperature", *words, "--json"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    found = json.loads(capsys.readouterr().out)
    assert (end.value.code, found["shards"], sum(found["rows"].values())) == (0, 1, 40)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--engine", "cloud"], "--engine: is 'cloud'"),
        (["--workers", "0"], "--workers: is 0"),
        (["--batch-size", "0"], "--batch-size: is 0. Give at least 1."),
        (["--backbone", "tinny"], "--backbone: unknown network 'tinny'. Did you mean 'tiny'?"),
    ],
)
def test_bad_options_are_one_line_and_write_nothing(
    words: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tars(tmp_path / "tars", shards=1)
    (tmp_path / "params.yaml").write_text(PARAMS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        sys, "argv", ["softmax-temperature", "embed", "tars", "--backbone", "tiny", "--out", "o", *words]
    )
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    assert says in capsys.readouterr().err
    assert not Path("o").exists()

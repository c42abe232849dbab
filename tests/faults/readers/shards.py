"""Data sets in shards: tar files of images, and the shards of embeddings with their index."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from softmax_temperature.shards.images import batches
from softmax_temperature.shards.index import read_index
from softmax_temperature.shards.reading import ShardedEmbeddings
from softmax_temperature.shards.tar_files import TarImages
from tests.shards.data import samples, write_tar
from tests.shards.made import made_shards

from softmax_temperature.runner.artifacts import new_artifact, open_artifact, sealed, write_sealed
from tests.faults.mutations import exchanged
from tests.faults.readers.reader import Reader

TAR = tuple(f"shards.tar_files.{place}" for place in ("tar_samples", "_members", "TarImages.__enter__"))


def tar() -> bytes:
    with TemporaryDirectory() as folder:
        return write_tar(Path(folder) / "a.tar", samples([3, 4])).read_bytes()


def read_tar(folder: Path, content: bytes) -> None:
    (folder / "a.tar").write_bytes(content)
    with TarImages(folder / "a.tar", "a") as images:
        for name in images.names:
            name.encode()
        list(batches(images, range(len(images.names)), 8))


def made() -> tuple[dict[str, Any], bytes]:
    """An index and its only shard."""
    with TemporaryDirectory() as folder:
        made_shards(Path(folder), [11])
        index = json.loads((Path(folder) / "index.json").read_text())
        return index, (Path(folder) / "shards/s-0/embeddings.safetensors").read_bytes()


def read_other_index(folder: Path, content: Any) -> None:
    """With the right digest, as somebody would write it who wants it to be believed."""
    if isinstance(content, dict):
        content.pop("sha256", None)
        with suppress(ValueError):
            content = sealed(content)
    (folder / "index.json").write_text(json.dumps(content))
    read_index(folder)


def read_shard(folder: Path, content: bytes) -> None:
    """A shard whose manifest and index are right about it."""
    index, _ = made()
    del index["sha256"]
    with new_artifact(folder / "shards/s-0", kind="embed_shard", about={}) as output:
        (output / "embeddings.safetensors").write_bytes(content)
    index["shards"][0]["digest"] = open_artifact(folder / "shards/s-0").digest
    write_sealed(folder / "index.json", index)
    list(ShardedEmbeddings(folder).batches("train", 4))


READERS = {
    "tar file": Reader(TAR, lambda: [tar()], read_tar),
    "index of shards": Reader((), lambda: [made()[0]], read_other_index, exchanged),
    "shard": Reader(("shards.reading.ShardedEmbeddings._verified",), lambda: [made()[1]], read_shard, share=0.2),
}

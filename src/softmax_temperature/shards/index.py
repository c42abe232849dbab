"""The index of a folder of shards: what they hold together, and the digest of each.

FOLDER/index.json           JSON with its own sha256 in it, written last
FOLDER/shards/NAME/         one artifact a shard
FOLDER/work/                what the run left: finished shards, as links, so that they are not made again
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, TypeAdapter

from softmax_temperature.networks.embeddings import PROVENANCE
from softmax_temperature.runner.artifacts import Artifact, ArtifactError, open_artifact, sealed, write_sealed
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.reading import Form, read_json
from softmax_temperature.shards.embed_shard import COUNTS
from softmax_temperature.shards.held_out import RULE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

INDEX, SHARDS = "index.json", "shards"
AGAIN = "Run `softmax-temperature embed` again as before: it makes what is missing, and nothing else."
_LARGEST = 2**53  # What JSON's readers agree on.

Number = Annotated[int, Field(ge=0, lt=_LARGEST)]
Label = Annotated[str, Field(pattern="^[0-9]{1,9}$")]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Entry(Form):
    """A shard: its folder's name, its digest, its rows."""

    name: Annotated[str, Field(pattern=r"^[^/\\.\x00][^/\\\x00]*$", max_length=255)]
    digest: Digest
    train: Number
    test: Number


class Index(Form):
    """All shards.

    Attributes:
        dim: length of an embedding.
        train: by label, how many rows.
        test: likewise, of those to test on.
        split: how these were told apart.
        class_names: of class folders, by label; else None.
        backbone: what made the embeddings.
        shards: in the order of their names.
    """

    dim: Annotated[int, Field(ge=1, lt=2**31)]
    train: dict[Label, Number]
    test: dict[Label, Number]
    split: str
    class_names: list[str] | None
    backbone: dict[str, Any]
    shards: list[Entry]


_FORM = TypeAdapter(Index)


def write_index(folder: Path, names: Sequence[str], class_names: Sequence[str] | None) -> Index:
    """Read what each shard says of itself and write the index.

    Args:
        folder: with all shards in it.
        names: of the shards.
        class_names: by label, where they have names.
    """
    counts: dict[str, Counter[str]] = {"train": Counter(), "test": Counter()}
    entries: list[dict[str, Any]] = []
    provenance: dict[str, Any] = {}
    for name in sorted(names):
        artifact = open_artifact(folder / SHARDS / name)
        rows, provenance = artifact.json(COUNTS), artifact.json(PROVENANCE)
        for split, count in counts.items():
            count.update(rows.get(split, {}))
        sums = {split: sum(rows.get(split, {}).values()) for split in counts}
        entries.append({"name": name, "digest": artifact.digest, **sums})
    backbone = {key: value for key, value in provenance.items() if key not in ("dataset", "split")}
    body = {
        "dim": int(provenance["embedding"]),
        **{split: dict(count) for split, count in counts.items()},
        "split": RULE,
        "class_names": None if class_names is None else list(class_names),
        "backbone": backbone,
        "shards": entries,
    }
    write_sealed(folder / INDEX, body)
    return Index.model_validate(body)


def read_index(folder: Path) -> Index:
    """Read the index of a folder.

    Raises:
        InputError: there is none, it is damaged, or its numbers do not add up.
    """
    path = folder / INDEX
    if not path.is_file():
        raise InputError("no such file: the folder holds no shards, or not all yet", where=str(path), remedy=AGAIN)
    content: dict[str, Any] = read_json(path, _FORM, remedy=AGAIN)
    said = content.pop("sha256", None)
    index = Index.model_validate(content)
    sums = all(
        sum(getattr(index, split).values()) == sum(getattr(entry, split) for entry in index.shards)
        for split in ("train", "test")
    )
    if said != sealed(content)["sha256"] or not sums or not index.shards:
        raise InputError("damaged (its own sha256 differs, or its sums)", where=str(path), remedy=AGAIN)
    return index


def open_shards(folder: Path, index: Index) -> list[Artifact]:
    """The artifacts of all shards, by their manifests; files are verified when they are read.

    Raises:
        InputError: one is missing, damaged, or another one than the index lists.
    """
    return [_opened(folder / SHARDS / entry.name, entry) for entry in index.shards]


@contextmanager
def remedied() -> Iterator[None]:
    """Say of a damaged artifact what makes it again here, where no pipeline does."""
    try:
        yield
    except ArtifactError as error:
        raise InputError(error.what, where=error.where, remedy=AGAIN) from error


def _opened(place: Path, entry: Entry) -> Artifact:
    with remedied():
        artifact = open_artifact(place)
    if artifact.digest != entry.digest:
        raise InputError("is another shard than the index lists", where=str(place), remedy=AGAIN)
    return artifact

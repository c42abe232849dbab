"""Weights, checkpoints, and artifacts with their manifests."""

from __future__ import annotations

import hashlib
import io
from functools import cache
from pathlib import Path

import safetensors.torch
import torch
from torch import nn

from softmax_temperature.networks.backbones.weights import load_weights
from softmax_temperature.runner.artifacts import canonical_json, digest_of_text, new_artifact, open_artifact
from softmax_temperature.runner.checkpoints import is_whole, load_checkpoint
from tests.faults.mutations import exchanged
from tests.faults.readers.arrays import header_of, with_header
from tests.faults.readers.reader import Reader


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))


@cache
def safe_weights() -> bytes:
    return safetensors.torch.save(network().state_dict())


@cache
def pickled_weights() -> bytes:
    stream = io.BytesIO()
    torch.save(network().state_dict(), stream)
    return stream.getvalue()


def read_safe(folder: Path, content: bytes) -> None:
    path = folder / "weights.safetensors"
    path.write_bytes(content)
    load_weights(network(), path, unused=("head.",))


def read_pickled(folder: Path, content: bytes) -> None:
    path = folder / "weights.pth"
    path.write_bytes(content)
    load_weights(network(), path, unused=("head.",))


def checkpoint() -> bytes:
    stream = io.BytesIO()
    torch.save({"epoch": 3, "network": network().state_dict(), "lr": 0.1}, stream)
    return stream.getvalue()


def read_checkpoint(folder: Path, content: bytes) -> None:
    """With the right digest: what has another counts as absent, and nothing of it is looked at."""
    (folder / "checkpoint.pt").write_bytes(hashlib.sha256(content).digest() + content)
    is_whole(folder / "checkpoint.pt")
    load_checkpoint(folder / "checkpoint.pt")


def read_artifact(name: str, folder: Path, content: bytes) -> None:
    """Two files and their manifest, one of the three exchanged for the content."""
    with new_artifact(folder / "made", kind="some", about={"a": 1}) as building:
        (building / "a.json").write_text("{}")
        (building / "a.safetensors").write_bytes(safe_weights())
    (folder / "made" / name).write_bytes(content)
    artifact = open_artifact(folder / "made", kind="some")
    artifact.problems()
    artifact.json("a.json")
    artifact.tensors("a.safetensors")


def manifest() -> bytes:
    files = {"a.json": hashlib.sha256(b"{}").hexdigest(), "a.safetensors": hashlib.sha256(safe_weights()).hexdigest()}
    body = {"kind": "some", "about": {"a": 1}, "files": files}
    return canonical_json({**body, "sha256": digest_of_text(canonical_json(body))}).encode()


MANIFEST = ("artifacts.read_sealed",)
ARTIFACT = (*MANIFEST, "artifacts.digest_of_file", "artifacts.Artifact.json", "artifacts.Artifact.tensors")
WEIGHTS = ("backbones.weights.read_weights",)
CHECKPOINT = ("checkpoints.is_whole", "checkpoints.load_checkpoint")

READERS = {
    "weights": Reader(WEIGHTS, lambda: [safe_weights()], read_safe),
    "weights header": Reader(
        WEIGHTS,
        lambda: [header_of(safe_weights())],
        lambda folder, header: read_safe(folder, with_header(safe_weights(), header)),
        exchanged,
    ),
    "pickled weights": Reader(WEIGHTS, lambda: [pickled_weights()], read_pickled),
    "checkpoint": Reader(CHECKPOINT, lambda: [checkpoint()], read_checkpoint),
    "artifact": Reader(ARTIFACT, lambda: [safe_weights()], lambda *given: read_artifact("a.safetensors", *given)),
    "manifest": Reader(ARTIFACT, lambda: [manifest()], lambda *given: read_artifact("manifest.json", *given)),
}

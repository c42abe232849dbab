"""Pretrained weights come over a bad network whole and verified, from torchvision's server as from the hub."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torchvision

from softmax_temperature.data import downloads
from softmax_temperature.networks.backbones.sources import locate_weights
from softmax_temperature.params.backbone import Backbone
from softmax_temperature.runner.errors import InputError
from tests.faults.readers.weights import pickled_weights, safe_weights
from tests.faults.scripted_server import Site, cut, serving, status

FILE = "/timm/net/resolve/main/model.safetensors"
FETCHING = """
import sys
from pathlib import Path
from types import SimpleNamespace
from softmax_temperature.networks.backbones import sources
from softmax_temperature.runner.errors import InputError

sources._timm_repository = lambda spec: "timm/net"  # Known to nobody else.
spec = SimpleNamespace(architecture="net", tag="a", library="timm", weights="hub")
try:
    print(sources.locate_weights(spec, root=Path(), download=True))
except InputError as error:
    print(error)
"""


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(downloads, "PAUSE", 0.01)
    with serving() as site:
        yield site


@pytest.fixture
def spec(tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> Backbone:
    """Weights of torchvision that are on the site and not in the cache."""
    name = f"net-{hashlib.sha256(pickled_weights()).hexdigest()[:8]}.pth"
    site.files[f"/{name}"] = pickled_weights()
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "hub"))
    weights = torchvision.models.ResNet18_Weights.IMAGENET1K_V1
    monkeypatch.setattr(weights.value, "url", site.address + name)
    fields = {"library": "torchvision", "architecture": "resnet18", "weights": "hub", "tag": "IMAGENET1K_V1"}
    return Backbone.model_validate({**fields, "embedding": 512})


def test_weights_of_torchvision_come_through_a_bad_network(site: Site, spec: Backbone, tmp_path: Path) -> None:
    site.script = [status(503), cut(after=500), cut(after=500)]
    path = locate_weights(spec, root=tmp_path, download=True)
    assert path is not None
    assert path.read_bytes() == pickled_weights()
    assert site.ranges == [None, None, "bytes=500-", "bytes=1000-"]


def test_weights_of_torchvision_with_another_digest_are_never_there(site: Site, spec: Backbone, tmp_path: Path) -> None:
    (path,) = site.files
    site.files[path] = b"<html>Not found</html>"
    with pytest.raises(InputError, match="could not be fetched"):
        locate_weights(spec, root=tmp_path, download=True)
    assert not [file for file in (tmp_path / "hub").rglob("*") if file.suffix == ".pth"]


def test_weights_of_torchvision_without_a_digest_are_refused(
    site: Site, spec: Backbone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = torchvision.models.ResNet18_Weights.IMAGENET1K_V1
    monkeypatch.setattr(weights.value, "url", site.address + "net.pth")
    (tmp_path / "hub/checkpoints").mkdir(parents=True)
    (tmp_path / "hub/checkpoints/net.pth").write_bytes(pickled_weights())
    with pytest.raises(InputError, match="published without a digest"):
        locate_weights(spec, root=tmp_path, download=True)
    assert not site.requests


def from_hub(site: Site, cache: Path) -> str:
    """What a program says that asks the hub on the site for weights."""
    variables = {"HF_ENDPOINT": site.address.removesuffix("/"), "HF_HUB_CACHE": str(cache), "HF_HUB_OFFLINE": "0"}
    variables |= {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "PYTHONPATH": os.pathsep.join(sys.path), "NO_PROXY": "*"}
    program = [sys.executable, "-c", FETCHING]
    done = subprocess.run(program, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def hub(site: Site) -> Site:
    """A site that is a hub with one file, whose digest it tells beforehand."""
    digest = hashlib.sha256(safe_weights()).hexdigest()
    site.files[FILE] = safe_weights()
    site.headers[FILE] = {"ETag": f'"{digest}"', "X-Linked-Etag": f'"{digest}"', "X-Repo-Commit": "c" * 40}
    return site


def test_weights_of_the_hub_come_through_a_bad_network(hub: Site, tmp_path: Path) -> None:
    hub.script = [cut(after=100), status(429), cut(after=100)]
    assert Path(from_hub(hub, tmp_path)).read_bytes() == safe_weights()
    # The library goes on in the middle of a file alone that is longer than its pieces.
    assert [path for path, _ in hub.requests].count(FILE) == 4


def test_weights_of_the_hub_with_another_digest_are_refused(hub: Site, tmp_path: Path) -> None:
    other = bytearray(safe_weights())
    other[-1] ^= 1
    hub.files[FILE] = bytes(other)
    for _ in range(2):  # Once fetched, then from the cache.
        assert "damaged (its sha256 is not the one in its name). Delete the file." in from_hub(hub, tmp_path)

"""`make data` lists a profile's data, and accepts only files of the right sha256."""

import gzip
import re
from pathlib import Path

import huggingface_hub.constants
import pytest
import torch

from softmax_temperature.data import catalogue
from softmax_temperature.networks import weights
from softmax_temperature.runner.artifacts import digest_of_text
from softmax_temperature.runner.errors import InputError
from softmax_temperature.stages.inputs import input_items
from softmax_temperature.tools import needed_data
from tests.profiles import rendered

PROFILE = """
papers: [classifier_temperature, focal]
datasets: {digits: {}, both: {source: [cifar100, cifar100_more]}, imdb: {}}
backbones:
  net:
    library: project
    architecture: cifar_resnet
    weights: file
    file: net.safetensors
    embedding: 64
    input_size: 32
    mean: [0.5, 0.5, 0.5]
    std: [0.5, 0.5, 0.5]
  lite:
    library: timm
    architecture: tf_efficientnet_lite0
    weights: package
    package: no-such-package
    embedding: 1280
    input_size: 64
    mean: [0.5, 0.5, 0.5]
    std: [0.5, 0.5, 0.5]
networks: {cnn: {architecture: text_cnn, arguments: {vocabulary_size: 9, embedding: 2}}}
classifier_temperature:
  datasets: [digits]
  backbones: [net, lite]
  rescaling: {dataset: digits, backbone: net}
focal:
  tasks:
    imdb-cnn:
      dataset: imdb
      network: cnn
      text: {vocabulary: 9, length: 9, keep: end}
      embeddings: {file: glove.txt, step: 0.0}
  translation: {dataset: letters}
"""


@pytest.fixture(autouse=True)
def root(project_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The empty data.root of a project folder that has the profile `some`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        needed_data, "render_profile", lambda name: rendered(name, Path("profiles"))
    )
    Path("profiles").mkdir()
    Path("profiles/defaults.yaml").write_text(
        (project_root / "profiles/defaults.yaml").read_text()
    )
    Path("profiles/some.yaml").write_text(PROFILE)
    Path("data/raw").mkdir(parents=True)
    return Path("data/raw")


def test_missing_items_are_named_and_present_ones_have_digests(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "imdb.jsonl").write_text(
        "".join(f'{{"split": "train", "label": {n}, "text": "a"}}\n' for n in range(2))
    )
    assert needed_data.main(["some"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("  there")] == [
        "digits",
        "imdb",
    ]
    assert "sha256 " in lines[4]
    missing = " ".join(line for line in lines if line.startswith("  MISSING"))
    for name in (
        "data set cifar100:",
        "data set cifar100_more:",
        "glove.txt",
        "data set letters:",
        "net.safetensors",
        "no-such-package",
    ):
        assert name in missing
    assert lines[-1].startswith("6 missing")


def test_an_unknown_profile_is_wrong_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert needed_data.main(["sone"]) == 2
    assert "Did you mean 'some'" in capsys.readouterr().err


def test_files_are_fetched_with_the_right_checksum_or_not_at_all(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [
        f"{part}.{language}"
        for part in ("train", "validation", "test")
        for language in ("en", "de")
    ]
    (tmp_path / "source.gz").write_bytes(gzip.compress(b"a line\n"))
    url = (tmp_path / "source.gz").as_uri()
    monkeypatch.setitem(
        catalogue.URLS,
        "letters",
        {part: (url, digest_of_text("a line\n")) for part in parts},
    )
    needed_data.main(["some", "--download"])
    assert {
        path.name: path.read_text() for path in (root / "letters").iterdir()
    } == dict.fromkeys(parts, "a line\n")
    with pytest.raises(
        InputError,
        match=r"changed: its sha256 is .*Put the file with sha256 0+, unpacked, at",
    ):
        needed_data.fetch(url, root / "other", "0" * 64)
    with pytest.raises(InputError, match="the download failed"):
        needed_data.fetch(url + "x", root / "other", "0" * 64)
    assert not (root / "other").exists()


BACKBONES = """
  clip:
    library: timm
    architecture: vit_base_patch32_clip_quickgelu_224
    weights: hub
    tag: openai
    embedding: 768
  alexnet:
    library: torchvision
    architecture: alexnet
    weights: hub
    tag: IMAGENET1K_V1
    tensor: mean_features
    embedding: 256
  facenet:
    library: facenet
    architecture: inception_resnet_v1
    weights: file
    file: face.pt
    embedding: 1792
    input_size: 160
    mean: [0.5, 0.5, 0.5]
    std: [0.5, 0.5, 0.5]
"""
NOISY = """
    noisy:
      dataset: planes
      network: cnn
      gaussian_noise: 0.1
"""
WITH_WEIGHTS = (
    PROFILE.replace("backbones:\n", f"backbones:{BACKBONES}")
    .replace("backbones: [net, lite]", "backbones: [clip, alexnet, facenet, net]")
    .replace("  tasks:\n", f"  tasks:{NOISY}")
    # As in the pipeline, `make data` goes by the data set's source, not by the paper's
    # name for it.
    .replace("digits: {}, ", "digits: {}, planes: {source: cifar10}, ")
)


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, list[str]]:
    """The lines that `make data` prints, keyed by the state of the listed item."""
    needed_data.main(["some", *arguments])
    states: dict[str, list[str]] = {}
    for line in capsys.readouterr().out.splitlines():
        states.setdefault(line[2:10].strip(), []).append(line)
    return states


@pytest.mark.usefixtures("empty_caches")
def test_weights_are_listed_with_addresses_and_those_the_run_fetches_separately(
    capsys: pytest.CaptureFixture[str],
) -> None:
    profile = Path("profiles/some.yaml")
    profile.write_text(WITH_WEIGHTS)
    missing = " ".join(listed(capsys)["MISSING"])
    for text in (
        "model.safetensors or pytorch_model.bin of https://huggingface.co/timm/vit_",
        "from https://download.pytorch.org/models/alexnet-owt-7be5be79.pth",
        "face.pt",
        "net.safetensors",
        "data set cifar100:",
        "Set data.download to true",
    ):
        assert text in missing
    # If downloads are already allowed, `make data` does not suggest that the user allow
    # them.
    profile.write_text(f"data: {{download: true}}\n{WITH_WEIGHTS}")
    states = listed(capsys)
    to_come = " ".join(states["to come"])
    assert "licence: Apache 2.0" in to_come
    for name in ("vit_base_patch32", "alexnet", "data set cifar100:"):
        assert name in to_come
        assert name not in " ".join(states["MISSING"])
    everything = " ".join(line for lines in states.values() for line in lines)
    assert "data.download to true" not in everything
    assert "data.download: true" not in everything


@pytest.fixture
def empty_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "hub"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hf"))


@pytest.mark.usefixtures("empty_caches")
def test_published_weights_are_fetched_and_have_their_checksum(
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("profiles/some.yaml").write_text(WITH_WEIGHTS)
    source = tmp_path / "published.pt"
    source.write_bytes(b"weights")
    published = catalogue.WeightsFile(
        source.as_uri(), digest_of_text("weights"), licence="MIT"
    )
    monkeypatch.setitem(catalogue.WEIGHTS, "face.pt", published)

    def refuse(*_: object, **__: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr(weights, "hf_hub_download", refuse)
    monkeypatch.setattr(torch.hub, "download_url_to_file", refuse)
    states = listed(capsys, "--download")
    assert (root / "face.pt").read_bytes() == b"weights"
    assert any("face.pt sha256" in line for line in states["there"])
    (root / "face.pt").write_bytes(b"others")
    assert any("its sha256 is" in line for line in listed(capsys)["MISSING"])


@pytest.mark.usefixtures("empty_caches")
def test_cifar10_c_is_optional(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("profiles/some.yaml").write_text(WITH_WEIGHTS)
    [line] = listed(capsys)["optional"]
    assert "zenodo.org/records/2535967" in line
    assert "softmax-temperature convert CIFAR-10-C" in line
    (root / "CIFAR-10-C").mkdir()
    for name in ("gaussian_noise.npy", "labels.npy"):
        (root / "CIFAR-10-C" / name).write_bytes(b"")
    assert any("CIFAR-10-C sha256" in line for line in listed(capsys)["there"])


@pytest.mark.usefixtures("empty_caches")
def test_the_list_is_of_exactly_the_files_that_the_pipeline_reads(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("profiles/some.yaml").write_text(WITH_WEIGHTS)
    _, params = rendered("some", Path("profiles"))
    sources = {item.source for item in input_items(params)}
    assert {"cifar10", "CIFAR-10-C", "glove.txt", "net.safetensors"} < sources
    lines = [line for found in listed(capsys).values() for line in found]
    for source in sources:
        assert sum(source.split(" of ")[0] in line for line in lines) >= 1, source
    items = [line for line in lines if line.startswith("  ")]
    assert len(items) == len(sources)


def test_every_published_checksum_is_a_sha256() -> None:
    for file in catalogue.WEIGHTS.values():
        assert re.fullmatch(r"[0-9a-f]{64}|", file.sha256)

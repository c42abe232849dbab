"""Backbones return the right tensor, load the right weights, and fail early."""

import hashlib
import os
import pickle
from pathlib import Path
from typing import Any
from urllib.error import URLError

import huggingface_hub.constants
import numpy as np
import pytest
import timm
import torch
import torchvision.models
from huggingface_hub.errors import EntryNotFoundError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from softmax_temperature.networks import weights as weights_module
from softmax_temperature.networks.backbone_networks import (
    build_classifier,
    build_embedding_network,
)
from softmax_temperature.networks.backbones import LoadedBackbone, load_backbone
from softmax_temperature.networks.preprocess import torchvision_preprocess
from softmax_temperature.networks.weights import locate_weights
from softmax_temperature.params.network import Backbone
from softmax_temperature.runner.errors import InputError

DESCRIBED: dict[str, Any] = {
    "input_size": 32,
    "mean": [0.5, 0.5, 0.5],
    "std": [0.25, 0.25, 0.25],
}
TINY: dict[str, Any] = {"channels": [4, 4, 8, 8], "stem_width": 4}


def spec_of(**changes: Any) -> Backbone:
    tiny = {
        "library": "timm",
        "architecture": "resnet10t",
        "weights": "untrained",
        "embedding": 8,
        "arguments": TINY,
    }
    return Backbone.model_validate(tiny | DESCRIBED | changes)


def hub_spec(library: str, architecture: str, tag: str, **changes: Any) -> Backbone:
    hub = {
        "library": library,
        "architecture": architecture,
        "weights": "hub",
        "tag": tag,
        "embedding": 512,
    }
    return Backbone.model_validate(hub | changes)


def file_spec(**changes: Any) -> Backbone:
    return spec_of(**({"weights": "file", "file": "weights.safetensors"} | changes))


def loaded(spec: Backbone, root: Path, *, seed: int = 0) -> LoadedBackbone:
    return load_backbone(spec, root=root, seed=seed)


def random_images(count: int = 3, size: int = 32) -> Tensor:
    return torch.randn(count, 3, size, size, generator=torch.Generator().manual_seed(1))


# ---- choice of the tensor


@pytest.mark.parametrize(
    ("library", "architecture", "tensor", "embedding"),
    [
        ("torchvision", "alexnet", "mean_features", 256),
        ("torchvision", "resnet50", "head_input", 2048),
        ("timm", "resnet18", "head_input", 512),
        ("facenet", "inception_resnet_v1", "head_input", 1792),
        ("timm", "resnet50_clip", "output", 1024),
        ("timm", "vit_base_patch32_clip_quickgelu_224", "head_input", 768),
        ("torchvision", "squeezenet1_1", "mean_features", 512),
        ("torchvision", "mobilenet_v3_small", "head_input", 1024),
        ("project", "mobilenet_v1", "head_input", 1024),
        ("project", "cifar_resnet", "head_input", 64),
    ],
)
def test_each_architecture_gives_the_embedding_of_the_papers_table(
    library: str, architecture: str, tensor: str, embedding: int
) -> None:
    spec = spec_of(
        library=library,
        architecture=architecture,
        tensor=tensor,
        embedding=embedding,
        arguments={},
    )
    with torch.device("meta"):
        network = build_embedding_network(spec)[0].eval()
        size = 160 if library == "facenet" else 224
        assert network(torch.empty(2, 3, size, size)).shape == (2, embedding)


def test_an_untrained_backbone_depends_only_on_its_seed(tmp_path: Path) -> None:
    torch.manual_seed(5)
    state = torch.get_rng_state()
    first = loaded(spec_of(), tmp_path)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(6)
    same_seed = loaded(spec_of(), tmp_path)
    other_seed = loaded(spec_of(), tmp_path, seed=1)
    embeddings = first.network(random_images())
    assert torch.equal(embeddings, same_seed.network(random_images()))
    assert not torch.equal(embeddings, other_seed.network(random_images()))
    digest = first.provenance["weights_sha256"]
    assert digest == same_seed.provenance["weights_sha256"]
    assert digest != other_seed.provenance["weights_sha256"]


# ---- weights from a file


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {
            "library": "project",
            "architecture": "cifar_resnet",
            "arguments": {"blocks": 1},
            "embedding": 64,
        },
        {
            "library": "project",
            "architecture": "mobilenet_v1",
            "arguments": {"width": 0.25},
            "embedding": 256,
        },
        {
            "library": "torchvision",
            "architecture": "shufflenet_v2_x0_5",
            "arguments": {},
            "embedding": 1024,
        },
    ],
)
def test_saved_weights_give_the_same_logits_with_any_head(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    torch.manual_seed(0)
    whole = build_classifier(file_spec(**changes), num_classes=7)
    save_file(whole.state_dict(), tmp_path / "weights.safetensors")
    torch.save(whole.state_dict(), tmp_path / "weights.pt")
    logits = whole.eval()(random_images())
    *_, last = [module for module in whole.modules() if isinstance(module, nn.Linear)]
    for name in ("weights.safetensors", "weights.pt"):
        network = loaded(file_spec(**changes, file=name), tmp_path).network
        torch.testing.assert_close(last(network(random_images())), logits)


def test_a_pickle_that_runs_code_is_refused(tmp_path: Path) -> None:
    (tmp_path / "weights.pt").write_bytes(pickle.dumps(Payload(tmp_path / "victim")))
    with pytest.raises(InputError, match="not a complete file of weights"):
        loaded(file_spec(file="weights.pt"), tmp_path)
    assert not (tmp_path / "victim").exists()


class Payload:
    """An object that runs code when it is unpickled."""

    def __init__(self, victim: Path) -> None:
        self.victim = victim

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.victim),)


def test_the_layers_for_identities_of_facenet_weights_are_ignored(
    tmp_path: Path,
) -> None:
    changes = {
        "library": "facenet",
        "architecture": "inception_resnet_v1",
        "arguments": {},
        "input_size": 80,
    }
    spec = file_spec(**changes, embedding=1792)
    network, _ = build_embedding_network(spec)
    head = {
        "last_linear.weight": torch.zeros(512, 1792),
        "last_bn.bias": torch.zeros(512),
    }
    save_file(network.state_dict() | head, tmp_path / "weights.safetensors")
    embeddings = loaded(spec, tmp_path).network(random_images(size=80))
    assert torch.equal(embeddings, network.eval()(random_images(size=80)))


@pytest.mark.parametrize(
    ("arguments", "end", "message"),
    [
        (
            {"stem_width": 8},
            None,
            "does not fit ResNet .*size mismatch for conv1.0.weight",
        ),
        ({"stem_type": ""}, None, "does not fit ResNet .*Missing key"),
        ({}, -100, "not a complete file of weights"),
    ],
)
def test_wrong_weights_are_one_error_that_names_the_file(
    arguments: dict[str, Any], end: int | None, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "weights.safetensors"
    whole = build_classifier(spec_of(arguments=TINY | arguments), num_classes=3)
    save_file(whole.state_dict(), path)
    path.write_bytes(path.read_bytes()[:end])
    with pytest.raises(InputError, match=message) as error:
        loaded(file_spec(), tmp_path)
    assert error.value.where == str(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"weights": "file", "file": "absent.safetensors"},
            r"absent\.safetensors: file not found",
        ),
        ({"embedding": 9}, r"shape \(1, 8\), but `embedding` says 9"),
        (
            {"architecture": "vit_tiny_patch16_224", "arguments": {}},
            "does not take images of 32 pixels",
        ),
        ({"architecture": "resnet10"}, "unknown network. Did you mean 'resnet1"),
        (
            {"library": "project", "architecture": "cifar_resnets"},
            "Did you mean 'cifar_resnet'",
        ),
        ({"arguments": {"chanels": [4]}}, "does not take these arguments: {'chanels'"),
        ({"tensor": "mean_features"}, "has no part `features`"),
        (
            {
                "library": "torchvision",
                "architecture": "squeezenet1_1",
                "arguments": {},
            },
            "has no linear layer",
        ),
    ],
)
def test_a_wrong_description_is_one_error(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        loaded(spec_of(**changes), tmp_path)


# ---- weights from a hub


@pytest.fixture
def torch_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make torch's hub use an empty cache, and return the cache's folder of weights."""
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "hub"))
    return tmp_path / "hub" / "checkpoints"


@pytest.fixture
def timm_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the Hugging Face hub use an empty cache, and return the cache's folder."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hf"))
    return tmp_path / "hf"


HUB_SPECS = [
    hub_spec("timm", "resnet18", "a1_in1k"),
    hub_spec("torchvision", "resnet18", "IMAGENET1K_V1"),
]


@pytest.mark.usefixtures("torch_cache", "timm_cache")
@pytest.mark.parametrize("spec", HUB_SPECS, ids=lambda spec: spec.library)
def test_an_error_says_why_absent_weights_were_not_downloaded(
    spec: Backbone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: Any, **__: Any) -> None:
        raise URLError("no route to host")

    monkeypatch.setattr(torch.hub, "download_url_to_file", unreachable)
    for download, message in (
        (False, r"\(.*\). Set data.download to true"),
        (True, "could not be downloaded: "),
    ):
        with pytest.raises(InputError, match=f"not on this machine .*{message}"):
            locate_weights(spec, root=tmp_path, download=download)


def test_torchvision_weights_are_fetched_once_and_loaded(
    torch_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    whole = torchvision.models.resnet18(weights=None).eval()
    torch.save(whole.state_dict(), tmp_path / "saved")
    prefix = hashlib.sha256((tmp_path / "saved").read_bytes()).hexdigest()[:8]
    place = (tmp_path / "saved").rename(tmp_path / f"resnet18-{prefix}.pth")
    weights = torchvision.models.ResNet18_Weights.IMAGENET1K_V1
    monkeypatch.setattr(weights.value, "url", place.as_uri())
    assert (
        locate_weights(HUB_SPECS[1], root=tmp_path, download=True)
        == torch_cache / place.name
    )
    place.unlink()

    network, preprocess, provenance = loaded(HUB_SPECS[1], tmp_path)
    with torch.inference_mode():
        torch.testing.assert_close(
            whole.fc(network(random_images())), whole(random_images())
        )
    assert preprocess == torchvision_preprocess(weights)
    assert provenance["weights_sha256"].startswith(prefix)


def test_cached_timm_weights_are_loaded(timm_cache: Path, tmp_path: Path) -> None:
    torch.manual_seed(0)
    whole = timm.create_model("resnet18").eval()
    repository = timm_cache / "models--timm--resnet18.a1_in1k"
    (repository / "snapshots" / "abc").mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("abc")
    save_file(
        whole.state_dict(), repository / "snapshots" / "abc" / "model.safetensors"
    )

    network, preprocess, provenance = loaded(HUB_SPECS[0], tmp_path)
    with torch.inference_mode():
        torch.testing.assert_close(
            whole.fc(network(random_images())), whole(random_images())
        )
    assert (preprocess.size, preprocess.resize) == (224, 235)
    assert preprocess.interpolation == "bicubic"
    assert provenance["tag"] == "a1_in1k"


def test_timm_weights_without_safetensors_are_loaded_as_timm_does(
    timm_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An example is CLIP's ViT-B/32, whose repository has no model.safetensors."""
    asked = []

    def download(repository: str, file: str) -> str:
        asked.append((repository, file))
        if file.endswith(".safetensors"):
            raise EntryNotFoundError("404")
        return str(tmp_path / file)

    monkeypatch.setattr(weights_module, "hf_hub_download", download)
    clip = hub_spec(
        "timm", "vit_base_patch32_clip_quickgelu_224", "openai", embedding=768
    )
    path = locate_weights(clip, root=tmp_path, download=True)
    assert path == tmp_path / "pytorch_model.bin"
    repository = "timm/vit_base_patch32_clip_224.openai"
    assert asked == [
        (repository, "model.safetensors"),
        (repository, "pytorch_model.bin"),
    ]

    torch.manual_seed(0)
    whole = timm.create_model("resnet18").eval()
    cached = timm_cache / "models--timm--resnet18.a1_in1k"
    (cached / "snapshots" / "abc").mkdir(parents=True)
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("abc")
    torch.save(whole.state_dict(), cached / "snapshots" / "abc" / "pytorch_model.bin")
    network, _, _ = loaded(HUB_SPECS[0], tmp_path)
    with torch.inference_mode():
        torch.testing.assert_close(
            whole.fc(network(random_images())), whole(random_images())
        )


# ---- the project's own networks


@pytest.mark.real_data("weights/cifar10_resnet20", "cifar10")
def test_real_weights_reach_their_published_accuracy(project_root: Path) -> None:
    root = project_root / "data" / "raw"
    imagenet = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
    resnet20 = {
        "library": "project",
        "architecture": "cifar_resnet",
        "arguments": {"blocks": 3},
        "embedding": 64,
    }
    spec = file_spec(
        file="weights/cifar10_resnet20.safetensors", **resnet20, **imagenet
    )
    network, preprocess, _ = loaded(spec, root)
    with np.load(root / "cifar10.npz") as archive:
        images = torch.from_numpy(archive["x_test"][:2000]).permute(0, 3, 1, 2)
        labels = torch.from_numpy(archive["y_test"][:2000])
    weights = load_file(root / "weights" / "cifar10_resnet20.safetensors")
    with torch.inference_mode():
        # Small batches stay in the processor's cache.
        parts = [network(preprocess(batch)) for batch in images.split(50)]
    embeddings = torch.cat(parts)
    logits = embeddings @ weights["linear.weight"].T + weights["linear.bias"]
    accuracy = (logits.argmax(1) == labels).float().mean().item()
    # The authors of the weights state an accuracy of 91.70 % on these images.
    assert accuracy == pytest.approx(0.9170, abs=0.001)


@pytest.mark.parametrize(
    "arguments",
    [
        {"pretrained": True},
        {"pretrained_cfg_overlay": {"file": "x"}},
        {"checkpoint_path": "x.pth"},
        {"weights": "DEFAULT"},
        {"weights_backbone": "DEFAULT"},
    ],
)
def test_an_argument_that_would_fetch_weights_is_refused(
    arguments: dict[str, object],
) -> None:
    with pytest.raises(ValueError, match="set `weights: hub` and a `tag`"):
        spec_of(arguments=arguments)

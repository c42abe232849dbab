"""`make data` lists a profile's data, and fetches only files with the right sha256."""

import gzip
from pathlib import Path

import pytest

from softmax_temperature.data import catalogue
from softmax_temperature.runner.artifacts import digest_of_text
from softmax_temperature.runner.errors import InputError
from softmax_temperature.tools import needed_data

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
networks: {cnn: {architecture: text_cnn, arguments: {vocabulary_size: 9, embedding: 2}}}
classifier_temperature:
  datasets: [digits]
  backbones: [net]
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
    """A project's folder with the profile `some` and an empty data.root."""
    monkeypatch.chdir(tmp_path)
    Path("profiles").mkdir()
    Path("profiles/defaults.yaml").write_text(
        (project_root / "profiles/defaults.yaml").read_text()
    )
    Path("profiles/some.yaml").write_text(PROFILE)
    Path("data/raw").mkdir(parents=True)
    return Path("data/raw")


def test_everything_that_is_missing_is_named_and_what_is_there_has_its_digest(
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
    ):
        assert name in missing
    assert lines[-1].startswith("5 missing")


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
        match=r"changed: its sha256 is .*Put the file of the sha256 0+, unpacked, at",
    ):
        needed_data.fetch(url, root / "other", "0" * 64)
    with pytest.raises(InputError, match="the download failed"):
        needed_data.fetch(url + "x", root / "other", "0" * 64)
    assert not (root / "other").exists()

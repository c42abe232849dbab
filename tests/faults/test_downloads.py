"""A download comes to its place whole and verified, whatever the server does, or not at all."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from softmax_temperature.data.downloads import Expected, download
from softmax_temperature.data.torchvision_archives import archives_of
from torchvision import datasets
from torchvision.datasets import caltech, cifar, dtd, mnist, omniglot, svhn

from softmax_temperature.data import downloads, torchvision_sets
from softmax_temperature.data.torchvision_sets import find_torchvision_set
from softmax_temperature.runner.errors import InputError
from tests.faults.limits import files_of_at_most
from tests.faults.readers.data_sets import idx, image, pixels
from tests.faults.scripted_server import Site, cut, serving, sound, stalled, status, whole

CONTENT = np.random.default_rng(0).bytes(50_000)
NAME = "set.tar"


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A site with one file, asked again after short pauses."""
    monkeypatch.setattr(downloads, "PAUSE", 0.01)
    with serving() as site:
        site.files[f"/{NAME}"] = CONTENT
        yield site


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a server falls silent: nowhere else, for a machine that stands still looks like one."""
    monkeypatch.setattr(downloads, "TIMEOUT", (10.0, 2.0))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "raw" / NAME


def md5(content: bytes) -> Expected:
    return Expected("md5", hashlib.md5(content, usedforsecurity=False).hexdigest())


def fetch(site: Site, place: Path) -> None:
    download([site.address + NAME], place, md5(CONTENT))


def part(place: Path) -> Path:
    return place.with_name(f".{NAME}{downloads.PART}")


def assert_whole(place: Path) -> None:
    assert place.read_bytes() == CONTENT
    assert not part(place).exists()


def test_a_file_that_is_there_is_not_asked_for_again(site: Site, place: Path) -> None:
    fetch(site, place)
    fetch(site, place)
    assert_whole(place)
    assert site.ranges == [None]


def test_a_cut_connection_is_taken_up_where_it_was_cut(site: Site, place: Path) -> None:
    site.script = [cut(after=20_000), cut(after=10_000)]
    fetch(site, place)
    assert_whole(place)
    assert site.ranges == [None, "bytes=20000-", "bytes=30000-"]


def test_tries_that_bring_something_are_not_counted(site: Site, place: Path) -> None:
    site.script = [cut(after=2_000)] * (3 * downloads.TRIES)
    fetch(site, place)
    assert_whole(place)


def test_tries_that_bring_nothing_end_and_leave_what_came_before(site: Site, place: Path) -> None:
    site.script = [cut(after=20_000), *[cut(after=0)] * downloads.TRIES]
    with pytest.raises(OSError, match="broke off 5 times in a row"):
        fetch(site, place)
    assert not place.exists()
    assert part(place).read_bytes() == CONTENT[:20_000]
    fetch(site, place)
    assert_whole(place)
    assert set(site.ranges[1:]) == {"bytes=20000-"}


def test_a_server_that_knows_no_ranges_sends_all_again(site: Site, place: Path) -> None:
    site.script = [cut(after=20_000), whole]
    fetch(site, place)
    assert_whole(place)


@pytest.mark.parametrize("left", [b"another version" * 100, CONTENT + b"more", CONTENT[:-1] + b"x"])
def test_what_an_earlier_run_left_of_another_file_is_given_up(site: Site, place: Path, left: bytes) -> None:
    place.parent.mkdir()
    part(place).write_bytes(left)
    fetch(site, place)
    assert_whole(place)
    assert site.ranges == [f"bytes={len(left)}-", None]


def test_all_of_a_file_that_an_earlier_run_could_not_move_is_used(site: Site, place: Path) -> None:
    place.parent.mkdir()
    part(place).write_bytes(CONTENT)
    fetch(site, place)
    assert_whole(place)
    assert site.ranges == [f"bytes={len(CONTENT)}-"]


def test_a_partial_file_in_the_place_itself_is_not_taken_for_the_file(site: Site, place: Path) -> None:
    place.parent.mkdir()
    place.write_bytes(CONTENT[:-1])
    fetch(site, place)
    assert_whole(place)


def test_a_wrong_checksum_is_tried_once_more_and_never_comes_to_its_place(site: Site, place: Path) -> None:
    site.files[f"/{NAME}"] = b"<html>Please log in</html>"
    with pytest.raises(OSError, match=f"{NAME} sent is not the file: its md5 is not "):
        fetch(site, place)
    assert not place.exists()
    assert not part(place).exists()
    assert len(site.requests) == 2


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_busy_server_is_asked_again_with_growing_pauses(
    site: Site, place: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("urllib3.util.retry.time.sleep", pauses.append)
    site.script = [status(code)] * (downloads.TRIES - 1)
    fetch(site, place)
    assert_whole(place)
    assert len(site.requests) == downloads.TRIES
    assert pauses == sorted(pauses)
    assert len(set(pauses)) == len(pauses) > 1


def test_a_server_that_says_when_to_come_back_is_left_alone_until_then(
    site: Site, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("urllib3.util.retry.time.sleep", pauses.append)
    site.script = [status(429, Retry_After="7"), status(429, Retry_After="100000")]
    fetch(site, place)
    assert pauses == [7, downloads.LONGEST_PAUSE]


def test_a_busy_server_to_which_another_leads_is_asked_again_too(site: Site, place: Path) -> None:
    site.files["/moved"] = CONTENT
    site.script = [status(302, Location="/moved"), status(503), status(503)]
    fetch(site, place)
    assert_whole(place)


def test_a_server_that_stays_broken_is_given_up(site: Site, place: Path) -> None:
    site.script = [status(500)] * (downloads.TRIES + 1)
    with pytest.raises(OSError, match="500 Server Error"):
        fetch(site, place)
    assert len(site.requests) == downloads.TRIES
    assert not place.exists()


def test_a_full_disk_is_not_blamed_on_the_network(site: Site, place: Path) -> None:
    others = [site.address + NAME, site.address + NAME]
    with files_of_at_most(1000), pytest.raises(InputError, match=rf"{NAME}: cannot write \(File too large\)"):
        download(others, place, md5(CONTENT))
    assert len(site.requests) == 1, "another address or try would not help"
    fetch(site, place)
    assert_whole(place)


def test_a_file_that_is_not_there_is_asked_for_once(site: Site, place: Path) -> None:
    with pytest.raises(OSError, match="404 Client Error"):
        download([f"{site.address}none"], place, md5(CONTENT))
    assert len(site.requests) == 1


@pytest.mark.usefixtures("impatient")
def test_a_server_that_falls_silent_is_left_and_taken_up_again(site: Site, place: Path) -> None:
    site.script = [stalled(after=20_000)]
    fetch(site, place)
    assert_whole(place)
    assert site.ranges == [None, "bytes=20000-"]


def test_a_server_that_is_not_there_is_tried_with_growing_pauses(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(downloads.time, "sleep", pauses.append)
    with serving() as site:
        pass
    with pytest.raises(OSError, match=r"broke off .* refused"):
        download([site.address + NAME], place, md5(CONTENT))
    assert pauses == [downloads.PAUSE * 2**number for number in range(downloads.TRIES - 1)]


def test_the_next_address_is_asked_when_one_has_failed(site: Site, place: Path) -> None:
    download([f"{site.address}none", site.address + NAME], place, md5(CONTENT))
    assert_whole(place)


@pytest.mark.usefixtures("impatient")
def test_two_that_want_the_same_file_fetch_it_once(site: Site, place: Path) -> None:
    site.script = [stalled(after=1_000)]  # Long enough for the second to come.
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(fetch, site, place) for _ in range(2)]:
            done.result()
    assert_whole(place)
    assert site.ranges == [None, "bytes=1000-"]


def test_a_killed_download_is_taken_up_by_the_next(site: Site, place: Path) -> None:
    program = "import sys; from pathlib import Path; from softmax_temperature.data.downloads import *; "
    program += "download([sys.argv[1]], Path(sys.argv[2]), Expected('md5', sys.argv[3]))"
    site.script = [stalled(after=20_000)]
    arguments = [sys.executable, "-c", program, site.address + NAME, str(place), md5(CONTENT).digest]
    process = subprocess.Popen(arguments, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    try:
        deadline = time.monotonic() + 120
        while not (part(place).exists() and part(place).stat().st_size == 20_000):
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not place.exists()
    fetch(site, place)
    assert_whole(place)
    assert site.ranges == [None, "bytes=20000-"]


# ---- the data sets that torchvision knows

REQUESTED = {
    "MNIST": (mnist, "mnist"),
    "FashionMNIST": (mnist, "fashion_mnist"),
    "KMNIST": (mnist, "kmnist"),
    "EMNIST": (mnist, "emnist_letters"),
    "CIFAR10": (cifar, "cifar10"),
    "CIFAR100": (cifar, "cifar100"),
    "SVHN": (svhn, "svhn"),
    "DTD": (dtd, "dtd"),
    "Caltech101": (caltech, "caltech101"),
    "Caltech256": (caltech, "caltech256"),
    "Omniglot": (omniglot, "omniglot"),
}


def test_every_data_set_is_looked_at() -> None:
    assert {known.kind for known in torchvision_sets._SETS.values()} == set(REQUESTED)


@pytest.mark.parametrize("kind", REQUESTED)
def test_what_is_fetched_is_what_torchvision_would_fetch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """So that it finds every file in its place, with the MD5 that it knows."""
    asked: list[tuple[str, Path, str]] = []

    def note(url: str, root: Any = None, filename: str | None = None, md5: str = "", **options: Any) -> None:
        folder = Path(root or options["download_root"])
        asked.append((url, (folder / (filename or Path(url).name)).relative_to(tmp_path), md5))

    module, name = REQUESTED[kind]
    wrapper = "download_url" if kind == "SVHN" else "download_and_extract_archive"
    monkeypatch.setattr(module, wrapper, note)
    known = torchvision_sets._SETS[name]
    halves: Any = ({"background": True}, {"background": False}) if kind == "Omniglot" else ({},)
    for selection in (known.train, known.test) if isinstance(known, torchvision_sets._ArraySet) else halves:
        try:
            torchvision_sets._construct(known.kind, tmp_path, download=True, **selection)
        except (RuntimeError, OSError):  # Nothing was fetched, so nothing is there.
            continue
    ours = [(archive.addresses[0], archive.path, archive.md5) for archive in archives_of(kind)]
    assert set(ours) == set(asked)


def serve_mnist(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    resources = []
    for prefix in ("train", "t10k"):
        for kind, values in (("images-idx3", pixels(20, 28, 28)), ("labels-idx1", np.arange(20) % 10)):
            name, content = f"{prefix}-{kind}-ubyte.gz", gzip.compress(idx(values), mtime=0)
            site.files[f"/{name}"] = content
            resources.append((name, md5(content).digest))
    monkeypatch.setattr(datasets.MNIST, "resources", resources)
    monkeypatch.setattr(datasets.MNIST, "mirrors", [f"{site.address}gone/", site.address])


@pytest.mark.usefixtures("impatient")
def test_a_data_set_comes_through_a_bad_network(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve_mnist(site, monkeypatch)
    site.script = [status(500), cut(after=100), status(429), cut(after=50), stalled(after=10), sound]
    raw = find_torchvision_set("mnist", root=tmp_path, download=True)
    assert raw is not None
    assert np.array_equal(np.asarray(raw.train.images)[..., 0], pixels(20, 28, 28))
    assert raw.train.labels.tolist() == [*range(10)] * 2
    asked = len(site.requests)
    assert find_torchvision_set("mnist", root=tmp_path, download=True) is not None
    assert len(site.requests) == asked


def test_a_data_set_with_a_wrong_checksum_is_never_unpacked(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve_mnist(site, monkeypatch)
    site.files["/train-labels-idx1-ubyte.gz"] = gzip.compress(b"something else")
    with pytest.raises(InputError, match=r"data set mnist: the download failed .*its md5 is not") as caught:
        find_torchvision_set("mnist", root=tmp_path, download=True)
    assert "\n" not in str(caught.value)
    assert not [path for path in tmp_path.rglob("*ubyte*") if not path.name.startswith(".") and path.suffix != ".gz"]
    serve_mnist(site, monkeypatch)
    assert find_torchvision_set("mnist", root=tmp_path, download=True) is not None


def tar(members: dict[str, bytes], links: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, target in links.items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


HARM = b"harm"
HOSTILE_TARS = {
    "above": tar({"../harm": HARM}, {}),
    "absolute": tar({"/harm": HARM}, {}),
    "link": tar({}, {"cifar-10-batches-py": ".."}),
    "through a link": tar({"away/harm": HARM}, {"away": "../outside"}),
}


@pytest.mark.parametrize("filtered", [True, False], ids=["filtered", "before Python 3.11.4"])
@pytest.mark.parametrize("case", HOSTILE_TARS)
def test_a_hostile_tar_writes_nothing_outside_of_its_folder(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, filtered: bool
) -> None:
    """Even one with the right MD5, and where Python knows no filters."""
    if not filtered:
        monkeypatch.delattr(tarfile, "data_filter", raising=False)
    content = HOSTILE_TARS[case]
    site.files["/cifar.tar.gz"] = content
    monkeypatch.setattr(datasets.CIFAR10, "url", f"{site.address}cifar.tar.gz")
    monkeypatch.setattr(datasets.CIFAR10, "filename", "cifar.tar.gz")
    monkeypatch.setattr(datasets.CIFAR10, "tgz_md5", md5(content).digest)
    (tmp_path / "outside").mkdir()
    root = tmp_path / "root"
    with pytest.raises(InputError, match="data set cifar10: the download failed"):
        find_torchvision_set("cifar10", root=root, download=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["outside", "root"]
    assert not list((tmp_path / "outside").iterdir())
    assert not Path("/harm").exists()


def test_omniglot_is_unpacked_and_a_hostile_name_stays_inside(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digests = {}
    for half in ("images_background", "images_evaluation"):
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            for number in range(2):
                archive.writestr(f"{half}/Greek/character{number}/a.png", image("PNG"))
            archive.writestr("../../harm", HARM)
        site.files[f"/{half}.zip"] = stream.getvalue()
        digests[half] = md5(stream.getvalue()).digest
    monkeypatch.setattr(datasets.Omniglot, "download_url_prefix", site.address.removesuffix("/"))
    monkeypatch.setattr(datasets.Omniglot, "zips_md5", digests)
    sets = torchvision_sets._SETS
    few = {**sets, "omniglot": replace(sets["omniglot"], images=4)}  # type: ignore[type-var]
    monkeypatch.setattr(torchvision_sets, "_SETS", few)
    site.script = [cut(after=100), *[status(404)]]
    root = tmp_path / "a" / "root"
    with pytest.raises(InputError, match="the download failed"):
        find_torchvision_set("omniglot", root=root, download=True)
    raw = find_torchvision_set("omniglot", root=root, download=True)
    assert raw is not None
    assert len(raw.class_names) == 4
    assert not [path for path in tmp_path.rglob("harm") if not path.is_relative_to(root)]

"""Settings for all tests: one thread, no model hub, and skips that name what is
missing.
"""

import atexit
import gc
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import hypothesis
import pytest
from filelock import FileLock
from hypothesis.internal.conjecture import providers

ROOT = Path(__file__).resolve().parent.parent
BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
)


# Set these variables before torch and numpy are imported: the conftest.py of a
# subfolder may import them. Programs started by tests inherit the variables. Tests use
# one thread because the last bits of a sum depend on the number of threads, and because
# tests run in parallel.
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"
# Leave out a slow import, as `pipeline/own_source.py` does and explains. The programs
# that tests run import that module.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]


def pytest_configure() -> None:
    os.environ["MPLBACKEND"] = "Agg"
    # Shells start background jobs with SIGINT ignored. Without the next line, the
    # programs that tests interrupt would also ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["HF_HUB_OFFLINE"] = "1"
    # Test servers run on this machine, so they need no proxy.
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"
    # Hypothesis uses the same examples each time and no deadline: results must not
    # depend on how busy the machine is.
    hypothesis.settings.register_profile(
        "project", derandomize=True, deadline=None, database=None
    )
    hypothesis.settings.load_profile("project")
    # Results must not depend on the loaded modules either: Hypothesis would use their
    # constants as examples.
    providers._get_local_constants = providers.Constants


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Turn garbage collection off while test modules are imported.

    Imports leave no garbage, but the collector would scan all objects of torch
    repeatedly. Afterwards it ignores the objects that the imports have created.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers():
        missing = _missing(marker)
        if missing:
            pytest.skip(f"needs {missing}")


@pytest.fixture(scope="session")
def project_root() -> Path:
    """The checkout's root, whichever folder the tests are started in."""
    return ROOT


@pytest.fixture(scope="module")
def own_programs() -> Iterator[None]:
    """Put the programs of the tests' environment first on PATH."""
    folders = [str(Path(sys.executable).parent), os.environ["PATH"]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", os.pathsep.join(folders))
        yield


@pytest.fixture(scope="session")
def site_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site in strict mode, where a warning is an error; return its folder."""
    folder = tmp_path_factory.getbasetemp()
    # The workers of one pytest run share the site: each worker's folder is inside the
    # run's folder.
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with FileLock(folder / "site.lock"):
        if not (folder / "site").exists():
            _build_site(folder / "unfinished")
            (folder / "unfinished").rename(folder / "site")
    return folder / "site"


def _build_site(folder: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict"]
    subprocess.run(
        [*command, "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        check=True,
    )


@pytest.fixture(scope="session")
def browser_program() -> str:
    """Path of the browser that tests marked `browser` use."""
    return next(path for name in BROWSERS if (path := shutil.which(name)))


def _missing(marker: pytest.Mark) -> str | None:
    """Return what the marker's tests need and this machine lacks, or None."""
    if marker.name == "gpu":
        import torch

        return None if torch.cuda.is_available() else "a CUDA device"
    if marker.name == "browser":
        found = any(map(shutil.which, BROWSERS)) and shutil.which("chromedriver")
        return None if found else "Chromium or Chrome, and chromedriver, on PATH"
    if marker.name == "real_data":
        absent = [name for name in marker.args if not _unpacked(name)]
        return f"{', '.join(absent)} below data/raw" if absent else None
    return None


def _unpacked(name: str) -> bool:
    raw = ROOT / "data" / "raw"
    return any(
        (raw / f"{name}{ending}").exists()
        for ending in ("", ".npz", ".jsonl", ".safetensors")
    )


def pytest_unconfigure() -> None:
    """Let Python collect all objects at exit: libraries complain about any that are
    left.
    """
    gc.unfreeze()
    atexit.unregister(gc.freeze)

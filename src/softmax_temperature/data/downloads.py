"""Downloads: retried with growing pauses, resumed where the server can, and in their place only when verified.

What has arrived lies in a hidden file beside the place until all of it is there and its digest is the known one. A
download that fails leaves it, and the next one goes on from there. Statuses and pauses are urllib3's, as used by
requests; what neither does is to go on in the middle of a file.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import requests
from filelock import FileLock
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError
from urllib3.util import Retry

from softmax_temperature.runner.artifacts import sync
from softmax_temperature.runner.errors import disk_faults
from softmax_temperature.runner.progress import counting

TRIES = 5
"""Of a file from one address; a try that brings some of it counts as the first again."""
PAUSE = 1.0
"""Seconds before the second try; each later pause is twice the one before."""
LONGEST_PAUSE = 60
TIMEOUT = (10.0, 30.0)
"""Seconds until a server must have taken the call, and between any two parts of its answer."""

PART = ".part"
"""The ending of what has arrived so far."""

_PIECE = 2**18
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
_NOT_SATISFIABLE = 416
_BROKEN = (requests.ConnectionError, requests.Timeout, HTTPError)
"""What ends a try: before the answer has begun, or in the middle of it."""


@dataclass(frozen=True)
class Expected:
    """What a file must be.

    Attributes:
        algorithm: "md5", for data sets that publish nothing better, or "sha256".
        digest: in hexadecimal, or the beginning of it.
    """

    algorithm: str
    digest: str

    def fits(self, path: Path) -> bool:
        """Whether a file is there and has the digest."""
        if not path.is_file():
            return False
        with path.open("rb") as file:
            # Against damage and mistakes, not against attackers: the digests come with the library that names them.
            found = hashlib.file_digest(file, lambda: hashlib.new(self.algorithm, usedforsecurity=False))
        return found.hexdigest().startswith(self.digest)


def download(addresses: Sequence[str], path: Path, expected: Expected) -> None:
    """Fetch a file, unless it is there already.

    Two processes that want the same file wait for each other.

    Args:
        addresses: where it can be had; each next one is asked when those before it failed.
        path: where to put it.
        expected: what it must be; anything else never comes to that place.

    Raises:
        OSError: no address gave the file; says why the last one did not.
        InputError: the disk is full or the place cannot be written.
    """
    with disk_faults(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f".{path.name}.lock")):
        if expected.fits(path):
            return
        for number, address in enumerate(addresses, start=1):
            try:
                with disk_faults(path):
                    _download(address, path, expected)
            except OSError:
                if number == len(addresses):
                    raise
            else:
                return


def _download(address: str, path: Path, expected: Expected) -> None:
    part = path.with_name(f".{path.name}{PART}")
    with requests.Session() as session:
        for scheme in ("https://", "http://"):  # Also where the address leads on to.
            session.mount(scheme, HTTPAdapter(max_retries=_statuses()))
        # Twice: what an earlier run left may be of another version of the file.
        for _ in range(2):
            _fetch(session, address, part)
            if expected.fits(part):
                sync(part)
                os.replace(part, path)
                sync(path.parent)
                return
            part.unlink()
    raise OSError(f"what {address} sent is not the file: its {expected.algorithm} is not {expected.digest}")


def _statuses() -> Retry:
    """How often and when to ask again after an answer that says that there is none now."""
    return Retry(
        total=None,
        connect=0,
        read=0,
        other=0,
        status=TRIES - 1,
        status_forcelist=_TRANSIENT,
        backoff_factor=PAUSE,
        backoff_max=LONGEST_PAUSE,
        retry_after_max=LONGEST_PAUSE,
        raise_on_status=False,
    )


def _fetch(session: requests.Session, address: str, part: Path) -> None:
    """Fetch what is missing of a file, as often as it takes.

    Raises:
        OSError: the server refuses, or tries in a row brought nothing.
    """
    failures = 0
    while True:
        before = _size(part)
        try:
            return _continue(session, address, part)
        except _BROKEN as error:
            failures = 1 if _size(part) > before else failures + 1
            if failures == TRIES:
                raise OSError(f"{address} broke off {TRIES} times in a row ({_reason(error)})") from error
            time.sleep(min(PAUSE * 2 ** (failures - 1), LONGEST_PAUSE))


def _reason(error: Exception) -> str:
    """What went wrong, without the wrappings of two libraries."""
    inner = error.args[0] if error.args else error
    return " ".join(str(getattr(inner, "reason", inner)).split())


def _continue(session: requests.Session, address: str, part: Path) -> None:
    """Ask for the rest of a file, and add it to the part; a server that cannot go on in the middle sends all of it."""
    size = _size(part)
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={size}-"} if size else {})
    with session.get(address, headers=headers, stream=True, timeout=TIMEOUT) as answer:
        if answer.status_code == _NOT_SATISFIABLE:
            return  # Nothing is missing, or too much is there: the digest tells.
        answer.raise_for_status()
        resumed = answer.headers.get("Content-Range", "").startswith(f"bytes {size}-")
        with part.open("ab" if resumed else "wb") as file, _progress(part, answer) as advance:
            # As it arrives: what waits for a piece to be full is lost when the connection is.
            while piece := answer.raw.read1(_PIECE):
                file.write(piece)
                advance(len(piece))


def _progress(part: Path, answer: requests.Response) -> AbstractContextManager[Callable[[int], None]]:
    length = int(answer.headers.get("Content-Length", 0))
    name = part.name.removeprefix(".").removesuffix(PART)
    return counting(f"{name}, bytes", length) if length else nullcontext(lambda _: None)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0

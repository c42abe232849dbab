"""Joining a Ray cluster, or starting Ray on this machine; what Ray would wait for in silence is refused at once."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.stopping import held_back

if TYPE_CHECKING:
    from softmax_temperature.params import Compute

SECONDS_TO_ANSWER = 10.0
MEMORY_RETRIES = 3
"""How often Ray starts a task again that it killed because its node ran out of memory; by itself it would for ever."""
HERE = "local"
# A client's first bytes in HTTP/2, on which the head's service speaks, and an empty frame of settings (RFC 9113, 3.4).
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
_HEADER_BYTES, _KIND, _SETTINGS = 9, 3, 4


@contextmanager
def joined_cluster(compute: Compute) -> Iterator[str]:
    """Be connected to Ray within the block, and leave it as it was found.

    The address is `compute.ray_address`, else RAY_ADDRESS, else Ray is started on this machine.

    Args:
        compute: the address, and what one cell asks of a node.

    Yields:
        The address of the cluster's head, as "host:port".

    Raises:
        InputError: Ray is not installed, nothing answers at the address, or no node could ever run one cell.
    """
    ray = _ray()
    found = ray.is_initialized()
    if not found:
        _connect(ray, compute)
    try:
        _refuse_what_no_node_has(ray.nodes(), compute)
        yield ray.get_runtime_context().gcs_address
    finally:
        if not found:
            ray.shutdown()


def answers(address: str, seconds: float = SECONDS_TO_ANSWER) -> bool:
    """Whether something that speaks the protocol of Ray's head listens at "host:port"."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), seconds) as connection:
            if os.environ.get("RAY_USE_TLS") == "1":
                return True  # What it says is encrypted.
            connection.sendall(_GREETING)
            with connection.makefile("rb") as stream:
                header = stream.read(_HEADER_BYTES)
    except (OSError, ValueError, OverflowError):
        return False
    return len(header) == _HEADER_BYTES and header[_KIND] == _SETTINGS


def known_nodes(seconds: float = 5.0) -> list[dict[str, Any]] | None:
    """What `ray.nodes` returns; None if the head takes longer to say it.

    A head that dies just then lets Ray wait for it a minute, and after that end this process without a word of ours. So
    it is asked from a thread, and the caller can look further meanwhile.
    """
    import ray

    said: list[list[dict[str, Any]]] = []
    thread = threading.Thread(target=lambda: said.append(ray.nodes()), daemon=True)
    thread.start()
    thread.join(seconds)
    return said[0] if said else None


def what_no_node_has(nodes: list[dict[str, Any]], compute: Compute) -> str | None:
    """What a cell asks of a node, in words, if none of these could ever run one; Ray would wait for such a node.

    Args:
        nodes: what `ray.nodes` returns.
        compute: what one cell asks for.
    """
    cpus, gpus = compute.threads_per_cell, compute.gpus_per_cell
    has = [node["Resources"] for node in nodes if node["Alive"]]
    if any(each.get("CPU", 0) >= cpus and each.get("GPU", 0) >= gpus for each in has):
        return None
    return f"no node of the Ray cluster has {cpus} CPUs and {gpus:g} GPUs for a cell"


def _ray() -> Any:
    # Before the import, which reads them. Nothing here sends anything to anybody.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_task_oom_retries", str(MEMORY_RETRIES))
    try:
        import ray
    except ImportError as error:
        remedy = "Install the extra `ray`, or choose the engine processes."
        raise InputError("Ray is not installed", where="compute.engine", remedy=remedy) from error
    return ray


def _connect(ray: Any, compute: Compute) -> None:
    address, where = _address(compute)
    head = _recorded_address() if address == "auto" else address
    if head not in (None, HERE) and not answers(head):
        raise _refusal(f"no Ray cluster answers at {head}", where)
    # Asked for on this machine: as many cells at a time as the parameters say.
    own = {"include_dashboard": False, "num_cpus": compute.workers * compute.threads_per_cell}
    try:
        with held_back():  # Afterwards too Ray would let SIGTERM end this program in its own way.
            ray.init(address=address, **(own if address == HERE else {}))
    # Ray ends the program when it cannot reach the head; and says no more of its own faults than that they are.
    except (Exception, SystemExit) as error:
        if address == HERE:
            remedy = "Choose the engine processes, or free memory and disk."
            raise InputError(f"Ray does not start ({error})", where="compute.engine", remedy=remedy) from error
        raise _refusal(f"cannot connect to Ray at {address} ({error})", where) from error


def _address(compute: Compute) -> tuple[str, str]:
    """The address, and where it comes from."""
    if compute.ray_address:
        return compute.ray_address, "compute.ray_address"
    if address := os.environ.get("RAY_ADDRESS"):
        return address, "RAY_ADDRESS"
    return HERE, "compute.ray_address"


def _recorded_address() -> str | None:
    """The head of the cluster that this machine joined last, which is where Ray looks for "auto"."""
    path = Path(os.environ.get("RAY_TMPDIR", "/tmp"), "ray", "ray_current_cluster")  # noqa: S108  # Ray's own place.
    return path.read_text(encoding="utf-8").strip() if path.is_file() else None


def _refusal(what: str, where: str) -> InputError:
    remedy = "Start one with `ray start --head`, give its host:port, or null for Ray on this machine."
    return InputError(what, where=where, remedy=remedy)


def _refuse_what_no_node_has(nodes: list[dict[str, Any]], compute: Compute) -> None:
    gpus = compute.gpus_per_cell
    if gpus > 1 and gpus != int(gpus):
        remedy = "Give a fraction of one GPU, or a whole number."
        raise InputError(f"Ray divides single GPUs only, got {gpus}", where="compute.gpus_per_cell", remedy=remedy)
    if what := what_no_node_has(nodes, compute):
        remedy = "Ask for less (compute.threads_per_cell, compute.gpus_per_cell), or add such a node."
        raise InputError(what, where="compute.engine", remedy=remedy)

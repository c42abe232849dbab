"""Engines, which distribute a stage's cells over processes or machines."""

import ctypes
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from joblib.externals.loky import get_reusable_executor, process_executor, wait

from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.loading import uncollected
from softmax_temperature.runner.section import Compute

_SET_PARENT_DEATH_SIGNAL = 1  # The value in Linux's sys/prctl.h.
_THREADS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
_KILLED = (
    "not finished: a worker process was killed. If memory ran out, lower "
    "compute.workers; then run again"
)


Task = TypeVar("Task")
Work = Callable[[Task], str | None]  # Returns None, or one line about the failure.
Submit = Callable[[Task, float | None], "Future[str | None]"]


def run_tasks(
    work: Work[Task],
    tasks: Sequence[Task],
    compute: Compute,
    shares: Sequence[float | None],
) -> Iterator[tuple[int, str | None]]:
    """Call `work`, a module-level function, on every task.

    Yields each task's index and the result of `work` as soon as the task ends. `shares`
    are the fractions of a GPU that the tasks fill, None if unknown. In worker
    processes, tasks run at the same time only if their fractions add up to at most 1,
    where an unknown fraction counts as 1 / `workers`; Ray assigns GPUs itself. If a
    worker process is killed, tasks that have not started are not run.
    """
    if compute.engine == "serial" or (compute.engine == "processes" and len(tasks) < 2):
        for number, task in enumerate(tasks):
            yield number, work(task)
        return
    if compute.engine == "ray":
        engine = _ray
        # Ray itself keeps track of how much of each GPU its cells fill.
        parts = [0.0 for _ in shares]
    else:
        engine = _processes
        parts = [share or 1 / compute.workers for share in shares]
    # Start no more workers than there are tasks; more would only cost time and memory.
    compute = compute.model_copy(
        update={"workers": min(compute.workers, len(tasks) or 1)}
    )
    waiting = list(range(len(tasks)))
    running: dict[Future[str | None], int] = {}
    with engine(work, compute) as submit:
        while waiting or running:
            for number in list(waiting):
                filled = sum(parts[busy] for busy in running.values())
                fits = filled + parts[number] <= 1 + 1e-9
                if fits and len(running) < compute.workers:
                    running[submit(tasks[number], shares[number])] = number
                    waiting.remove(number)
            done = wait(running, return_when="FIRST_COMPLETED").done
            future = next(iter(done))
            failure = _outcome(future)
            yield running.pop(future), failure
            if failure == _KILLED:
                waiting.clear()


def _outcome(future: "Future[str | None]") -> str | None:
    try:
        return future.result()
    except process_executor.BrokenProcessPool:
        return _KILLED
    # Ray itself failed, or a node failed outside the cell.
    except Exception as error:  # noqa: BLE001
        cause = getattr(error, "cause", error)
        message = " ".join(str(cause).split())
        return f"not finished: {type(cause).__name__}: {message}"


@contextmanager
def _processes(work: Work[Task], compute: Compute) -> Iterator[Submit[Task]]:
    """Yield a function that submits a task to worker processes.

    The processes stay alive for later stages, because importing torch takes seconds.
    They are killed if the block raises an error or is interrupted; the next run resumes
    their cells from the checkpoints.
    """
    try:
        executor = get_reusable_executor(
            compute.workers,
            timeout=None,
            initializer=_begin_worker,
            initargs=(os.getpid(), str(Path.cwd())),
            env=dict.fromkeys(_THREADS, str(compute.threads_per_cell)),
        )
    # The processes share semaphores, which Linux keeps in /dev/shm.
    except (OSError, ImportError) as error:
        raise InputError(
            f"worker processes need /dev/shm, which cannot be used here ({error})",
            where="compute.engine",
            remedy="Set it to serial, or mount /dev/shm.",
        ) from error

    def submit(task: Task, _: float | None) -> "Future[str | None]":
        future: Future[str | None] = executor.submit(work, task)
        return future

    try:
        yield submit
    except BaseException:
        executor.shutdown(kill_workers=True)
        raise


def _begin_worker(stage: int, folder: str) -> None:
    """Ignore interrupts; on Linux, end with process `stage`, even if it is killed."""
    # Ctrl-C in a terminal interrupts both the stage and its workers. The stage ends the
    # workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != stage:
            os.kill(os.getpid(), signal.SIGKILL)
    os.chdir(folder)
    with uncollected():
        import_module("torch")  # Every cell needs it.
    # By default Loky replaces a process that has grown by 300 MB. Every training run
    # makes its process grow that much, because torch's allocators keep freed memory.
    process_executor._MAX_MEMORY_LEAK_SIZE = sys.maxsize  # noqa: SLF001


@contextmanager
def _ray(work: Work[Task], compute: Compute) -> Iterator[Submit[Task]]:
    """Yield a function that submits a task to Ray, on a cluster or this machine."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        ray: Any = import_module("ray")  # An optional package.
    except ImportError as error:
        remedy = "Install the extra `ray`, or set it to processes."
        raise InputError(
            "Ray is not installed", where="compute.engine", remedy=remedy
        ) from error

    @cache
    def remote(gpus: float) -> Any:
        # Set the resources here instead of later with `.options`, so that Ray starts a
        # fresh process for every cell that uses a GPU. A reused process would keep the
        # GPU of its first cell, whichever GPU Ray assigns to the next cell.
        decorate = ray.remote(
            num_cpus=compute.threads_per_cell,
            num_gpus=gpus,
            max_retries=3,
            scheduling_strategy="SPREAD",
        )
        return decorate(_on_node)

    def submit(task: Task, share: float | None) -> "Future[str | None]":
        gpus = compute.gpus_per_cell
        if gpus and share:  # If `gpus_per_cell` is 0, cells get no GPU.
            gpus = share
        future: Future[str | None] = (
            remote(gpus).remote(str(Path.cwd()), work, task).future()
        )
        return future

    _join(ray, compute)
    try:
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        refuse_sharing_one_gpu(nodes, compute)
        yield submit
    finally:
        ray.shutdown()  # Shutting Ray down also ends its cells.


def _on_node(folder: str, work: Work[Task], task: Task) -> str | None:
    os.chdir(folder)  # All nodes must share this file system.
    return work(task)


def _join(ray: Any, compute: Compute) -> None:
    address = compute.ray_address or os.environ.get("RAY_ADDRESS") or "local"
    options: dict[str, Any] = {}
    if address == "local":
        # This machine runs at most `workers` cells at a time.
        options["num_cpus"] = compute.workers * compute.threads_per_cell
        options["include_dashboard"] = False
    handler = signal.getsignal(signal.SIGTERM)
    try:
        if ":" in address:
            host, _, port = address.rpartition("/")[2].rpartition(":")
            # Try the address first, because Ray itself would retry for minutes.
            socket.create_connection((host, int(port)), timeout=10).close()
        ray.init(address=address, ignore_reinit_error=True, **options)
    except Exception as error:
        remedy = (
            "Start a cluster with `ray start --head`, give its host:port, or null for "
            "Ray on this machine."
        )
        problem = f"cannot connect to Ray at {address} ({error})"
        raise InputError(problem, where="compute.ray_address", remedy=remedy) from error
    finally:
        signal.signal(signal.SIGTERM, handler)  # Ray has installed its own handler.


def refuse_sharing_one_gpu(
    nodes: Sequence[Mapping[str, float]], compute: Compute
) -> None:
    """Refuse settings with which several cells would use a node's first GPU.

    Requests for resources that no node has are not checked here, because Ray reports
    them.
    """
    if compute.gpus_per_cell or compute.device == "cpu":
        return
    if any(node.get("GPU", 0) > 1 for node in nodes):
        problem = (
            "is 0, so all cells on a node with several GPUs would use the first one"
        )
        remedy = (
            "Set it to 1, or to a fraction for small networks; or set compute.device "
            "to cpu."
        )
        raise InputError(problem, where="compute.gpus_per_cell", remedy=remedy)

"""A command `python` that starts with its libraries imported: a fork of one server.

Importing torch takes a process seconds, which is most of what the programs in tests do.
The server imports libraries alone, never this package. So a fork still imports the
package that its own folder, PYTHONPATH and environment name, in a process of its own.
"""

import atexit
import gc
import json
import os
import runpy
import select
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

LIBRARIES = (
    "dvc.cli",
    "dvc.commands.repro",
    "dvc.repo",
    "dvc.stage",
    "grimp",
    "huggingface_hub",
    "joblib",
    "matplotlib",
    "pandas",
    "pyarrow",
    "safetensors.torch",
    "scipy.optimize",
    "scipy.stats",
    "tokenizers",
    "torch",
)
PROGRAMS = ("dvc", "softmax-temperature")
_LENGTH = 8  # Bytes of a number that says how long a request is.
_STREAMS = 3  # Input, output and errors.
# The client's Python reads no site-packages, so that it starts in milliseconds.
_CLIENT = """
import json, os, socket, sys

_, first, *_ = [*sys.argv, "-"]
if first.startswith("-") and first not in ("-c", "-m"):
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
request = [sys.argv[1:], os.getcwd(), dict(os.environ)]
content = json.dumps(request).encode()
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [len(content).to_bytes({length}, "big")], [0, 1, 2])
    server.sendall(content)
    sys.exit(int(server.makefile().read() or 1))
"""


@contextmanager
def warm_python(folder: Path) -> Iterator[Path]:
    """A folder for PATH with `python` and our programs, while the block runs.

    Where processes cannot be forked safely, they are the environment's own.
    """
    places = folder / "bin"
    places.mkdir()
    own = Path(sys.executable).parent
    if sys.platform != "linux":
        yield own
        return
    address = folder / "socket"
    client = folder / "client.py"
    client.write_text(
        _CLIENT.format(python=sys.executable, address=str(address), length=_LENGTH)
    )
    _write_program(places / "python", sys.executable, "-IS", str(client))
    for name in PROGRAMS:
        _write_program(places / name, str(places / "python"), str(own / name))
    names = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    server = subprocess.Popen(
        [sys.executable, __file__, str(address)],
        env=names,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        server.stdout.readline()
        yield places
    finally:
        server.stdin.close()
        server.wait()
        server.stdout.close()


def _write_program(path: Path, *words: str) -> None:
    quoted = " ".join(f"'{word}'" for word in words)
    path.write_text(f'#!/bin/sh\nexec {quoted} "$@"\n')
    path.chmod(0o755)


def serve(address: str) -> None:
    """Fork for each request, until the input ends; a fork becomes its program."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        sys.stdout.write("listening\n")
        sys.stdout.flush()
        for name in LIBRARIES:
            with suppress(ImportError):
                import_module(name)
        gc.freeze()  # No fork looks for garbage among the libraries.
        while sys.stdin not in (ready := select.select([server, sys.stdin], [], [])[0]):
            connection, _ = server.accept()
            if os.fork() == 0:
                break
            connection.close()
            _bury()
    if sys.stdin in ready:
        _bury()
        os._exit(0)
    arguments, folder, environment = _receive(connection)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    _end(_code_of(arguments))


def _bury() -> None:
    """Take the exit codes of forks that have ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def _receive(connection: socket.socket) -> Any:
    """The request, in a fork with the client's streams; its parent waits for it."""
    with connection:
        length, streams, *_ = socket.recv_fds(connection, _LENGTH, _STREAMS)
        with connection.makefile("rb") as content:
            request = json.loads(content.read(int.from_bytes(length, "big")))
        child = os.fork()
        if child == 0:
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
        # Readers of a pipe wait until it is closed everywhere.
        for stream in streams:
            os.close(stream)
        if child == 0:
            return request
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        # As a shell says that a signal ended it.
        connection.sendall(str(code if code >= 0 else 128 - code).encode())
    os._exit(0)


def _code_of(arguments: Sequence[str]) -> int:
    """Run a program; returns its exit code."""
    try:
        _run(arguments)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        sys.stderr.write(f"{end.code}\n")
        return 1
    except BaseException:  # noqa: BLE001 - as Python itself does
        traceback.print_exc()
        return 1
    return 0


def _end(code: int) -> None:
    """End as Python does, without the half second in which it frees the libraries."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _run(arguments: Sequence[str]) -> None:
    """Run code, a module or a file as Python's command line does."""
    kind, *rest = arguments
    own = [place for place in sys.path if place != str(Path(__file__).parent)]
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [*filter(None, given), *own]
    if kind == "-c":
        sys.argv[:] = ["-c", *rest[1:]]
        sys.path.insert(0, "")
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102
    elif kind == "-m":
        sys.argv[:] = rest
        sys.path.insert(0, str(Path.cwd()))
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv[:] = [kind, *rest]
        sys.path.insert(0, str(Path(kind).resolve().parent))
        runpy.run_path(kind, run_name="__main__")


if __name__ == "__main__":
    serve(sys.argv[1])

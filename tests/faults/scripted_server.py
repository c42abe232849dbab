"""A web server on this machine that fails as it is told to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[["Handler", bytes], None]
"""Answers one request, given the bytes that were asked for."""

STALL = 20.0
"""Seconds without a byte, longer than any test waits for one."""


@dataclass
class Site:
    """What is served, and what was asked for.

    Attributes:
        address: of its root, with a slash at its end.
        files: path to content; another path is answered with 404.
        script: how the next requests are answered; then as a sound server would.
        requests: path and `Range` of each request, in order.
        headers: sent with every file, by path.
    """

    address: str
    files: dict[str, bytes] = field(default_factory=dict)
    script: list[Answer] = field(default_factory=list)
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    headers: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def ranges(self) -> list[str | None]:
        """The `Range` of each request."""
        return [wanted for _, wanted in self.requests]


class Handler(BaseHTTPRequestHandler):
    """Serves a `Site`."""

    site: Site
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.site.requests.append((self.path, wanted))
        if self.path not in self.site.files:
            self.send_error(404)
            return
        answer = self.site.script.pop(0) if self.site.script else sound
        answer(self, self.site.files[self.path])

    def do_HEAD(self) -> None:
        if self.path not in self.site.files:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_whole_headers(len(self.site.files[self.path]))

    def send_whole_headers(self, length: int) -> None:
        self.send_header("Content-Length", str(length))
        for name, value in self.site.headers.get(self.path, {}).items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


def sound(handler: Handler, content: bytes) -> None:
    """All that is asked for, from the middle if that is asked."""
    start = _start(handler)
    if start > 0 and start >= len(content):
        handler.send_error(416)
        return
    handler.send_response(206 if start else 200)
    if start:
        handler.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
    handler.send_whole_headers(len(content) - start)
    handler.wfile.write(content[start:])


def whole(handler: Handler, content: bytes) -> None:
    """All of it, whatever part is asked for: a server that knows no ranges."""
    handler.send_response(200)
    handler.send_whole_headers(len(content))
    handler.wfile.write(content)


def cut(after: int) -> Answer:
    """As many bytes of what was announced, then the end of the connection."""

    def answer(handler: Handler, content: bytes) -> None:
        _begin(handler, content, after)
        handler.close_connection = True
        handler.connection.close()

    return answer


def stalled(after: int) -> Answer:
    """As many bytes, then nothing for longer than anybody waits."""

    def answer(handler: Handler, content: bytes) -> None:
        _begin(handler, content, after)
        time.sleep(STALL)
        handler.close_connection = True

    return answer


def status(code: int, **headers: str) -> Answer:
    """An error."""

    def answer(handler: Handler, _: bytes) -> None:
        handler.send_response(code)
        handler.send_header("Content-Length", "0")
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()

    return answer


def _begin(handler: Handler, content: bytes, after: int) -> None:
    start = _start(handler)
    handler.send_response(206 if start else 200)
    if start:
        handler.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
    handler.send_whole_headers(len(content) - start)
    handler.wfile.write(content[start : start + after])
    handler.wfile.flush()


def _start(handler: Handler) -> int:
    return int(handler.headers.get("Range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))


@contextmanager
def serving() -> Iterator[Site]:
    """A site that is up until the block ends."""
    handler = type("OfThisSite", (Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    handler.site = Site(f"http://127.0.0.1:{server.server_port}/")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield handler.site
    finally:
        server.shutdown()
        thread.join()
        server.socket.close()

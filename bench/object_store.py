"""An S3 server on the loopback that counts what it is asked for, in a process of its own.

moto answers; what stands before it counts GET requests and the bytes of their answers, and lets each wait for a first
byte as long as a real store would, because the loopback has no distance.
"""

from __future__ import annotations

import argparse
import json
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import pyarrow.fs

COUNTS_PATH = "/_counts"
BUCKET = "bench"


@dataclass(frozen=True, slots=True)
class Requests:
    """What was asked for: GET requests, and the bytes that answered them."""

    gets: int
    bytes: int


class ObjectStore:
    """A running server; leaving the context ends it."""

    def __init__(self, first_byte_milliseconds: float) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._address = f"127.0.0.1:{self._port}"
        self._milliseconds = first_byte_milliseconds
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.object_store", str(self._port), str(self._milliseconds)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self._port)).close()
            except OSError:
                time.sleep(0.1)
            else:
                self.filesystem().create_dir(BUCKET)
                return self
        self._end()
        raise TimeoutError("the object store did not start")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()

    def filesystem(self) -> Any:
        """Open it as pyarrow does."""
        return pyarrow.fs.S3FileSystem(
            access_key="bench",
            secret_key="bench",
            region="us-east-1",
            scheme="http",
            endpoint_override=self._address,
            allow_bucket_creation=True,
            # A busy machine keeps a request waiting; that must show in the time, and not end the measurement.
            request_timeout=300,
            connect_timeout=60,
        )

    def counted(self) -> Requests:
        """Say what was asked for since the last call."""
        with urllib.request.urlopen(f"http://{self._address}{COUNTS_PATH}") as answer:
            found = json.load(answer)
        return Requests(found["gets"], found["bytes"])


class _Counting:
    """A WSGI application before another: counts, and makes GET requests wait."""

    def __init__(self, behind: Any, first_byte_seconds: float) -> None:
        self._behind = behind
        self._seconds = first_byte_seconds
        self._lock = threading.Lock()
        self._gets = self._bytes = 0

    def __call__(self, environment: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environment["PATH_INFO"] == COUNTS_PATH:
            return self._answer(start)
        if environment["REQUEST_METHOD"] != "GET":
            return self._behind(environment, start)  # type: ignore[no-any-return]
        time.sleep(self._seconds)

        def counting(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            with self._lock:
                self._gets += 1
                self._bytes += int({name.lower(): value for name, value in headers}.get("content-length", 0))
            return start(status, headers, *rest)

        return self._behind(environment, counting)  # type: ignore[no-any-return]

    def _answer(self, start: Callable[..., Any]) -> list[bytes]:
        with self._lock:
            body = json.dumps({"gets": self._gets, "bytes": self._bytes}).encode()
            self._gets = self._bytes = 0
        start("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]


def main() -> None:
    """Serve until terminated."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import run_simple

    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("milliseconds", type=float)
    found = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    served = _Counting(DomainDispatcherApplication(create_backend_app), found.milliseconds / 1000)
    run_simple("127.0.0.1", found.port, served, threaded=True, request_handler=MotoRequestHandler)


if __name__ == "__main__":
    main()

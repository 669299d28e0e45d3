"""A bad line to a service: every request arrives, but its first two answers do not come back."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Line(ThreadingHTTPServer):
    """Remembers what was sent how often."""

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.port = port
        self.sent: Counter[tuple[str, str, bytes]] = Counter()


class _Handler(BaseHTTPRequestHandler):
    server: Line

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, answer = self._asked(body)
        key = (self.command, self.path, body)
        self.server.sent[key] += 1
        if self.server.sent[key] == 1:  # the line is cut after the service has answered
            self.close_connection = True
            return
        if self.server.sent[key] == 2:
            status, answer = 502, b"<html>Bad Gateway</html>"
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def _asked(self, body: bytes) -> tuple[int, bytes]:
        there = HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        try:
            there.request(self.command, self.path, body or None, dict(self.headers))
            reply = there.getresponse()
            return reply.status, reply.read()
        finally:
            there.close()

    do_GET = do_POST = _pass_on

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def bad_line(port: int) -> Iterator[Line]:
    """Pass requests on to this port of this machine."""
    line = Line(port)
    thread = threading.Thread(target=line.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield line
    finally:
        line.shutdown()
        thread.join()
        line.server_close()

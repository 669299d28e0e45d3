"""A network that fails at the worst moment: after COMMIT was sent, before anybody hears of it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SOCKET = ".s.PGSQL.5432"


class Proxy:
    """Passes bytes on to a server, until it is told to cut the line at a COMMIT."""

    def __init__(self, folder: Path, target: Path) -> None:
        self.folder, self._target = folder, target / SOCKET
        self.cut_after_commit = False
        self._sockets: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / SOCKET))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):  # until it is closed
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                self._sockets += [client, server]
                server.connect(str(self._target))
                threading.Thread(target=self._forth, args=(client, server), daemon=True).start()
                threading.Thread(target=self._pass, args=(server, client), daemon=True).start()

    def _forth(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                if self.cut_after_commit and b"COMMIT\0" in data:
                    client.shutdown(socket.SHUT_RDWR)  # the answer will find nobody
                    server.sendall(data)
                    server.shutdown(socket.SHUT_WR)
                    return
                server.sendall(data)

    def _pass(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        for each in (self._listener, *self._sockets):
            each.close()


@contextmanager
def proxy(folder: Path, target: Path) -> Iterator[Proxy]:
    """Listen in a folder of its own; its path must be short."""
    made = Proxy(folder, target)
    try:
        yield made
    finally:
        made.close()

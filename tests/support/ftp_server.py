"""An FTP server for tests: a folder, read-only, on loopback. It has the commands that fsspec's client sends."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path


class _Session(socketserver.StreamRequestHandler):
    server: _Server
    disable_nagle_algorithm = True

    def handle(self) -> None:
        # A client that aborts sends the end of its line as urgent data.
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
        self.offset = 0
        self.passive: socket.socket | None = None
        try:
            self.converse()
        finally:
            self.close_passive()  # a client that is killed may have asked for a connection that it never makes

    def converse(self) -> None:
        with contextlib.suppress(OSError):
            self.say("220 ready")
            while line := self.rfile.readline():
                # fmt: off
                command, _, argument = line.replace(b"\xff\xf4\xff\xf2", b"").decode().strip().partition(" ")
                # fmt: on
                with self.server.lock:
                    self.server.commands.append(command)
                getattr(self, f"do_{command.lower()}", self.unknown)(argument)

    def say(self, line: str) -> None:
        self.wfile.write(line.encode() + b"\r\n")

    def unknown(self, argument: str) -> None:
        self.say("502 not here")

    def do_user(self, argument: str) -> None:
        self.say("331 password")

    def do_pass(self, argument: str) -> None:
        self.say("230 in")

    def do_type(self, argument: str) -> None:
        self.say("200 ok")

    def do_abor(self, argument: str) -> None:
        self.say("226 aborted")

    def do_rest(self, argument: str) -> None:
        self.offset = int(argument)
        self.say("350 go on")

    def do_pasv(self, argument: str) -> None:
        self.close_passive()
        self.passive = socket.create_server(("127.0.0.1", 0))
        self.passive.settimeout(30)
        high, low = divmod(self.passive.getsockname()[1], 256)
        self.say(f"227 at (127,0,0,1,{high},{low})")

    def close_passive(self) -> None:
        if self.passive is not None:
            self.passive.close()
            self.passive = None

    def do_mlsd(self, argument: str) -> None:
        folder = self.path_of(argument)
        if not folder.is_dir():
            self.say("550 no such folder")
            return
        lines = list[str]()
        for entry in folder.iterdir():
            with contextlib.suppress(FileNotFoundError):  # gone since it was listed
                status = entry.stat()
                modified = datetime.fromtimestamp(status.st_mtime, UTC).strftime("%Y%m%d%H%M%S")
                lines.append(f"type={'dir' if entry.is_dir() else 'file'};size={status.st_size};modify={modified}; {entry.name}\r\n")
        self.send("".join(lines).encode())

    def do_retr(self, argument: str) -> None:
        offset, self.offset = self.offset, 0
        try:
            data = self.path_of(argument).read_bytes()[offset:]
        except OSError:
            self.say("550 no such file")
            return
        self.send(data)

    def send(self, data: bytes) -> None:
        assert self.passive is not None
        self.say("150 here it comes")
        with self.passive, self.passive.accept()[0] as connection:
            try:
                connection.sendall(data)
            except ConnectionError:
                self.say("426 aborted")
                return
        self.say("226 done")

    def path_of(self, argument: str) -> Path:
        return self.server.folder / argument.lstrip("/")


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.folder, self.commands, self.lock = folder, list[str](), threading.Lock()


@contextmanager
def ftp_server(folder: Path) -> Iterator[str]:
    """Serve the folder within the block, and yield its URL."""
    with _Server(folder) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"ftp://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()

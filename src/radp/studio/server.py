"""The studio's own web server: on the loopback device, for one reader, with nothing but its page and its answers.

The address holds a random token; who does not know it gets nothing. Requests from pages of other origins, and with
another host name (a name that was made to lead here), are refused. Whatever a request holds, the server lives on.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from radp.runs.errors import BadInput, sentence
from radp.runs.json_text import json_text
from radp.runs.processes import LOOPBACK
from radp.studio.page import studio_page
from radp.studio.request import parse_what_if, read_json
from radp.studio.studio import Studio
from radp.version import __version__

MOST_BYTES = {"load": 200_000_000}  # of a request
MOST_BYTES_ELSE = 1_000_000
PATIENCE = 30.0  # s in which a request must have come
MOST_DISCARDED, DISCARD_S = 64_000_000, 2.0  # bytes, and seconds, of what a refused request still sends
JSON, HTML = "application/json", "text/html; charset=utf-8"


class Refusal(Exception):
    """A request that is answered with an error alone."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class StudioServer(ThreadingHTTPServer):
    """Serves a studio at `address` until it is shut down."""

    daemon_threads = True

    def __init__(self, studio: Studio, port: int = 0) -> None:
        self.studio, self.token = studio, secrets.token_urlsafe(24)
        self.page, self.policy = studio_page()
        super().__init__((LOOPBACK, port), StudioHandler)
        names = (LOOPBACK, "localhost")
        self.hosts = {f"{name}:{self.server_port}" for name in names}
        self.origins = {f"http://{host}" for host in self.hosts}

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK}:{self.server_port}/{self.token}/"

    def serve_in_background(self) -> threading.Thread:
        """For tests and notebooks."""
        thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        return thread

    def close(self) -> None:
        """Stop the server, and drives that are under way."""
        self.shutdown()
        self.server_close()
        self.studio.jobs.close()


class StudioHandler(BaseHTTPRequestHandler):
    """One request: who asks is checked first, then how much, then what."""

    server: StudioServer
    server_version, sys_version = f"radp/{__version__}", ""
    protocol_version = "HTTP/1.1"
    timeout = PATIENCE
    disable_nagle_algorithm = True  # else the body of an answer may wait 40 ms for the receipt of its head

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is written: the address is a secret."""

    def _get(self, path: str) -> tuple[str, bytes]:
        studio = self.server.studio
        if path == "":
            return HTML, self.server.page
        if path == "api/start":
            return JSON, _json(studio.start())
        what, _, which = path.removeprefix("api/").partition("/")
        if path.startswith("api/") and what == "scenario":
            return JSON, _json(studio.scenario(_number(which)))
        if path.startswith("api/") and what == "drive":
            return JSON, _json(studio.jobs.get(_number(which)).state())
        raise Refusal(HTTPStatus.NOT_FOUND, "there is nothing here")

    def _post(self, path: str) -> tuple[str, bytes]:
        studio, what = self.server.studio, path.removeprefix("api/")
        if not path.startswith("api/") or what not in ("plan", "fan", "drive", "stop", "save", "load", "rules"):
            raise Refusal(HTTPStatus.NOT_FOUND, "there is nothing here")
        data = read_json(self._body(MOST_BYTES.get(what, MOST_BYTES_ELSE)))
        if what == "load":
            return JSON, _json(studio.bring(data))
        if what == "stop":
            studio.jobs.stop_all()
            return JSON, b"{}"
        asked = parse_what_if(data)
        if what == "save":
            return JSON, studio.save(asked)
        if what == "rules":
            return JSON, _json(studio.rules(asked.planner))
        return JSON, _json({"plan": studio.plan, "fan": studio.fan, "drive": studio.drive}[what](asked))

    def _answer(self, respond: Callable[[str], tuple[str, bytes]]) -> None:
        """Whatever goes wrong is an answer too."""
        status = HTTPStatus.OK
        try:
            kind, body = respond(self._checked_path())
        except Refusal as refusal:
            status, (kind, body) = refusal.status, (JSON, _json({"error": refusal.reason}))
            self.close_connection = True  # what else was sent is not read
        except (BadInput, ValueError) as error:
            status, (kind, body) = HTTPStatus.BAD_REQUEST, (JSON, _json({"error": sentence(error)}))
        except (ConnectionError, TimeoutError):
            self.close_connection = True
            return
        except Exception as error:
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            kind, body = JSON, _json({"error": f"a fault of radp: {sentence(error)}"})
        try:
            self._send(status, kind, body)
            if self.close_connection:
                self._discard()
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def _discard(self) -> None:
        """Take what a refused client still sends: closing on unread bytes resets the connection, the answer is lost."""
        end, taken = time.monotonic() + DISCARD_S, 0
        self.connection.shutdown(socket.SHUT_WR)  # the answer is whole
        while taken < MOST_DISCARDED and (left := end - time.monotonic()) > 0:
            self.connection.settimeout(left)
            some = self.connection.recv(1 << 16)
            if not some:
                return
            taken += len(some)

    def _checked_path(self) -> str:
        """The path behind the token. Refusal unless the request is one of the page's own."""
        if self.headers.get("Host", "") not in self.server.hosts:
            raise Refusal(HTTPStatus.FORBIDDEN, "this host name is not the studio's")
        origin = self.headers.get("Origin")
        if origin is not None and origin not in self.server.origins:
            raise Refusal(HTTPStatus.FORBIDDEN, "pages of other origins may not ask the studio")
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            raise Refusal(HTTPStatus.FORBIDDEN, "pages of other origins may not ask the studio")
        token, slash, path = self.path.removeprefix("/").partition("/")
        if not slash or not hmac.compare_digest(token.encode(), self.server.token.encode()):
            raise Refusal(HTTPStatus.FORBIDDEN, "the address lacks the studio's token; take the one that it printed")
        return path.partition("?")[0]

    def _body(self, most: int) -> bytes:
        if self.headers.get_content_type() != JSON:
            raise Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"expected {JSON}")
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            raise Refusal(HTTPStatus.LENGTH_REQUIRED, "expected a Content-Length")
        if len(length) > 12 or int(length) > most:
            raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {most:,} bytes")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise Refusal(HTTPStatus.BAD_REQUEST, "the request ended early")
        return body

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        if self.close_connection:
            self.send_header("Connection", "close")
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Content-Security-Policy", self.server.policy if kind == HTML else "default-src 'none'"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _json(data: Any) -> bytes:
    return json_text(data, indent=None, separators=(",", ":")).encode()


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise BadInput("expected a number")
    return int(text)

"""A web server on this machine, with the faults that real ones have."""

import contextlib
import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Site:
    """What a server offers, how it misbehaves, what it was asked, and from which bytes on it
    answered.

    ``faults`` are taken one per request: a status code, "reset" (the connection is torn down before
    an answer), a number of bytes as ("cut", n) after which the answer breaks off, or None for an
    answer without fault.
    """

    def __init__(self, port):
        self.base = f"http://127.0.0.1:{port}/"
        self.files, self.faults, self.requests, self.starts = {}, [], [], []
        self.ranges, self.tag, self.date = True, '"v1"', None
        self.elsewhere = {}  # path -> the address where it is now

    def offer(self, name, content):
        self.files[f"/{name}"] = content
        return self.base + name


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        site = self.server.site
        site.requests.append((self.path, self.headers.get("Range")))
        fault = site.faults.pop(0) if site.faults else None
        if fault == "reset":
            return self.tear_down()
        if isinstance(fault, int):
            return self.send_error(fault)
        if self.path in site.elsewhere:
            self.send_response(302)
            self.send_header("Location", site.elsewhere[self.path])
            self.end_headers()
            return None
        content = site.files.get(self.path)
        if content is None:
            return self.send_error(404)
        start = self.wanted(site)
        if start >= len(content):
            return self.send_error(416)
        site.starts.append(start)
        body = content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if site.tag:
            self.send_header("ETag", site.tag)
        if site.date:
            self.send_header("Last-Modified", site.date)
        self.end_headers()
        if fault is None:
            self.wfile.write(body)
        else:
            self.wfile.write(body[: fault[1]])
            self.close_connection = True

    def wanted(self, site):
        """From which byte on."""
        asked = self.headers.get("Range")
        if not asked or not site.ranges:
            return 0
        condition = self.headers.get("If-Range")
        if condition is not None and (
            condition not in (site.tag, site.date) or condition.startswith("W/")
        ):
            return 0  # another version, or a weak tag, which never counts here
        return int(asked.removeprefix("bytes=").removesuffix("-"))

    def tear_down(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.close()

    def finish(self):
        with contextlib.suppress(OSError, ValueError):  # the socket may be gone
            super().finish()

    def log_message(self, *arguments):
        pass


@pytest.fixture
def site(monkeypatch):
    for proxy in (
        "http_proxy",
        "HTTP_PROXY",
        "https_proxy",
        "HTTPS_PROXY",
        "all_proxy",
        "ALL_PROXY",
    ):
        monkeypatch.delenv(proxy, raising=False)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.site = Site(server.server_address[1])
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    yield server.site
    server.shutdown()
    server.server_close()
    thread.join()

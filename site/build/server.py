"""Serve dist/ the way a static host does: right types, gzip for text and wasm, short caching for the names that stay."""

from __future__ import annotations

import errno
import gzip
import posixpath
import sys
import threading
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8", ".json": "application/json", ".wasm": "application/wasm", ".svg": "image/svg+xml",
    ".png": "image/png", ".webmanifest": "application/manifest+json", ".py": "text/plain; charset=utf-8", ".txt": "text/plain; charset=utf-8",
    ".zip": "application/zip", ".whl": "application/octet-stream", ".bin": "application/octet-stream",
}
COMPRESSED = {".html", ".js", ".mjs", ".css", ".json", ".wasm", ".svg", ".webmanifest", ".py", ".txt"}


@lru_cache(maxsize=256)
def _gzipped(path: Path, _modified: int) -> bytes:
    return gzip.compress(path.read_bytes(), 6, mtime=0)


def make_server(folder: Path, port: int = 0, prefix: str = "/", quiet: bool = True) -> ThreadingHTTPServer:
    """A server of `folder` under `prefix` (as a project page is) on the loopback address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else every small file waits 40 ms for the browser's acknowledgement of its headers
        wbufsize = -1  # headers and body leave together

        def do_GET(self):
            self.answer(body=True)

        def do_HEAD(self):
            self.answer(body=False)

        def answer(self, body: bool):
            path = posixpath.normpath(unquote(urlsplit(self.path).path))
            file = None
            if (path + "/").startswith(prefix) and ".." not in path.split("/"):
                file = folder / path[len(prefix.rstrip("/")):].lstrip("/")
                file = file / "index.html" if file.is_dir() else file
            status = 200 if file and file.is_file() else 404
            data = b"404: there is no such file\n"
            headers = {"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store"}
            if status == 200:
                headers["Content-Type"] = TYPES.get(file.suffix, "application/octet-stream")
                stays = file.name in ("index.html", "sw.js", "404.html") or file.parent == folder
                headers["Cache-Control"] = "no-cache" if stays else "public, max-age=31536000, immutable"
                if file.suffix in COMPRESSED and "gzip" in self.headers.get("Accept-Encoding", ""):
                    headers["Content-Encoding"] = "gzip"
                    data = _gzipped(file, file.stat().st_mtime_ns)
                else:
                    data = file.read_bytes()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if body:
                try:
                    self.wfile.write(data)
                except (BrokenPipeError, ConnectionResetError):
                    pass  # the browser went away

        def log_message(self, *args):
            if not quiet:
                super().log_message(*args)

    class Server(ThreadingHTTPServer):
        def handle_error(self, request, client_address):
            if not isinstance(sys.exception(), ConnectionError):
                super().handle_error(request, client_address)  # a browser that hangs up is no error of ours

    server = Server(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    return server


def start(folder: Path, prefix: str = "/", port: int = 0):
    """Serve from a thread; return (server, address)."""
    server = make_server(folder, port, prefix)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}{prefix}"


def serve_forever(folder: Path, port: int) -> None:
    """Serve until interrupted, on `port` or the next free one."""
    for candidate in (*range(port, port + 20), 0):
        try:
            server = make_server(folder, candidate)
            break
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
    print(f"\n  Roofline is at  http://127.0.0.1:{server.server_address[1]}/   (Ctrl+C stops it)\n", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass

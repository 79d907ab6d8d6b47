"""Firefox by WebDriver BiDi, with the standard library only: one WebSocket, one JSON object a message.

Just what the tests need: open a page, evaluate JavaScript in it, hear of console messages and requests. No fragments, no
compression, text only; that is what Firefox sends.
"""

from __future__ import annotations

import base64
import json
import os
import re
import socket
import struct
import subprocess
import tempfile
import time
from pathlib import Path


class WebSocket:
    """The client's side of RFC 6455."""

    def __init__(self, host: str, port: int, path: str):
        self.socket = socket.create_connection((host, port), timeout=120)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        self.buffer = b""
        head = self._until(b"\r\n\r\n")
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise ConnectionError(head.decode(errors="replace"))

    def _until(self, end: bytes) -> bytes:
        while end not in self.buffer:
            self._more()
        head, _, self.buffer = self.buffer.partition(end)
        return head

    def _more(self) -> None:
        got = self.socket.recv(65536)
        if not got:
            raise ConnectionError("the browser hung up")
        self.buffer += got

    def _take(self, n: int) -> bytes:
        while len(self.buffer) < n:
            self._more()
        taken, self.buffer = self.buffer[:n], self.buffer[n:]
        return taken

    def send(self, text: str, opcode: int = 1) -> None:
        data, mask = text.encode(), os.urandom(4)
        size = len(data)
        head = struct.pack("!BB", 0x80 | opcode, 0x80 | size) if size < 126 else struct.pack("!BBH", 0x80 | opcode, 0xFE, size) if size < 65536 else struct.pack("!BBQ", 0x80 | opcode, 0xFF, size)
        self.socket.sendall(head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))

    def receive(self) -> str:
        while True:
            first, size = self._take(2)
            size &= 0x7F
            if size > 125:
                size = struct.unpack("!H" if size == 126 else "!Q", self._take(2 if size == 126 else 8))[0]
            data, opcode = self._take(size), first & 0x0F
            if opcode == 1:
                return data.decode()
            if opcode == 9:
                self.send(data.decode(), 10)  # a ping wants its pong
            elif opcode == 8:
                raise ConnectionError("the browser closed the connection")


class Firefox:
    """A headless Firefox with one tab."""

    def __init__(self, program: str):
        self.profile = tempfile.TemporaryDirectory(prefix="roofline-firefox-")
        (Path(self.profile.name) / "user.js").write_text("\n".join(f'user_pref("{name}", {json.dumps(value)});' for name, value in {
            "app.update.enabled": False, "browser.shell.checkDefaultBrowser": False, "datareporting.policy.dataSubmissionEnabled": False, "toolkit.telemetry.enabled": False,
            "network.captive-portal-service.enabled": False, "network.connectivity-service.enabled": False, "remote.active-protocols": 1}.items()))
        log = Path(self.profile.name) / "log"
        self.process = subprocess.Popen([program, "--headless", "--no-remote", "--remote-debugging-port", "0", "--profile", self.profile.name, "about:blank"],
                                        stderr=log.open("w"), stdout=subprocess.DEVNULL, env={**os.environ, "HOME": self.profile.name, "MOZ_CRASHREPORTER_DISABLE": "1"})
        end = time.monotonic() + 60
        while not (found := re.search(r"listening on ws://([\d.]+|localhost):(\d+)", log.read_text())):
            if time.monotonic() > end or self.process.poll() is not None:
                self.close()
                raise RuntimeError("Firefox did not start")
            time.sleep(0.1)
        self.wire = WebSocket("127.0.0.1", int(found[2]), "/session")
        self.number, self.events = 0, []
        self.command("session.new", capabilities={})
        self.command("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])
        self.tab = self.command("browsingContext.getTree")["contexts"][0]["context"]

    def command(self, method: str, **params):
        self.number += 1
        self.wire.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            message = json.loads(self.wire.receive())
            if message.get("type") == "event":
                self.events.append(message)
            elif message.get("id") == self.number:
                if message.get("type") == "error":
                    raise RuntimeError(f"{method}: {message.get('message')}")
                return message["result"]

    def open(self, url: str) -> None:
        self.command("browsingContext.navigate", context=self.tab, url=url, wait="complete")

    def evaluate(self, expression: str):
        """The value of an expression (a promise is awaited), by way of JSON."""
        found = self.command("script.evaluate", expression=f"Promise.resolve({expression}).then((v) => JSON.stringify(v ?? null))", target={"context": self.tab}, awaitPromise=True)
        if found["type"] == "exception":
            raise RuntimeError(found["exceptionDetails"]["text"])
        return json.loads(found["result"]["value"])

    def until(self, expression: str, seconds: float = 10):
        end = time.monotonic() + seconds
        while not (value := self.evaluate(expression)):
            if time.monotonic() > end:
                raise AssertionError(f"after {seconds} s still not so: {expression}")
            time.sleep(0.05)
        return value

    def close(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.profile.cleanup()

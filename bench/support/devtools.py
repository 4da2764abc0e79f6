"""A browser that is driven through the DevTools protocol, over two pipes.

Chromium takes commands from file descriptor 3 and answers on 4, JSON values that end with a zero
byte. So no port is opened and no package is needed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking")
PIPES = 'exec 3<&"$0" 4>&"$1"; shift; exec "$@"'
"""A shell puts the ends of the pipes where the browser expects them."""


class PageError(Exception):
    """A script in a page, or a command to the browser, failed."""


class Tab:
    """One page in the browser."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._unread = b""
        self._number = 0
        self._session = ""
        self._heard: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self.call("Page.enable")

    def call(self, method: str, **settings: Any) -> Any:
        """Send a command and return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": settings}
        if self._session:
            message["sessionId"] = self._session
        left = json.dumps(message).encode() + b"\0"
        while left:
            left = left[os.write(self._commands, left) :]
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                break
            self._heard.append(answer)
        if "error" in answer:
            raise PageError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def open(self, address: str) -> None:
        """Load a page, and wait until its scripts have run."""
        self._heard.clear()
        self.call("Page.navigate", url="about:blank")
        self._until("Page.loadEventFired")
        self._heard.clear()
        self.call("Page.navigate", url=address)
        self._until("Page.loadEventFired")

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page; a promise is awaited."""
        settings = {"expression": script, "awaitPromise": True, "returnByValue": True}
        found = self.call("Runtime.evaluate", **settings)
        if "exceptionDetails" in found:
            thrown = found["exceptionDetails"]
            raise PageError(thrown.get("exception", thrown).get("description", str(thrown)))
        return found["result"].get("value")

    def show(self, *, width: int, height: int = 1000, is_dark: bool = False) -> None:
        """Set the size of the window in pixels, and whether the user prefers dark colours."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def screenshot(self) -> bytes:
        """Return what is in the window, as a PNG."""
        return b64decode(self.call("Page.captureScreenshot")["data"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            more = os.read(self._answers, 1 << 20)
            if not more:
                raise PageError("The browser has ended.")
            self._unread += more
        message, _, self._unread = self._unread.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer

    def _until(self, method: str) -> None:
        while not any(one.get("method") == method for one in self._heard):
            self._heard.append(self._next())


@contextmanager
def browser() -> Iterator[Tab]:
    """Start a browser with an empty page; it ends with the block."""
    read_commands, commands = os.pipe()
    answers, write_answers = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        command = ["bash", "-c", PIPES, str(read_commands), str(write_answers)]
        command += [BROWSER or "chromium", *FLAGS, "--remote-debugging-pipe"]
        command.append(f"--user-data-dir={home}")
        ends = (read_commands, write_answers)
        process = subprocess.Popen(command, pass_fds=ends, stderr=subprocess.DEVNULL)
        for end in ends:
            os.close(end)
        try:
            yield Tab(commands, answers)
        finally:
            os.close(commands)  # without commands, the browser ends
            process.wait(timeout=30)
            os.close(answers)


def address_of(page: Path) -> str:
    """Return the address of a file."""
    return page.resolve().as_uri()

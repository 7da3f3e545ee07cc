"""Headless Chromium, driven over its DevTools pipe: no driver, no server and no Python package is needed."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe", "--hide-scrollbars",
)  # fmt: skip
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Chromium reads commands from descriptor 3 and answers on 4.
START = "import os, sys; [os.dup2(int(sys.argv[1 + i]), 3 + i) for i in (0, 1)]; os.execv(sys.argv[3], sys.argv[3:])"
PATIENCE = 900.0  # s for any one answer: on a busy machine a browser may get a fiftieth of a processor


def chromium_path() -> str:
    """The browser, or a skip that says how to get it."""
    for name in NAMES:
        if path := shutil.which(name):
            return path
    pytest.skip("Chromium is not installed: scripts/install_browser.sh installs it")


class Chromium:
    """One tab. Console errors, exceptions and requests that leave the page are collected."""

    def __init__(self, width: int = 1280, height: int = 800) -> None:
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._profile = tempfile.TemporaryDirectory(prefix="radp-chromium-", ignore_cleanup_errors=True)
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        theirs = [fcntl.fcntl(pipe, fcntl.F_DUPFD, 10) for pipe in (to_browser, from_browser)]
        command = [chromium_path(), *FLAGS, f"--window-size={width},{height}", f"--user-data-dir={self._profile.name}"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", START, *map(str, theirs), *command, "about:blank"],
            pass_fds=theirs,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for pipe in (to_browser, from_browser, *theirs):
            os.close(pipe)
        self._buffer, self._number, self._session = b"", 0, ""
        self._loaded = False
        page = next(t for t in self._call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self._session = self._call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._call("Emulation.setDeviceMetricsOverride", **size)

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._session = ""
            self._call("Browser.close")
            self._process.wait(30)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        finally:
            os.close(self._out)
            os.close(self._in)
            self._profile.cleanup()

    def open(self, place: Path | str, fragment: str = "") -> None:
        """Open a file or an address and wait until it is loaded and drawn once."""
        address = place if isinstance(place, str) else place.resolve().as_uri()
        for url in ("about:blank", address + fragment):  # a blank page first: else # would only scroll
            self._loaded = False
            self._call("Page.navigate", url=url)
            deadline = time.monotonic() + PATIENCE
            while not self._loaded:
                self._receive(deadline, f"{url} to be loaded")
        self.settle()

    def settle(self) -> None:
        """Wait until the page has drawn what it was asked for."""
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression (of a promise: what it becomes)."""
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_for(self, expression: str, patience: float = PATIENCE) -> Any:
        """Wait until an expression is true; of an object, ask whether it is null, since it comes back as a copy."""
        deadline, pause = time.monotonic() + patience, 0.02
        while not (value := self.evaluate(expression)):
            time.sleep(pause)  # whom we wait for needs the processor, too
            pause = min(1.5 * pause, 0.5)
            if time.monotonic() > deadline:
                raise RuntimeError(f"waited {patience:.0f} s for {expression}; errors of the page: {self.errors}")
            self.settle()
        return value

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """kind: Moved, Pressed, Released or Wheel."""
        button = {"button": "left", "clickCount": 1} if kind in ("Pressed", "Released") else {}
        self._call("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, **{**button, **more})

    def click(self, x: float, y: float) -> None:
        for kind in ("Moved", "Pressed", "Released"):
            self.mouse(kind, x, y)
        self.settle()

    def click_on(self, selector: str) -> None:
        """Click in the middle of an element."""
        box = f"document.querySelector({json.dumps(selector)}).getBoundingClientRect()"
        self.click(*self.evaluate(f"(() => {{ const b = {box}; return [b.x + b.width / 2, b.y + b.height / 2] }})()"))

    def key(self, key: str, modifiers: int = 0) -> None:
        """Press and release; printable keys bring their text. modifiers: 8 = shift."""
        text = {"text": key} if len(key) == 1 else {}
        code = {" ": "Space"}.get(key, key)
        self._call("Input.dispatchKeyEvent", type="keyDown", key=key, code=code, modifiers=modifiers, **text)
        self._call("Input.dispatchKeyEvent", type="keyUp", key=key, code=code, modifiers=modifiers)
        self.settle()

    def dark(self, on: bool) -> None:
        """What the system says about light and dark."""
        feature = {"name": "prefers-color-scheme", "value": "dark" if on else "light"}
        self._call("Emulation.setEmulatedMedia", features=[feature])
        self.settle()

    def screenshot(self, path: Path) -> bytes:
        """A PNG of the window."""
        data = base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"])
        path.write_bytes(data)
        return data

    def _call(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self._receive(deadline, f"the answer to {method} {parameters}")
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _receive(self, deadline: float, what: str) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise RuntimeError(f"Chromium does not answer: waited {PATIENCE:.0f} s for {what}")
            chunk = os.read(self._in, 1 << 20)
            if not chunk:
                raise RuntimeError(f"Chromium ended (status {self._process.poll()}) while waiting for {what}")
            self._buffer += chunk
        text, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(text)
        if handler := _EVENTS.get(message.get("method", "")):
            handler(self, message["params"])
        return message

    def _note_request(self, params: dict[str, Any]) -> None:
        self.requests.append(params["request"]["url"])

    def _note_exception(self, params: dict[str, Any]) -> None:
        self.errors.append(json.dumps(params["exceptionDetails"]))

    def _note_console(self, params: dict[str, Any]) -> None:
        if params["type"] in ("error", "warning", "assert"):
            self.errors.append(json.dumps(params["args"]))

    def _note_log(self, params: dict[str, Any]) -> None:
        if params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])

    def _note_load(self, _: dict[str, Any]) -> None:
        self._loaded = True


_EVENTS: dict[str, Callable[[Chromium, dict[str, Any]], None]] = {
    "Network.requestWillBeSent": Chromium._note_request,
    "Runtime.exceptionThrown": Chromium._note_exception,
    "Runtime.consoleAPICalled": Chromium._note_console,
    "Log.entryAdded": Chromium._note_log,
    "Page.loadEventFired": Chromium._note_load,
}

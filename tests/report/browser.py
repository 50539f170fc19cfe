"""A real browser, driven over a pipe with Chrome's own protocol: nothing is downloaded, no port is opened."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36}
KEYS |= {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
_MIDDLE = """e.scrollIntoView({block: "center"}); const r = e.getBoundingClientRect();
             return [r.x + r.width / 2, r.y + r.height / 2];"""
SECONDS = 60.0  # after which a silent browser is given up


def find_browser() -> str | None:
    """The browser's program, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page of a headless Chromium, without network.

    Attributes
    ----------
    problems : list of str
        What the console complained of, uncaught exceptions, and addresses that were asked for.
    """

    def __init__(self, program: str, *, width: int = 1200, height: int = 900) -> None:
        self.problems: list[str] = []
        self._number, self._buffer, self._events = 0, b"", []
        self._profile = tempfile.mkdtemp(prefix="browser-")
        to_child, self._write = os.pipe()
        self._read, from_child = os.pipe()
        self._process = subprocess.Popen(
            [
                program,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--disable-background-networking",
                "--remote-debugging-pipe",
                f"--user-data-dir={self._profile}",
                f"--window-size={width},{height}",
                "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # The protocol's two file descriptors are 3 and 4.
            preexec_fn=lambda: (os.dup2(to_child, 3), os.dup2(from_child, 4)),
            pass_fds=(3, 4, to_child, from_child),
        )
        os.close(to_child)
        os.close(from_child)
        targets = self._call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")["targetId"]
        self._session = None
        self._session = self._call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")
        self._call(
            "Network.emulateNetworkConditions",
            offline=True,
            latency=0,
            downloadThroughput=0,
            uploadThroughput=0,
        )

    def open(self, path: Path) -> float:
        """Load a file; returns the seconds until it was there, with its script run."""
        began = time.perf_counter()
        self._events.clear()
        self._call("Page.navigate", url=path.resolve().as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._receive()
        self.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
        return time.perf_counter() - began

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page."""
        result = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise AssertionError(result["exceptionDetails"]["exception"].get("description", "an exception"))
        return result["result"].get("value")

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self._call("Input.insertText", text=text)

    def press(self, key: str) -> None:
        """Press a key such as ArrowDown, Enter, Escape or Tab."""
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        common = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS.get(key, 0), "text": text}
        self._call("Input.dispatchKeyEvent", type="keyDown", **common)
        self._call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key)

    def click(self, selector: str) -> None:
        """Click the middle of an element with the mouse."""
        where = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); {_MIDDLE} }})()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self._call(
                "Input.dispatchMouseEvent", type=kind, x=where[0], y=where[1], button="left", clickCount=1
            )

    def emulate(
        self, *, dark: bool = False, media: str = "screen", width: int = 1200, height: int = 900
    ) -> None:
        """Dark or light, screen or print, at a size."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Write what is seen, or the whole page, as PNG."""
        options: dict[str, Any] = {"format": "png"}
        if whole:
            size = self._call("Page.getLayoutMetrics")["cssContentSize"]
            options |= {"captureBeyondViewport": True, "clip": {**size, "scale": 1}}
        path.write_bytes(base64.b64decode(self._call("Page.captureScreenshot", **options)["data"]))

    def pdf(self) -> bytes:
        """The page as it would be printed."""
        return base64.b64decode(self._call("Page.printToPDF", printBackground=True)["data"])

    def close(self) -> None:
        """End the browser and remove its profile."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)
        shutil.rmtree(self._profile, ignore_errors=True)

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if getattr(self, "_session", None):
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._read], [], [], SECONDS)[0]:
                raise AssertionError("The browser does not answer.")
            part = os.read(self._read, 1 << 20)
            if not part:
                raise AssertionError("The browser has ended.")
            self._buffer += part
        line, self._buffer = self._buffer.split(b"\0", 1)
        message = json.loads(line)
        if "method" in message:
            self._note(message)
        return message

    def _note(self, event: dict[str, Any]) -> None:
        self._events.append(event)
        method, what = event["method"], event["params"]
        if method == "Runtime.exceptionThrown":
            self.problems.append(str(what["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning", "assert"):
            self.problems.append(str(what["args"]))
        elif method == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning"):
            self.problems.append(what["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            address = what["request"]["url"]
            if not address.startswith(("file:", "data:")):
                self.problems.append(f"asked for {address}")

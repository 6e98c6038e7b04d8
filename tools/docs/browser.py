"""A headless Chromium, driven by its own protocol over two pipes.

It is started without a profile and without any traffic of its own. Every address that a page asks
for is recorded, so that a page which needs another host is noticed.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
TIMEOUT_S = 60.0
PHONE_WIDTH_MAX = 500
# No first-run pages, no lookups of its maker's hosts, no updates.
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
)


# A picture shall not be taken in the middle of a movement.
_STILL = (
    "document.head.append(Object.assign(document.createElement('style'), "
    "{textContent: '* { transition: none !important; animation: none !important; }'}))"
)


class BrowserMissingError(Exception):
    """There is no Chromium, and it cannot be installed."""


def find_chromium() -> str | None:
    """Return the path of Chromium, if it is installed."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def find_or_install_chromium() -> str:
    """Return the path of Chromium; on Debian it is installed where it is missing.

    Raises:
        BrowserMissingError: It is missing and cannot be installed.
    """
    found = find_chromium()
    if found is None and shutil.which("apt-get") and os.geteuid() == 0:
        print("docs: installing Debian's package chromium", flush=True)
        words = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "chromium"]
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update", "--quiet"], check=False, capture_output=True)
        subprocess.run(words, check=False, capture_output=True, env=environment)
        found = find_chromium()
    if found is None:
        raise BrowserMissingError("no Chromium was found: install the package chromium")
    return found


class Browser:
    """One page of a Chromium; leave the `with` block to end it."""

    def __init__(self, program: str) -> None:
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        words = [program, *_OPTIONS, f"--user-data-dir={self._folder.name}", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "bash", *words],
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._answers = os.fdopen(self._read, "rb")
        self._number = 0
        self._session: str | None = None
        self._loaded = False
        self.requested: list[str] = []
        self.complaints: list[str] = []
        attached = self.call("Target.attachToTarget", targetId=self._page(), flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._write)
        self._process.terminate()
        self._process.wait(timeout=TIMEOUT_S)
        self._answers.close()
        self._folder.cleanup()

    def _page(self) -> str:
        """Return the id of the page; a browser that has just started has other targets, too."""
        pages: list[str] = []

        def is_there() -> bool:
            found = self.call("Target.getTargets")["targetInfos"]
            pages.extend(each["targetId"] for each in found if each["type"] == "page")
            return bool(pages)

        self._wait(is_there, "a page of the browser")
        return pages[0]

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                result: dict[str, Any] = answer["result"]
                return result

    def show(self, address: str, *, width: int, height: int, dark: bool = False) -> None:
        """Open a page in a window of this size; a narrow one is a phone's."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width <= PHONE_WIDTH_MAX,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self._loaded = False
        self.call("Page.navigate", url=address)
        deadline = time.monotonic() + TIMEOUT_S
        while not self._loaded and time.monotonic() < deadline:
            self.value("1")
            time.sleep(0.05)
        self.value(_STILL)

    def value(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return found["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Wait until an expression of JavaScript is true.

        Raises:
            TimeoutError: It did not become true.
        """
        self._wait(lambda: bool(self.value(expression)), expression)

    def picture(self, path: Path) -> None:
        """Write what the window shows as a PNG."""
        data = self.call("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))

    def _wait(self, happens: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not happens():
            if time.monotonic() > deadline:
                raise TimeoutError(what)
            time.sleep(0.05)

    def _next(self) -> dict[str, Any]:
        text = bytearray()
        while (byte := self._answers.read(1)) != b"\0":
            if not byte:
                raise EOFError("Chromium has ended")
            text += byte
        message: dict[str, Any] = json.loads(text)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method: str | None, facts: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requested.append(facts["request"]["url"])
        elif method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(facts["exceptionDetails"].get("exception", facts)))
        elif method == "Log.entryAdded" and facts["entry"]["level"] == "error":
            self.complaints.append(f"{facts['entry']['text']} {facts['entry'].get('url', '')}")

"""A Chromium without a window, driven through its debugging pipe: nothing but the browser is needed."""

import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe",
    "--window-size=1400,1000",
)  # fmt: skip
PATIENCE = 90.0  # seconds for one answer, on a busy machine
KEYS = {"Tab": 9, "Enter": 13, "ArrowRight": 39, "PageUp": 33}


class Browser:
    """One browser; :meth:`open` gives a page of its own."""

    def __init__(self, profile: Path) -> None:
        read_here, write_there = os.pipe()
        read_there, write_here = os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (read_there, write_there)]

        def lead() -> None:  # the browser reads from 3 and writes to 4
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        command = [str(PROGRAM), *FLAGS, f"--user-data-dir={profile}"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, close_fds=False, preexec_fn=lead, **quiet)
        for end in (read_there, write_there, *ends):
            os.close(end)
        self.read, self.write = read_here, write_here
        self.rest, self.number, self.events = b"", 0, []

    def ask(self, method: str, session: str | None = None, **params):
        """Send a command and wait for its answer; events on the way are kept."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        message |= {"sessionId": session} if session else {}
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method: str) -> None:
        """Wait until an event has come."""
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self._next())

    def _next(self):
        until = time.monotonic() + PATIENCE
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.read], [], [], max(0, until - time.monotonic()))
            assert ready, "the browser does not answer"
            self.rest += os.read(self.read, 1 << 20)
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def open(self, page: Path) -> "Page":
        """Load a file; what happens from here on is in ``events``."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable", session)
        self.events.clear()
        self.ask("Page.navigate", session, url=page.as_uri())
        self.wait_for("Page.loadEventFired")
        return Page(self, session)

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(OSError, AssertionError):
            self.ask("Browser.close")
        self.process.wait(timeout=PATIENCE)
        os.close(self.read)
        os.close(self.write)


class Page:
    """A loaded page."""

    def __init__(self, browser: Browser, session: str) -> None:
        self.browser, self.session = browser, session

    def run(self, script: str):
        """The value of an expression, awaited if it is a promise."""
        asked = {"expression": script, "awaitPromise": True, "returnByValue": True, "userGesture": True}
        answer = self.browser.ask("Runtime.evaluate", self.session, **asked)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """A key, as from a keyboard."""
        asked = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key]}
        asked |= {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown" if key == "Enter" else "rawKeyDown", "keyUp"):
            self.browser.ask("Input.dispatchKeyEvent", self.session, type=kind, **asked)

    @property
    def requests(self) -> list[str]:
        """Addresses that were asked for, besides the page and data inside it."""
        sent = [e["params"]["request"]["url"] for e in self._of("Network.requestWillBeSent")]
        return [url for url in sent[1:] if not url.startswith("data:")]

    @property
    def complaints(self) -> list[str]:
        """Script errors, and what the browser wrote into its log."""
        thrown = [str(e["params"]["exceptionDetails"]) for e in self._of("Runtime.exceptionThrown")]
        return thrown + [e["params"]["entry"]["text"] for e in self._of("Log.entryAdded")]

    def _of(self, method: str):
        return [event for event in self.browser.events if event.get("method") == method]

"""WebKit by WebDriver (https://www.w3.org/TR/webdriver2/), in the browser that WebKitGTK brings along.

It is the engine of Safari in a build without WebRTC, so it sees what televisions and old browsers see.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from server import free_port

from . import actions
from .page import Browser, EvaluationError, Page, Viewport, wait_until
from .patience import patient
from .process import Process

BROWSER = "/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/MiniBrowser"


class CommandError(Exception):
    """WebDriver refused a command."""


class HangError(Exception):
    """A page does not answer, and does nothing: its process waits for itself.

    WebKitGTK 2.50 on GStreamer 1.22 does so now and then when what a MediaSource plays is sought: its main thread pushes a
    flush, and waits for a thread that waits for it. A page whose script does not end computes, and is no such case.
    """


class WebKit(Browser):
    """All windows are those of one session: the driver has no more."""

    name = "webkit"

    def __init__(self, logs: Path) -> None:
        super().__init__()
        self._logs = logs
        self._start()

    def _start(self) -> None:
        self._home = tempfile.mkdtemp(prefix="rostrum-webkit-")
        # It has no mode without a screen.
        self._screen = Process(
            ["Xvfb", "-displayfd", "1", "-screen", "0", "1600x1200x24", "-nolisten", "tcp"], self._logs / "xvfb.log", r"^(\d+)$", 20)
        port = free_port()
        self._origin = f"http://127.0.0.1:{port}"
        self._driver = Process(
            ["sh", "-c", f"echo started; exec WebKitWebDriver --port={port}"], self._logs / "webkit.log", "^started$", 20,
            environment={
                "DISPLAY": f":{self._screen.ready[1]}", "HOME": self._home, "XDG_RUNTIME_DIR": self._home,
                "LIBGL_ALWAYS_SOFTWARE": "1", "NO_AT_BRIDGE": "1", "GSETTINGS_BACKEND": "memory",
            })
        wait_until(self._is_ready, 20, "WebKit's driver answers")
        options = {"binary": BROWSER, "args": ["--automation"]}
        session = self._request("POST", "/session", {"capabilities": {"alwaysMatch": {"webkitgtk:browserOptions": options}}})
        self._session = f"/session/{session['sessionId']}"
        #: One that stays, because a session ends with its last window, and because commands are for a window that is there.
        self._first = self._current = self._request("GET", f"{self._session}/window")

    def restart(self) -> None:
        """Gives up all windows, and whatever hangs."""
        for page in self.pages:
            page.is_closed = True
        self._stop()
        self._start()

    @property
    def pid(self) -> int:
        return self._driver.pid

    def _is_ready(self) -> bool:
        try:
            return bool(self._request("GET", "/status")["ready"])
        except OSError:
            return False

    def _request(self, method: str, path: str, body: Any = None, seconds: float = 30) -> Any:
        request = urllib.request.Request(
            self._origin + path, method=method, data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=patient(seconds)) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            told = json.load(error)["value"]
            raise CommandError(f"{told['error']}: {told['message']}") from None
        except TimeoutError:
            raise (HangError if self.is_idle() else TimeoutError)(f"{method} {path} is not answered") from None

    def command(self, method: str, path: str, body: Any = None, window: str | None = None, seconds: float = 30) -> Any:
        """One of the session's commands, in that window."""
        if window is not None and window != self._current:
            self._request("POST", f"{self._session}/window", {"handle": window})
            self._current = window
        return self._request(method, self._session + path, body, seconds)

    def _open(self) -> Page:
        return WebKitPage(self, self.command("POST", "/window/new", {"type": "window"}, self._first)["handle"])

    def close(self) -> None:
        Browser.all.remove(self)
        self._stop()

    def _stop(self) -> None:
        try:
            self._request("DELETE", self._session, seconds=2)
        except (CommandError, OSError):
            pass  # It hangs or is gone, as its processes will be in a moment.
        self._driver.stop()
        self._screen.stop()
        shutil.rmtree(self._home, ignore_errors=True)

    def is_idle(self) -> bool:
        """Whether none of its pages' processes computes anything."""
        before = self._page_ticks()
        time.sleep(1)
        return self._page_ticks() - before < os.sysconf("SC_CLK_TCK") / 10

    def _page_ticks(self) -> int:
        """What the main threads of its pages have used of processors."""
        ticks = 0
        for entry in Path("/proc").glob("[0-9]*/stat"):
            try:
                name, _, told = entry.read_text().partition("(")[2].rpartition(")")
                rest = told.split()
                # Cut to 15 bytes; the group is that of the driver.
                if name == "WebKitWebProces" and int(rest[2]) == self._driver.pid:
                    thread = (entry.parent / "task" / entry.parent.name / "stat").read_text().rpartition(")")[2].split()
                    ticks += int(thread[11]) + int(thread[12])
            except OSError:
                continue  # It has ended.
        return ticks


class WebKitPage(Page):
    """What it complains about is not told: the driver knows nothing of a page's console."""

    def __init__(self, browser: WebKit, window: str) -> None:
        super().__init__()
        self._browser = browser
        self._window = window

    def _command(self, method: str, path: str, body: Any = None, seconds: float = 30) -> Any:
        return self._browser.command(method, path, body, self._window, seconds)

    def goto(self, url: str) -> None:
        try:
            self._command("POST", "/url", {"url": url})
        except CommandError as error:
            raise ConnectionError(f"{url}: {error}") from None

    def _evaluate(self, expression: str, seconds: float) -> str | None:
        script = f"""const done = arguments[arguments.length - 1];
            ({expression}).then(value => done({{value}}), error => done({{error: String(error)}}));"""
        try:
            answer = self._command("POST", "/execute/async", {"script": script, "args": []}, seconds)
        except CommandError as error:
            raise EvaluationError(str(error)) from None
        if "error" in answer:
            raise EvaluationError(answer["error"])
        return answer["value"]

    def _screenshot(self) -> str:
        return self._command("GET", "/screenshot")

    def _act(self, source: dict[str, Any]) -> None:
        self._command("POST", "/actions", {"actions": [source]})

    def _click_at(self, x: float, y: float) -> None:
        self._act(actions.click(x, y))

    def press(self, key: str) -> None:
        self._act(actions.press(key))

    def drag(
        self, start: tuple[float, float], end: tuple[float, float], seconds: float = 0.15, lifts: bool = True,
        rests: bool = False,
    ) -> None:
        raise NotImplementedError("WebKitGTK's driver has no fingers")

    def lift(self) -> None:
        raise NotImplementedError("WebKitGTK's driver has no fingers")

    def turn_wheel(self, x: float, y: float, at: tuple[float, float] | None = None) -> None:
        self._act(actions.turn_wheel(at or self.evaluate("() => [innerWidth / 2, innerHeight / 2]"), x, y))

    def reduce_motion(self) -> None:
        raise NotImplementedError("WebDriver has no command for it")

    def resize(self, viewport: Viewport) -> None:
        """A window is larger than what it shows of a page, by what only shows once there is one."""
        for _ in range(2):
            outer = self._command("GET", "/window/rect")
            inner = self.evaluate("() => [innerWidth, innerHeight]")
            self._command("POST", "/window/rect", {
                "x": 0, "y": 0, "width": outer["width"] + viewport.width - inner[0],
                "height": outer["height"] + viewport.height - inner[1],
            })
            self.wait_for("size => innerWidth === size[0] || innerHeight === size[1]", list(viewport), what="it has its size")

    def before_load(self, function: str) -> None:
        raise NotImplementedError("WebDriver has no command for it")

    def _close(self) -> None:
        try:
            self._command("DELETE", "/window")
        except CommandError:
            pass

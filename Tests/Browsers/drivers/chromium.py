"""Chromium by the DevTools protocol (https://chromedevtools.github.io/devtools-protocol/)."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from .connection import CommandError, Connection
from .page import REST_SECONDS, Browser, EvaluationError, Page, Viewport
from .patience import patient
from .process import Process

FLAGS = [
    "--headless=new",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-component-update",
    "--disable-background-networking",
    "--disable-sync",
    "--disable-extensions",
    "--disable-gpu",
    "--mute-audio",
    # A window that nothing shows must go on like one that is seen.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    # It drops clicks and keys before a page's first picture, which comes late on a busy machine; tests look at what is there.
    "--allow-pre-commit-input",
    # A process for each window costs as much as all that its page does at first: pages share one, as tabs of a site do.
    "--process-per-site",
    # Green pacman with a clock and a beep each second; nobody is asked.
    "--use-fake-device-for-media-stream=fps=30",
    "--use-fake-ui-for-media-stream",
    "--auto-accept-this-tab-capture",
    # As in Firefox's preferences here: whether sound may play does not hang on when a test first asked something.
    "--autoplay-policy=no-user-gesture-required",
    # Candidates with the loopback address instead of mDNS names nobody here resolves. The pages that the address bar would
    # load in each window cost more than most of those under test.
    "--disable-features=WebRtcHideLocalIpsWithMdns,MediaRouter,OptimizationHints,Translate,"
    "WebUIOmniboxPopup,WebUIOmniboxAimPopup",
    "--allow-loopback-in-peer-connection",
]


class Chromium(Browser):
    """Chromium as Debian packages it for servers: all that a page sees, without the windows around it, which cost a third
    of what a page does at first."""

    name = "chromium"
    program = "chromium-headless-shell"
    #: Without these it tells pages that nothing is permitted, although the flags permit the camera. It refuses all others.
    grants = ["audioCapture", "clipboardSanitizedWrite", "displayCapture", "videoCapture", "wakeLockScreen"]

    def __init__(self, logs: Path, flags: list[str] | None = None) -> None:
        super().__init__()
        self._profile = tempfile.mkdtemp(prefix="rostrum-chromium-")
        command = [
            os.environ.get("CHROMIUM", self.program), *FLAGS, *(flags or []),
            "--remote-debugging-port=0", f"--user-data-dir={self._profile}", "about:blank",
        ]
        if os.geteuid() == 0:
            command.insert(1, "--no-sandbox")
        self._process = Process(command, logs / "chromium.log", r"DevTools listening on (ws://\S+)", 30)
        self._sessions: dict[str, ChromiumPage] = {}
        self._connection = Connection(self._process.ready[1], self._on_event)
        if self.grants:
            self._connection.command("Browser.grantPermissions", {"permissions": self.grants})

    @property
    def pid(self) -> int:
        return self._process.pid

    def _open(self) -> Page:
        # A window of its own is never hidden behind another one's tab.
        target = self._connection.command(
            "Target.createTarget", {"url": "about:blank", "newWindow": True})["targetId"]
        session = self._connection.command(
            "Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = ChromiumPage(self._connection, target, session)
        self._sessions[session] = page
        page.prepare()
        return page

    def _on_event(self, event: dict[str, Any]) -> None:
        page = self._sessions.get(event.get("sessionId", ""))
        if page is not None:
            page.on_event(event["method"], event["params"])

    def close(self) -> None:
        Browser.all.remove(self)
        self._connection.close()
        self._process.stop()
        shutil.rmtree(self._profile, ignore_errors=True)


class DesktopChromium(Chromium):
    """The Chromium that people have: it makes windows around pages, too."""

    program = "chromium"
    grants = []


class ChromiumPage(Page):
    def __init__(self, connection: Connection, target: str, session: str) -> None:
        super().__init__()
        self._connection = connection
        self._target = target
        self._session = session
        self._loaded = threading.Event()

    def _command(self, method: str, seconds: float = 20, **parameters: Any) -> dict[str, Any]:
        return self._connection.command(method, parameters, seconds, sessionId=self._session)

    def prepare(self) -> None:
        for domain in ("Page", "Runtime", "Log"):
            self._command(f"{domain}.enable")

    def on_event(self, method: str, parameters: dict[str, Any]) -> None:
        match method:
            case "Page.loadEventFired":
                self._loaded.set()
            case "Runtime.consoleAPICalled":
                words = [str(a.get("value", a.get("description", ""))) for a in parameters["args"]]
                self._note(parameters["type"], " ".join(words))
            case "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                thrown = details.get("exception", {}).get("description", "")
                self._note("error", f"{details['text']} {thrown}".strip())
            case "Log.entryAdded":
                entry = parameters["entry"]
                self._note(entry["level"], f"{entry['text']} {entry.get('url', '')}".strip())

    def goto(self, url: str) -> None:
        self._loaded.clear()
        answer = self._command("Page.navigate", url=url)
        if "errorText" in answer:
            raise ConnectionError(f"{url}: {answer['errorText']}")
        if not self._loaded.wait(patient(20)):
            raise TimeoutError(f"not loaded within {patient(20):g} s: {url}")

    def _evaluate(self, expression: str, seconds: float) -> str | None:
        try:
            answer = self._command(
                "Runtime.evaluate", seconds, expression=expression, awaitPromise=True,
                returnByValue=True, userGesture=True)
        except CommandError as error:
            raise EvaluationError(str(error)) from None
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise EvaluationError(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    def _screenshot(self) -> str:
        return self._command("Page.captureScreenshot", format="png")["data"]

    def _click_at(self, x: float, y: float) -> None:
        # Both are of one moment: a busy machine takes the second command long after the first, and a press that lasts is
        # no tap.
        now = time.time()
        for kind in ("mousePressed", "mouseReleased"):
            self._command(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1, timestamp=now)

    def press(self, key: str) -> None:
        text = {"Enter": "\r", " ": " "}.get(key, key if len(key) == 1 else "")
        code = {
            "Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40,
        }.get(key, 0)
        self._command(
            "Input.dispatchKeyEvent", type="keyDown", key=key, text=text, windowsVirtualKeyCode=code)
        self._command("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def drag(
        self, start: tuple[float, float], end: tuple[float, float], seconds: float = 0.15, lifts: bool = True,
        rests: bool = False,
    ) -> None:
        def touch(kind: str, *points: tuple[float, float]) -> None:
            self._command(
                "Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y} for x, y in points])
        began = time.monotonic()
        touch("touchStart", start)
        share = 0.0
        while share < 1:
            share = min(1.0, max((time.monotonic() - began) / seconds, share + 0.05))
            time.sleep(max(0.0, began + share * seconds - time.monotonic()))
            touch("touchMove", tuple(a + (b - a) * share for a, b in zip(start, end)))
        if rests:
            time.sleep(REST_SECONDS)
        if lifts:
            self.lift()

    def lift(self) -> None:
        self._command("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def turn_wheel(self, x: float, y: float, at: tuple[float, float] | None = None) -> None:
        spot = at or self.evaluate("() => [innerWidth / 2, innerHeight / 2]")
        self._command(
            "Input.dispatchMouseEvent", type="mouseWheel", x=spot[0], y=spot[1], deltaX=x, deltaY=y)

    def reduce_motion(self) -> None:
        self._command(
            "Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])

    def resize(self, viewport: Viewport) -> None:
        self._command(
            "Emulation.setDeviceMetricsOverride", width=viewport.width, height=viewport.height,
            deviceScaleFactor=1, mobile=viewport.width < 600)

    def before_load(self, function: str) -> None:
        self._command("Page.addScriptToEvaluateOnNewDocument", source=f"({function})()")

    def _close(self) -> None:
        try:
            self._connection.command("Target.closeTarget", {"targetId": self._target})
        except CommandError:
            pass

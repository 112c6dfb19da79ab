"""Firefox by WebDriver BiDi (https://w3c.github.io/webdriver-bidi/), which it speaks by itself."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from . import actions
from .connection import CommandError, Connection
from .page import REST_SECONDS, Browser, EvaluationError, Page, Viewport
from .process import Process

PREFERENCES: dict[str, bool | int | str] = {
    # A generated camera picture and a 1 kHz tone; nobody is asked.
    "media.navigator.streams.fake": True,
    "media.navigator.permission.disabled": True,
    "media.getusermedia.insecure.enabled": True,
    "media.autoplay.default": 0,
    "media.autoplay.blocking_policy": 0,
    # Host candidates with real addresses, the loopback address among them.
    "media.peerconnection.ice.obfuscate_host_addresses": False,
    "media.peerconnection.ice.loopback": True,
    "media.peerconnection.ice.link_local": True,
    # A window that nothing shows must go on like one that is seen.
    "dom.min_background_timeout_value": 4,
    "dom.timeout.enable_budget_timer_throttling": False,
    "media.suspend-background-video.enabled": False,
    "widget.windows.window_occlusion_tracking.enabled": False,
    # Without a graphics card drawing costs more than all else, and no picture here comes more often.
    "layout.frame_rate": 30,
    # A process for each window costs as much as all that its page does at first: pages share one, as tabs of a site do.
    "fission.autostart": False,
    "dom.ipc.processCount": 1,
    "dom.ipc.processPrelaunch.enabled": False,
    # No calls home, no first-run pages.
    "app.normandy.enabled": False,
    "app.update.enabled": False,
    "browser.aboutwelcome.enabled": False,
    "browser.newtabpage.enabled": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.page": 0,
    "browser.tabs.warnOnClose": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "extensions.update.enabled": False,
    "media.gmp-manager.updateEnabled": False,
    "media.hardware-video-decoding.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "network.proxy.type": 0,
    "services.settings.server": "data:,#remote-settings-dummy/v1",
    "toolkit.telemetry.reportingpolicy.firstRun": False,
    "remote.log.level": "Warn",
}


class Firefox(Browser):
    name = "firefox"
    # Without a graphics card it draws each picture of a video as large as it is shown, which costs more than to decode it.
    # Wide and high enough for all that a page shows on a desktop.
    usual_viewport = Viewport(960, 600)

    def __init__(self, logs: Path, preferences: dict[str, bool | int | str] | None = None) -> None:
        super().__init__()
        self._profile = tempfile.mkdtemp(prefix="rostrum-firefox-")
        lines = [
            f"user_pref({json.dumps(name)}, {json.dumps(value)});"
            for name, value in {**PREFERENCES, **(preferences or {})}.items()
        ]
        Path(self._profile, "user.js").write_text("\n".join(lines))
        self._process = Process(
            [
                os.environ.get("FIREFOX", "firefox-esr"), "--headless", "--no-remote",
                "--remote-debugging-port=0", "--profile", self._profile, "about:blank",
            ],
            logs / "firefox.log", r"WebDriver BiDi listening on (ws://\S+)", 40,
            # Its own crash reporter and a home without rights must not get in the way.
            environment={"MOZ_CRASHREPORTER_DISABLE": "1", "HOME": self._profile})
        self._contexts: dict[str, FirefoxPage] = {}
        self._connection = Connection(f"{self._process.ready[1]}/session", self._on_event)
        self._connection.command("session.new", {"capabilities": {}})
        self._connection.command("session.subscribe", {"events": ["log.entryAdded"]})

    @property
    def pid(self) -> int:
        return self._process.pid

    def _open(self) -> Page:
        # A window of its own is never hidden behind another one's tab.
        context = self._connection.command("browsingContext.create", {"type": "window"})["context"]
        page = FirefoxPage(self._connection, context)
        self._contexts[context] = page
        # Refused resources do not reach BiDi's log by themselves.
        page.before_load(
            """() => addEventListener('securitypolicyviolation', event =>
                console.error(`refused by policy: ${event.violatedDirective} ${event.blockedURI}`))""")
        return page

    def _on_event(self, event: dict[str, Any]) -> None:
        if event["method"] != "log.entryAdded":
            return
        entry = event["params"]
        page = self._contexts.get(entry["source"].get("context", ""))
        if page is not None:
            page._note(entry["level"], entry.get("text") or "")

    def close(self) -> None:
        Browser.all.remove(self)
        self._connection.close()
        self._process.stop()
        shutil.rmtree(self._profile, ignore_errors=True)


class FirefoxPage(Page):
    def __init__(self, connection: Connection, context: str) -> None:
        super().__init__()
        self._connection = connection
        self._context = context

    def _command(self, method: str, seconds: float = 20, **parameters: Any) -> dict[str, Any]:
        return self._connection.command(method, {"context": self._context, **parameters}, seconds)

    def goto(self, url: str) -> None:
        try:
            self._command("browsingContext.navigate", url=url, wait="complete")
        except CommandError as error:
            raise ConnectionError(f"{url}: {error}") from None

    def _evaluate(self, expression: str, seconds: float) -> str | None:
        try:
            answer = self._connection.command(
                "script.evaluate",
                {
                    "target": {"context": self._context}, "expression": expression,
                    "awaitPromise": True, "userActivation": True,
                },
                seconds)
        except CommandError as error:
            raise EvaluationError(str(error)) from None
        if answer["type"] == "exception":
            raise EvaluationError(answer["exceptionDetails"]["text"])
        return answer["result"].get("value")

    def _screenshot(self) -> str:
        return self._command("browsingContext.captureScreenshot")["data"]

    def _act(self, source: dict[str, Any]) -> None:
        self._command("input.performActions", actions=[source])

    def _click_at(self, x: float, y: float) -> None:
        self._act(actions.click(x, y))

    def press(self, key: str) -> None:
        self._act(actions.press(key))

    def drag(
        self, start: tuple[float, float], end: tuple[float, float], seconds: float = 0.15, lifts: bool = True,
        rests: bool = False,
    ) -> None:
        self._finger([
            {"type": "pointerMove", "x": round(start[0]), "y": round(start[1])},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerMove", "x": round(end[0]), "y": round(end[1]), "duration": round(seconds * 1000)},
            *([{"type": "pause", "duration": round(REST_SECONDS * 1000)}] if rests else []),
            *([{"type": "pointerUp", "button": 0}] if lifts else []),
        ])

    def lift(self) -> None:
        self._finger([{"type": "pointerUp", "button": 0}])

    def _finger(self, moves: list[dict[str, Any]]) -> None:
        self._act({"type": "pointer", "id": "finger", "parameters": {"pointerType": "touch"}, "actions": moves})

    def turn_wheel(self, x: float, y: float, at: tuple[float, float] | None = None) -> None:
        self._act(actions.turn_wheel(at or self.evaluate("() => [innerWidth / 2, innerHeight / 2]"), x, y))

    def reduce_motion(self) -> None:
        # BiDi has no command for it; every page of this browser sees it.
        raise NotImplementedError("a Firefox with `ui.prefersReducedMotion` 1 does this")

    def resize(self, viewport: Viewport) -> None:
        self._command("browsingContext.setViewport", viewport=viewport._asdict())

    def before_load(self, function: str) -> None:
        self._connection.command(
            "script.addPreloadScript", {"functionDeclaration": function, "contexts": [self._context]})

    def _close(self) -> None:
        try:
            self._command("browsingContext.close")
        except CommandError:
            pass

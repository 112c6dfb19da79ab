"""Fixtures: one server and one browser of each kind for a process that runs tests, a fresh stream for each test."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

# What helpers assert tells what it found, too.
pytest.register_assert_rewrite("feed", "feed_turns", "media", "rtmp", "server", "stage")

import evidence  # noqa: E402
from drivers import Browser, Chromium, Firefox, WebKit  # noqa: E402
from server import ROOT, Server, binary  # noqa: E402

LOG_MARKS = pytest.StashKey[dict[Path, int]]()
LOGS = Path(os.environ.get("ROSTRUM_TEST_LOGS", ROOT / ".build" / "browser-tests"))
# Processes that run tests side by side each have their own server and browsers, and leave logs of their own.
if name := os.environ.get("PYTEST_XDIST_WORKER"):
    LOGS /= name


@pytest.fixture(scope="session", autouse=True)
def logs() -> Path:
    LOGS.mkdir(parents=True, exist_ok=True)
    # Only what this run leaves is to be seen after it.
    for kind in ("*.log", "*.png", "*.txt"):
        for old in LOGS.glob(kind):
            old.unlink()
    return LOGS


@pytest.fixture(scope="session")
def server(logs: Path) -> Iterator[Server]:
    if not binary().exists():
        pytest.fail(f"{binary()} is not built; run `swift build` or set ROSTRUM_BUILD=release")
    server = Server(logs / "server.log")
    yield server
    assert server.is_running, "the server died during the tests"
    assert server.stop() == 0, "the server did not end cleanly on SIGTERM"


@pytest.fixture
def own_server(logs: Path, request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server for one test alone, which may stop and start it."""
    server = Server(logs / f"server-{request.node.name}.log")
    yield server
    server.stop()


running: list[Browser] = []


def run_browser(kind: type[Chromium] | type[Firefox] | type[WebKit], logs: Path) -> Iterator[Browser]:
    browser = kind(logs)
    running.append(browser)
    yield browser
    running.remove(browser)
    browser.close()


@pytest.fixture(scope="session")
def chromium(logs: Path) -> Iterator[Browser]:
    yield from run_browser(Chromium, logs)


@pytest.fixture(scope="session")
def firefox(logs: Path) -> Iterator[Browser]:
    yield from run_browser(Firefox, logs)


@pytest.fixture(scope="session")
def webkit(logs: Path) -> Iterator[Browser]:
    yield from run_browser(WebKit, logs)


@pytest.fixture(autouse=True)
def close_pages() -> Iterator[None]:
    """No test inherits windows."""
    yield
    for browser in running:
        browser.close_pages()


#: Files that take some seconds and little of the machine. Processes that run files side by side come to them last: else
#: one would be in the middle of a long file when there is nothing left for the others.
SHORT = {f"test_{name}.py" for name in (
    "addresses", "feed_news", "feed_order", "page_focus", "page_forms", "page_modules", "page_on_air", "page_sharing",
    "player_modules", "qr_codes", "rtmps", "sent_layers", "webhooks", "whep_extensions",
)}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Of tests with one id xdist would run the first alone, and say nothing.
    assert len({item.nodeid for item in items}) == len(items), "two tests have one id"
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: item.path.name in SHORT)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    item.stash[LOG_MARKS] = evidence.marks()
    yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[pytest.TestReport]:
    """A failure tells what there was to see: its windows are still open."""
    report = yield
    if report.failed:
        name = re.sub(r"[^\w.,=-]+", "-", item.name)
        report.sections += evidence.of_pages(Browser.all, LOGS, name)
        report.sections += evidence.of_sessions(item.funcargs.get("stream") if isinstance(item, pytest.Function) else None)
        report.sections += evidence.of_servers(item.stash.get(LOG_MARKS, {}))
        report.sections.append(("machine", evidence.of_machine()))
    return report


class Failures:
    """Names what failed at once: a run that is stopped before its end has told of it."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and terminal is not None:
            crash = getattr(report.longrepr, "reprcrash", None)
            reason = crash.message if crash and crash.message else str(report.longrepr)[-1_000:]
            shown = " | ".join(line.strip() for line in reason.splitlines()[:8])
            terminal.write_line(f"\nFAILED {report.nodeid} ({report.when}, after {report.duration:.0f} s): {shown[:1_000]}")


def pytest_configure(config: pytest.Config) -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(Failures(config))


@pytest.fixture
def browsers(request: pytest.FixtureRequest) -> dict[str, Browser]:
    return {name: request.getfixturevalue(name) for name in ("chromium", "firefox")}


@pytest.fixture
def stream(request: pytest.FixtureRequest) -> str:
    """A stream name that tells in logs whose it is."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", request.node.name)[-60:].strip("-")

"""Fixtures: one server and one browser of each kind for the whole run, a fresh stream for each test."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from drivers import Browser, Chromium, Firefox  # noqa: E402
from server import ROOT, Server, binary  # noqa: E402

LOGS = Path(os.environ.get("ROSTRUM_TEST_LOGS", ROOT / ".build" / "browser-tests"))


@pytest.fixture(scope="session", autouse=True)
def logs() -> Path:
    LOGS.mkdir(parents=True, exist_ok=True)
    for old in LOGS.glob("*.log"):
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


def run_browser(kind: type[Chromium] | type[Firefox], logs: Path) -> Iterator[Browser]:
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


@pytest.fixture(autouse=True)
def close_pages(request: pytest.FixtureRequest) -> Iterator[None]:
    """No test inherits windows; those of a failed one are photographed first."""
    yield
    failed = getattr(request.node, "has_failed", False)
    for browser in running:
        for number, page in enumerate(browser.pages if failed else []):
            path = LOGS / f"{request.node.name}-{browser.name}-{number}.png"
            try:
                page.screenshot(path)
                path.with_suffix(".txt").write_text("\n".join(page.console))
            except Exception as error:  # A dead page must not hide why the test failed.
                print(f"no picture of {browser.name} {number}: {error}")
        browser.close_pages()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    outcome = yield
    if outcome.get_result().failed:
        item.has_failed = True


@pytest.fixture
def browsers(request: pytest.FixtureRequest) -> dict[str, Browser]:
    return {name: request.getfixturevalue(name) for name in ("chromium", "firefox")}


@pytest.fixture
def stream(request: pytest.FixtureRequest) -> str:
    """A stream name that tells in logs whose it is."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", request.node.name)[-60:].strip("-")

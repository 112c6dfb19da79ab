"""What all the other tests rely on: that the browsers do what they are told."""

from __future__ import annotations

import socket
import time

import pytest

from drivers import Browser, Page
from drivers.patience import patient
from lossy import Link, receive, stamp_arrivals
from server import Server

BUTTONS = """() => {
    document.body.innerHTML = '<style>button { display: block; width: 9em; height: 3em }</style>' +
        '<button id="meant">Meant</button><button id="other">Other</button>';
    globalThis.pressed = [];
    for (const button of document.querySelectorAll('button')) {
        button.addEventListener('click', () => pressed.push(button.id));
        button.addEventListener('pointerdown', () => pressed.push('down'));
    }
}"""


@pytest.mark.parametrize("name", ["chromium", "firefox"])
def test_a_click_reaches_what_it_means_though_the_page_moves_it(
    browsers: dict[str, Browser], server: Server, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when somebody comes or goes in a list above, between the look and the press."""
    with browsers[name].open(server.origin + "/healthz") as page:
        page.evaluate(BUTTONS)
        aimed: list[tuple[float, float]] = []
        click_at = page._click_at

        def late(x: float, y: float) -> None:
            aimed.append((x, y))
            if len(aimed) == 1:
                # The other button takes its place.
                page.evaluate("() => { document.getElementById('other').after(document.getElementById('meant')); }")
                assert page.evaluate("(x, y) => document.elementFromPoint(x, y)?.id", x, y) == "other"
            click_at(x, y)

        monkeypatch.setattr(page, "_click_at", late)
        page.click("#meant")
        assert len(aimed) == 2
        assert page.evaluate("() => pressed") == ["down", "meant"]


@pytest.mark.parametrize("name", ["chromium", "firefox"])
def test_a_press_that_the_browser_drops_is_made_again(
    browsers: dict[str, Browser], server: Server, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with browsers[name].open(server.origin + "/healthz") as page:
        page.evaluate(BUTTONS)
        aimed: list[tuple[float, float]] = []
        click_at = page._click_at

        def dropped(x: float, y: float) -> None:
            aimed.append((x, y))
            if len(aimed) > 1:
                click_at(x, y)

        monkeypatch.setattr(page, "_click_at", dropped)
        page.click("#meant")
        assert len(aimed) == 2
        assert page.evaluate("() => pressed") == ["down", "meant"]


def test_what_is_waited_for_in_vain_is_told_with_what_the_page_says(
    chromium: Browser, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("drivers.page.patient", lambda seconds: seconds)
    with chromium.open(server.origin + "/healthz") as page:
        with pytest.raises(TimeoutError, match=r'nothing is wrong\n.*\n.*\nthe page: \{"path": "/healthz"\}'):
            page.wait_for("() => false", seconds=0.1, what="nothing is wrong", about="() => ({path: location.pathname})")
        with pytest.raises(TimeoutError, match="the page: it does not answer: .*no such page"):
            page.wait_for(
                "() => false", seconds=0.1, what="nothing is wrong", about="() => { throw new Error('no such page'); }")


def press(page: Page, selector: str) -> list[str]:
    page.evaluate("() => { pressed.length = 0; }")
    page.click(selector)
    return page.evaluate("() => pressed")


@pytest.mark.parametrize("name", ["chromium", "firefox"])
def test_clicks_are_heard_one_after_the_other(browsers: dict[str, Browser], server: Server, name: str) -> None:
    with browsers[name].open(server.origin + "/healthz") as page:
        page.evaluate(BUTTONS)
        assert [press(page, "#meant"), press(page, "#other"), press(page, "#other")] == [
            ["down", "meant"], ["down", "other"], ["down", "other"],
        ]


def test_a_slow_link_loses_nothing_because_it_is_read_late() -> None:
    """A proxy without a processor reads all at once what came one after the other."""
    link = Link()
    link.capacity = 640_000
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as onward,
    ):
        end.bind(("127.0.0.1", 0))
        end.settimeout(patient(2))
        stamp_arrivals(end)
        sender.connect(end.getsockname())
        onward.connect(sender.getsockname())
        # No more than the link takes, and more than its queue holds.
        for _ in range(60):
            sender.send(bytes(1_000))
            time.sleep(1 / 75)
        for _ in range(60):
            datagram, _, came = receive(end)
            assert link.put(came, onward, datagram)

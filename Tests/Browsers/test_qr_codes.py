"""QR codes in the studio: what a phone's camera reads is what stands beside them."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from PIL import Image
from pyzbar.pyzbar import ZBarSymbol, decode

from drivers import PHONE, Browser, Page, wait_until
from media import check_no_complaints, press_go_live
from test_links import Production, open_link, production  # noqa: F401
from test_pages import assert_fits
from test_rtmp import RTMPServer, rtmp_server  # noqa: F401


def read(page: Page, picture: Path) -> str:
    """What a camera sees of the page: the one code that is on it."""
    page.wait_for("() => document.getElementById('qr')?.complete", what="there is a code")

    def look() -> str | None:
        page.screenshot(picture)
        with Image.open(picture) as seen:
            codes = decode(seen, symbols=[ZBarSymbol.QRCODE])
        assert len(codes) < 2, codes
        return codes[0].data.decode() if codes else None

    # The window comes with an animation.
    return wait_until(look, 10, "the code can be read")


def close(page: Page) -> None:
    page.click("dialog[data-name=qr] [data-value=close]")
    page.wait_for("() => !document.querySelector('dialog[data-name=qr]')", what="the code is gone")


def test_links_can_be_scanned(chromium: Browser, production: Production, stream: str, logs: Path) -> None:  # noqa: F811
    host = open_link(chromium, production.host_link(stream), "?source=test&quality=360&fps=15")
    press_go_live(host)
    # Both are tokens, and so are long.
    link = host.wait_for("() => document.getElementById('link').value", what="there is a link for viewers")
    host.click("#link-code")
    assert read(host, logs / "qr-link.png") == link
    close(host)
    host.click("#copy-speaker")
    link = host.wait_for("() => globalThis.copied?.at(-1)", what="the speaker's link is copied")
    host.click("#speaker-code")
    assert read(host, logs / "qr-speaker.png") == link
    close(host)
    host.screenshot(logs / "qr-buttons.png")
    # A phone's pixels are finer than those of this picture, so that nothing is read from it.
    host.resize(PHONE)
    assert_fits(host)
    host.click("#speaker-code")
    host.wait_for("() => document.getElementById('qr')?.complete", what="there is a code")
    assert_fits(host)
    host.screenshot(logs / "qr-speaker-phone.png")
    # It asked for its stream before there was one.
    assert [error for error in host.errors if "404" not in error] == []


def test_a_phone_is_set_up_as_an_encoder(
    chromium: Browser, rtmp_server: RTMPServer, stream: str, logs: Path  # noqa: F811
) -> None:
    with chromium.open(f"{rtmp_server.origin}/live/{stream}") as page:
        page.click("#encoder summary")
        address, key = page.wait_for(
            """() => {
                const fields = ['encoder-server', 'encoder-key'].map((id) => document.getElementById(id));
                return fields.every(({value}) => value) && fields.map(({value}) => value);
            }""", what="the panel says where to")
        # The key is on the screen only when somebody asks.
        assert page.evaluate("() => document.getElementById('qr')") is None
        page.click("#encoder-code")
        assert read(page, logs / "qr-encoder.png") == f"{address}/{key}"
        page.evaluate("""() => {
            const choice = document.querySelector('dialog[data-name=qr] select'), picture = document.getElementById('qr');
            globalThis.drawn = new Promise((done) => picture.addEventListener('load', () => done(true), {once: true}));
            choice.value = '1';
            choice.dispatchEvent(new Event('change'));
        }""")
        assert page.evaluate("() => drawn")
        grove = urlsplit(read(page, logs / "qr-larix.png"))
        assert (grove.scheme, grove.netloc, grove.path) == ("larix", "set", "/v1")
        assert parse_qs(grove.query) == {"conn[][url]": [f"{address}/{key}"], "conn[][name]": [stream]}
        close(page)
        check_no_complaints(page)
    assert key not in (logs / "server-rtmp.log").read_text()


def test_what_is_drawn_is_limited(rtmp_server: RTMPServer, stream: str) -> None:  # noqa: F811
    headers = {"Authorization": f"Bearer {rtmp_server.token(stream)}", "Content-Type": "application/json"}

    def ask(text: str) -> tuple[int, dict[str, str], bytes]:
        return rtmp_server.request("POST", "/v1/qr-codes", json.dumps({"text": text}).encode(), headers)

    status, answered, picture = ask("é" * 500)
    assert status == 200 and picture.startswith(b"<svg ")
    assert (answered["content-type"], answered["cache-control"]) == ("image/svg+xml", "no-store")
    status, _, problem = ask("é" * 500 + "a")
    assert status == 422 and "1000 bytes" in json.loads(problem)["detail"]

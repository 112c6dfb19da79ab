"""What pages load: asked for once, and small on its way."""

from __future__ import annotations

import gzip

import pytest

from drivers import DESKTOP, Browser
from server import Server

LASTING = "public, max-age=31536000, immutable"
LOADED = """() => performance.getEntriesByType('resource').filter(each => each.name.includes('/assets/'))
    .map(each => [each.name, each.transferSize])"""


@pytest.mark.parametrize("path", ["/", "/live/assets", "/watch/assets", "/admin"])
def test_who_comes_again_loads_nothing_anew(browsers: dict[str, Browser], server: Server, path: str) -> None:
    for browser in browsers.values():
        for visit in range(2):
            with browser.open(server.origin + path, DESKTOP) as page:
                page.wait_for("() => document.readyState === 'complete'")
                loaded = page.evaluate(LOADED)
            assert len(loaded) > 5 and all("/assets/build-" in name for name, _ in loaded), loaded
            if visit:
                assert [name for name, size in loaded if size] == []


def test_a_file_is_kept_where_its_address_names_the_build(server: Server) -> None:
    page = server.request("GET", "/watch/s1")[2].decode()
    build = page.split('src="/assets/')[1].split("/")[0]
    _, headers, ours = server.request("GET", f"/assets/{build}/watch.js")
    assert headers["cache-control"] == LASTING
    # By a name for good, and of a page that an earlier version of the server gave out.
    for path in ("/assets/watch.js", "/assets/v1/watch.js", "/assets/build-of-yesterday/watch.js"):
        status, headers, body = server.request("GET", path)
        assert (status, headers["cache-control"], body) == (200, "no-cache", ours)
    # A page's own address stays, so it is asked for each time.
    assert server.request("GET", "/watch/s1")[1]["cache-control"] == "no-cache"
    # The guide names what others load by the address that stays.
    assert 'src="/assets/v1/rostrum-player.js"' in server.request("GET", "/docs/player")[2].decode()


@pytest.mark.parametrize("path", ["/", "/assets/session.js", "/assets/style.css", "/assets/icons.svg", "/v1/openapi.json"])
def test_text_goes_in_gzip(server: Server, path: str) -> None:
    _, plain_headers, plain = server.request("GET", path)
    assert "content-encoding" not in plain_headers and plain_headers["vary"] == "Accept-Encoding"
    for accepted in ("gzip", "br;q=1.0, GZIP;q=0.8, *;q=0", "deflate, *"):
        _, headers, small = server.request("GET", path, headers={"Accept-Encoding": accepted})
        assert headers["content-encoding"] == "gzip" and headers["content-type"] == plain_headers["content-type"]
        assert gzip.decompress(small) == plain and len(small) < len(plain) / 2
        assert headers["etag"] != plain_headers["etag"]
        known = {"Accept-Encoding": accepted, "If-None-Match": headers["etag"]}
        status, headers, nothing = server.request("GET", path, headers=known)
        assert (status, nothing) == (304, b"") and "content-encoding" not in headers
    for accepted in ("identity", "gzip;q=0", "gzip; q=0.000, *", "br, deflate", "*;q=0", ";;,=,q=0"):
        _, headers, body = server.request("GET", path, headers={"Accept-Encoding": accepted})
        assert "content-encoding" not in headers and body == plain, accepted

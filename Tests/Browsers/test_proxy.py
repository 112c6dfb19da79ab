"""nginx in front, by the configuration that comes with the package: pages by HTTP/2, and a cache that holds the audience of HLS."""

from __future__ import annotations

import os
import re
import signal
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from drivers import Browser, Chromium, wait_until
from drivers.patience import patient
from drivers.process import Process
from media import check_no_complaints, go_live, press_go_live, wait_for_frames, wait_for_state
from server import ROOT, Server, free_port, unpacked

#: As which nginx speaks to the server, so that tests that ask it directly do not count as the proxy.
OWN_ADDRESS = "127.0.0.9"
CONFIGURATION = ROOT / "Tools/package.d/nginx.conf"
#: What a machine of its own would not need: everything in one folder, and a log that says what was passed on.
AROUND = """daemon off;
{user}
pid {folder}/nginx.pid;
error_log stderr notice;
worker_processes 1;
events {{ worker_connections 1024; }}
http {{
    log_format told '$request_method $request_uri $status $upstream_status';
    access_log {folder}/access.log told;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    proxy_bind {own_address};
    include {folder}/rostrum.conf;
}}
"""


class Proxy:
    """A real nginx in front of a server of its own."""

    def __init__(self, logs: Path, folder: Path) -> None:
        subprocess.run([str(ROOT / "Certs/make-dev-certs"), "--out", str(folder)], check=True, capture_output=True)
        self.server = Server(logs / "server-proxied.log", "--trusted-proxy", OWN_ADDRESS, "--max-hls", "2")
        port = free_port()
        text = CONFIGURATION.read_text()
        for ours, here in {
            "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
            "server 127.0.0.1:8080": f"server 127.0.0.1:{self.server.http_port}",
            "/etc/letsencrypt/live/live.example.org/fullchain.pem": f"{folder}/tls.pem",
            "/etc/letsencrypt/live/live.example.org/privkey.pem": f"{folder}/tls.key",
            "/var/cache/nginx/rostrum": f"{folder}/cache",
        }.items():
            assert text.count(ours) == 1, ours
            text = text.replace(ours, here)
        (folder / "rostrum.conf").write_text(text)
        (folder / "nginx.conf").write_text(
            AROUND.format(folder=folder, own_address=OWN_ADDRESS, user="user root;" if os.geteuid() == 0 else ""))
        self.origin = f"https://127.0.0.1:{port}"
        self.context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
        self._log = folder / "access.log"
        self._process = Process(
            [str(unpacked("usr/sbin/nginx")), "-p", str(folder), "-c", str(folder / "nginx.conf")],
            logs / "nginx.log", "start worker process ", 15)

    def get(self, path: str, token: str | None = None) -> tuple[int, str, bytes]:
        """Status, whether the cache had it, and the body."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(self.origin + path, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=patient(20), context=self.context) as answer:
                return answer.status, answer.headers.get("X-Cache", ""), answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers.get("X-Cache", ""), error.read()

    def requests(self) -> list[tuple[str, bool]]:
        """What was asked of it so far, and whether it asked the server."""
        lines = (line.split(" ", 3) for line in self._log.read_text().splitlines())
        return [(path, upstream.strip() != "-") for _, path, _, upstream in lines]

    def stop(self) -> None:
        self._process.stop()
        assert self.server.stop() == 0


@pytest.fixture(scope="module")
def proxy(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    proxy = Proxy(logs, tmp_path_factory.mktemp("nginx"))
    yield proxy
    proxy.stop()


def test_pages_and_their_sockets_come_through(proxy: Proxy, logs: Path, stream: str) -> None:
    browser = Chromium(logs, ["--ignore-certificate-errors"])
    try:
        # Who comes by a proxy is nobody whom the server trusts for being on its machine.
        token = proxy.server.token(stream)
        assert proxy.get("/metrics")[0] == 401
        studio = browser.open(f"{proxy.origin}/live/{stream}?quality=360&fps=15#token={token}")
        press_go_live(studio)
        viewer = browser.open(f"{proxy.origin}/watch/{stream}")
        wait_for_state(viewer, "live")
        wait_for_frames(viewer)
        viewer.wait_for("() => rostrum.sync.isOpen", what="the page's WebSocket is open")
        assert viewer.evaluate("() => performance.getEntriesByType('navigation')[0].nextHopProtocol") == "h2"
        check_no_complaints(studio)
    finally:
        browser.close()


def play(proxy: Proxy, stream: str, parts: int) -> int:
    """Plays low-latency HLS as a player does, until so many parts have come; how many bytes they had."""

    def text(path: str) -> str:
        while True:
            status, _, body = proxy.get(path)
            if status == 200:
                return body.decode()
            # What is waited for takes longer than the server lets a request wait.
            assert status == 503, (path, status, body)

    base = f"/hls/{stream}"
    playlist = text(f"{base}/media.m3u8")
    total, count = 0, 0
    while count < parts:
        hint = re.search(r'#EXT-X-PRELOAD-HINT:TYPE=PART,URI="(\w+-p(\d+)-(\d+)\.m4s)"', playlist)
        if not hint:
            # What comes next has another beginning, and no name yet.
            last = max(int(number) for number in re.findall(r"-s(\d+)\.m4s", playlist))
            playlist = text(f"{base}/media.m3u8?_HLS_msn={last + 1}")
            continue
        name, segment, part = hint.groups()
        playlist = text(f"{base}/media.m3u8?_HLS_msn={segment}&_HLS_part={part}")
        status, _, body = proxy.get(f"{base}/{name}")
        # A segment may end with fewer parts than another: then the hint was for one that never comes.
        if status == 200:
            total, count = total + len(body), count + 1
    return total


def test_a_cache_holds_the_audience(chromium: Browser, proxy: Proxy, stream: str) -> None:
    """What reaches the server from thirty players is what would come from one, whatever they ask for at the same time."""
    viewers, parts = 30, 8
    with go_live(chromium, proxy.server, stream):
        wait_until(lambda: proxy.get(f"/hls/{stream}/media.m3u8")[0] == 200, 30, "there is a playlist")
        before = len(proxy.requests())
        with ThreadPoolExecutor(viewers) as pool:
            totals = list(pool.map(lambda _: play(proxy, stream, parts), range(viewers)))
        assert min(totals) > 0
        asked = [request for request in proxy.requests()[before:] if f"/hls/{stream}/" in request[0]]
        passed = Counter(path for path, is_passed in asked if is_passed)
        assert len(asked) >= 2 * viewers * parts
        assert passed.total() <= len(asked) / 5, passed
        # A part holds for a minute; a playlist that was waited for, for six seconds, which somebody may be late by.
        media = {path: times for path, times in passed.items() if path.endswith(".m4s")}
        assert sum(media.values()) <= 1.2 * len(media), media


def test_a_cache_asks_once_for_what_has_expired(chromium: Browser, proxy: Proxy, stream: str) -> None:
    """While one waits for a newer playlist, all others get the one that there is, and are not passed on."""
    path = f"/hls/{stream}/media.m3u8"
    with go_live(chromium, proxy.server, stream):
        wait_until(lambda: proxy.get(path)[0] == 200, 30, "there is a playlist")
        statuses: list[str] = []
        is_over = threading.Event()

        def watch() -> None:
            while not is_over.is_set():
                statuses.append(proxy.get(path)[1])

        def is_given_what_there_is() -> bool:
            """Whether anybody is while another one has no answer, as the server holds still for a moment."""
            began = time.monotonic()
            os.kill(proxy.server.pid, signal.SIGSTOP)
            try:
                while "UPDATING" not in statuses and time.monotonic() < began + 3:
                    time.sleep(0.01)
            finally:
                os.kill(proxy.server.pid, signal.SIGCONT)
            return "UPDATING" in statuses
        with ThreadPoolExecutor(8) as pool:
            watching = [pool.submit(watch) for _ in range(8)]
            try:
                wait_until(lambda: "HIT" in statuses, 10, "the cache has it")
                # It is given for a second, in which a busy machine may do something else.
                wait_until(is_given_what_there_is, 20, lambda: f"{Counter(statuses)}")
            finally:
                is_over.set()
            for each in watching:
                each.result()
        wait_until(lambda: proxy.get(path)[0] == 200, 10, "the server goes on")


def test_what_a_token_opens_is_kept_for_nobody_else(chromium: Browser, proxy: Proxy, stream: str) -> None:
    """By the header nothing is taken out of the cache, and nothing put into it; in the path it is part of the key."""
    token = proxy.server.token(stream, "viewer")
    with go_live(chromium, proxy.server, stream):
        wait_until(lambda: proxy.get(f"/hls/{stream}/media.m3u8", token)[0] == 200, 30, "there is a playlist")
        path = f"/hls/{stream}/index.m3u8"
        assert [proxy.get(path, token)[1] for _ in range(2)] == ["BYPASS", "BYPASS"]
        assert proxy.get(path)[1] == "MISS", "nothing of it was kept"
        in_path = f"/hls/{stream}/t/{token}/media.m3u8"
        first = re.search(rb"#EXT-X-MEDIA-SEQUENCE:(\d+)", proxy.get(in_path)[2])
        assert first
        # What was asked for by number holds for six seconds.
        again = f"{in_path}?_HLS_msn={int(first[1])}"
        assert proxy.get(again)[1] == "MISS"
        wait_until(lambda: proxy.get(again)[1] == "HIT", 20, "the cache has it for the same token")
        assert proxy.get(f"/hls/{stream}/t/x{token}/index.m3u8")[0] == 401

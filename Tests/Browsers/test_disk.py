"""What a server deletes for its age, and what it says while its disk takes nothing: nothing told is lost."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from drivers.patience import patient
from server import Server
from test_backup import KINDS, ledger, put_recordings
from test_durability import Client, Shop, durable_server, small_disk  # noqa: F401


class Insistent(Shop):
    """Gives one gift after another, whatever the server says, and keeps what it said of each."""

    def __init__(self, server: Server, stream: str, name: str, seed: int) -> None:
        super().__init__(server, stream, name, seed)
        self.refused: set[str] = set()

    def give_next(self) -> None:
        key = f"{self.name}-{len(self.asked)}"
        self.asked.append(key)
        body = {"giver": self.name, "gift": "rose", "count": 1, "price": {"amount": 100, "currency": "EUR"}}
        with contextlib.suppress(OSError, http.client.HTTPException):
            status, headers, answer = self.server.request(
                "PUT", f"/v1/streams/{self.stream}/gifts/{key}", json.dumps(body).encode(),
                {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"})
            if status == 200:
                self.answered[key] = json.loads(answer)
                return
            problem = json.loads(answer)
            assert (status, problem["rule"]) == (503, "storage") and int(headers["retry-after"]) > 0, problem
            self.refused.add(key)


def test_a_disk_that_fills_again_and_again_loses_nothing_told(logs: Path, small_disk: Path) -> None:  # noqa: F811
    ballast = small_disk / "ballast"
    with durable_server(logs, "refills", small_disk / "data") as server, ThreadPoolExecutor(4) as pool:
        host = Client(server, "gifts", 1)
        assert host.create()[0] == 201
        host.ask("host", "POST", f"{host.path}/live")
        host.ask("host", "PATCH", f"{host.path}/interaction", {"gifts": {"currency": "EUR", "kinds": KINDS}})
        shops = [Insistent(server, "gifts", f"giver{number}", number) for number in range(4)]

        def give_until(what: str) -> None:
            """All at the same time, until each shop heard that once more."""
            before = [len(getattr(shop, what)) for shop in shops]
            for _ in range(500):
                list(pool.map(Insistent.give_next, shops))
                if all(len(getattr(shop, what)) > count for shop, count in zip(shops, before, strict=True)):
                    return
            raise AssertionError(f"nothing is {what}")

        for _ in range(4):
            give_until("answered")
            with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
                while True:
                    file.write(b"x" * 4096)
            give_until("refused")
            # A recording and a picture are refused too, in their own words.
            status, problem = host.ask("host", "POST", f"{host.path}/recording")
            assert (status, problem["rule"]) == (507, "disk-full"), problem
            status, _, _ = server.request(
                "PUT", f"{host.path}/pause-picture", b"\xff\xd8\xff" + bytes(100_000),
                {"Authorization": f"Bearer {host.tokens['host']}", "Content-Type": "image/jpeg"})
            assert status == 503
            ballast.unlink()
        give_until("answered")
        last = [pool.submit(shop.give_next) for shop in shops for _ in range(5)]
        last[2].result()
        os.kill(server.pid, signal.SIGKILL)
        for gift in last:
            gift.result()
        server.stop()
        server.start()
        found = ledger(shops[0])
        for shop in shops:
            assert found.items() >= shop.answered.items(), "what was answered is there"
            assert not found.keys() & shop.refused, "what was refused did not happen"


def test_what_another_program_holds_is_refused_and_comes_back(logs: Path, tmp_path: Path) -> None:
    with durable_server(logs, "held", tmp_path / "data") as server:
        client = Client(server, "held", 1)
        assert client.create()[0] == 201
        with contextlib.closing(sqlite3.connect(tmp_path / "data/rostrum.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            status, problem = client.ask("operator", "PATCH", client.path, {"title": "Refused"})
            assert (status, problem["rule"]) == (503, "storage"), problem
            status, _, body = server.request("GET", "/readyz")
            assert status == 503 and b"database is locked" in body, body
            assert client.ask("host", "GET", client.path)[1]["title"] == "Before"
            other.execute("ROLLBACK")
        deadline = time.monotonic() + patient(20)
        while server.request("GET", "/readyz")[0] != 200:
            assert time.monotonic() < deadline, "still not ready"
            time.sleep(0.05)
        assert client.ask("operator", "PATCH", client.path, {"title": "After"})[0] == 200
        assert server.metrics()["rostrum_store_write_seconds_count"] > 0
        assert server.metrics()["rostrum_store_writing_seconds"] == 0


def test_what_is_old_enough_goes_and_what_is_played_stays(logs: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    with durable_server(logs, "young", data) as server:
        for name in ["old", "live"]:
            client = Client(server, name, 1)
            assert client.create()[0] == 201
            assert client.ask("host", "POST", f"{client.path}/live")[0] == 200
            assert client.ask("host", "PATCH", f"{client.path}/interaction", {"comments": True})[0] == 200
            status, comment = client.ask(
                "viewer-1", "POST", f"{client.path}/comments", {"id": "c", "text": f"a secret of {name}"})
            assert status in (200, 201), comment
        assert Client(server, "old", 1).ask("host", "POST", "/v1/streams/old/end")[0] == 200
        assert "rostrum_expired_total" not in str(server.metrics())
    put_recordings(data, 30, 1 << 16, int(time.time() * 1_000) - 5_000)
    with durable_server(
            logs, "deletes", data, "--keep-streams", "2s", "--keep-recordings", "1s", "--keep-comments", "1s") as server:
        # Played from the beginning before its turn: twenty go in a second, r0, r1, r10, r11 and so on.
        played = "/v1/streams/talk/recordings/r29.webm"
        status, _, part = server.request("GET", played, headers={"Range": "bytes=0-99"})
        wanted = {"stream": 1, "recording": 29 + (status == 404), "comment": 2}
        deadline = time.monotonic() + patient(15)
        while (found := {kind: server.metrics().get(f'rostrum_expired_total{{kind="{kind}"}}') for kind in wanted}) != wanted:
            assert time.monotonic() < deadline, (found, wanted)
            time.sleep(0.1)
        if status == 206:
            status, _, rest = server.request("GET", played, headers={"Range": "bytes=100-"})
            assert status == 206 and part + rest == (data / "recordings/talk/r29.webm").read_bytes()
        assert server.metrics()["rostrum_expired_bytes_total"] == wanted["recording"] << 16
        assert sorted(path.suffix for path in (data / "recordings/talk").glob("*")) in ([".json", ".webm"], [])
        live = Client(server, "live", 2)
        assert live.ask("host", "GET", "/v1/streams/old")[0] == 404
        assert live.ask("host", "GET", f"{live.path}/comments")[1]["comments"] == []
        assert [stream["id"] for stream in server.json("/v1/streams")["streams"]] == ["live"]
        # Its name is free, for another request than the one that made it.
        assert Client(server, "old", 3).ask("host", "POST", "/v1/streams", {"id": "old"})[0] == 201
    with contextlib.closing(sqlite3.connect(data / "rostrum.db")) as database:
        for table in ["records", "snapshots"]:
            for (text,) in database.execute(f"SELECT bytes FROM {table}"):
                assert b"a secret of" not in text
    log = (logs / "server-deletes.log").read_text()
    assert "stream.expired stream=old" in log and "comments.expired stream=live comments=1" in log
    assert log.count("recording.expired stream=talk") == wanted["recording"]

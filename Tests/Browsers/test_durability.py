"""What the server answered with 2xx is there after kill -9; a disk that takes nothing costs commands, not media."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from drivers import Browser, wait_until
from drivers.patience import patient
from media import go_live, wait_for_frames, wait_for_state, watch
from server import Server, binary

SECRET = "a secret that outlives a restart, of course"
PEOPLE = [f"viewer-{number}" for number in range(6)]
#: Seconds that a server waits after its start for those who were there, before it frees their places.
GRACE = 15


@dataclass
class Model:
    """What one stream must look like, given what was answered."""

    title: str | None = None
    state: str = "backstage"
    hands: set[str] = field(default_factory=set)
    invited: set[str] = field(default_factory=set)
    speakers: set[str] = field(default_factory=set)

    def copy(self) -> Model:
        return Model(self.title, self.state, set(self.hands), set(self.invited), set(self.speakers))

    def deserted(self) -> Model:
        """Once all have left who are not connected, which nobody here is."""
        return Model(self.title, self.state)


class Client:
    """Gives random commands to one stream, one after another, and keeps the model of what was answered."""

    def __init__(self, server: Server, name: str, seed: int) -> None:
        self.server = server
        self.name = name
        self.random = random.Random(seed)
        self.tokens = {person: server.token(name, "viewer", person) for person in PEOPLE}
        self.tokens["host"] = server.token(name, "host", "host")
        # For commands without end: hosts have a limit.
        self.tokens["operator"] = server.token(name, "admin", "operator")
        self.model: Model | None = None
        # What was asked and not answered: it may have happened or not.
        self.pending: Model | None = None
        self.answered = 0

    def ask(self, who: str, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.http_port, timeout=patient(10))
        headers = {"Authorization": f"Bearer {self.tokens[who]}", **headers}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        return answer.status, json.loads(text) if text else None

    @property
    def path(self) -> str:
        return f"/v1/streams/{self.name}"

    def create(self) -> tuple[int, Any]:
        return self.ask(
            "host", "POST", "/v1/streams",
            {"id": self.name, "title": "Before", "hostGraceSeconds": 3600},
            **{"Idempotency-Key": f"create {self.name}"})

    def step(self) -> None:
        """One command whose outcome follows from the model."""
        if self.model is None:
            self.pending = Model("Before")
            status, _ = self.create()
            assert status == 201, status
            self.model = self.pending
            self.answered += 1
            return
        model = self.model.copy()
        person = self.random.choice(PEOPLE)
        host = "operator"
        choices = [
            ("title", host, "PATCH", self.path, {"title": f"Title {self.answered} “Zoë” 🎬"}),
            ("raise", person, "POST", f"{self.path}/hands", None),
            ("lower", host, "DELETE", f"{self.path}/hands/{person}", None),
            ("invite", host, "POST", f"{self.path}/invitations", {"participant": person}),
            ("accept", person, "POST", f"{self.path}/invitations/{person}/accept", None),
            ("demote", host, "DELETE", f"{self.path}/speakers/{person}", None),
        ]
        if self.answered > 30 and model.state == "backstage":
            choices.append(("live", host, "POST", f"{self.path}/live", None))
        kind, who, method, path, body = self.random.choice(choices)
        if kind == "title":
            model.title = body["title"]
        elif kind == "raise":
            model.hands.add(person)
        elif kind == "lower":
            model.hands.discard(person)
        elif kind == "invite":
            model.invited.add(person)
        elif kind == "accept":
            model.invited.discard(person)
            model.hands.discard(person)
            model.speakers.add(person)
        elif kind == "demote":
            model.speakers.discard(person)
        elif kind == "live":
            model.state = "live"
        self.pending = model
        status, answer = self.ask(who, method, path, body)
        # A refusal is an answer too: nothing happened.
        if 200 <= status < 300:
            self.model = model
        else:
            assert status in (403, 404, 409, 429), (kind, status, answer)
        self.pending = None
        self.answered += 1

    def run(self) -> None:
        """Until the server is gone."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            while True:
                self.step()

    def seen(self) -> Model | None:
        status, stream = self.ask("host", "GET", self.path)
        if status == 404:
            return None
        assert status == 200, (status, stream)
        status, people = self.ask("host", "GET", f"{self.path}/participants")
        assert status == 200, (status, people)
        return Model(
            stream["title"], stream["state"], set(people["raisedHands"]), set(people["invitations"]),
            set(people["speakers"]) - {"host"})

    def check(self, restarted: float) -> None:
        """What is there is what was answered, with or without what was not answered, wholly."""
        seen = self.expect([self.model] + ([self.pending] if self.pending is not None else []), restarted)
        if seen is not None:
            # Whoever was not answered asks again, and gets the same stream.
            status, answer = self.create()
            assert status == 201 and answer["id"] == self.name, (status, answer)
            seen = self.expect([seen], restarted)
        self.model, self.pending = seen, None

    def expect(self, allowed: list[Model | None], restarted: float) -> Model | None:
        """What there is, which is one of these; as a busy machine may be late to ask, perhaps without those who left."""
        seen = self.seen()
        if time.monotonic() > restarted + GRACE:
            allowed = allowed + [model.deserted() for model in allowed if model is not None]
        assert seen in allowed, f"{self.name}: there is {seen}, but it was told {allowed}"
        return seen


@contextlib.contextmanager
def durable_server(logs: Path, name: str, data: Path, *arguments: str) -> Iterator[Server]:
    server = Server(
        logs / f"server-{name}.log", "--data", str(data), "--secret", SECRET, "--workers", "1",
        "--tcp", "off", *arguments)
    try:
        yield server
    finally:
        server.stop()


def let_answer(answered: Callable[[], int], wanted: int, chance: random.Random) -> None:
    """Waits for so many answers, or four seconds; and for one of them as long as it takes."""
    began = time.monotonic()
    while (count := answered()) < wanted:
        seconds = time.monotonic() - began
        if seconds > (4 if count else patient(20)):
            return
        time.sleep(chance.random() / 100)


@pytest.mark.parametrize("seed", range(3))
def test_kill(logs: Path, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    with durable_server(logs, f"kill-{seed}", tmp_path / "data") as server:
        for turn in range(3):
            clients = [Client(server, f"s{seed}-{turn}-{n}", seed * 100 + turn * 10 + n) for n in range(4)]
            threads = [threading.Thread(target=client.run) for client in clients]
            for thread in threads:
                thread.start()
            let_answer(lambda: sum(client.answered for client in clients), chance.randrange(1, 250), chance)
            os.kill(server.pid, signal.SIGKILL)
            for thread in threads:
                thread.join(patient(20))
                assert not thread.is_alive()
            server.stop()
            restarted = time.monotonic()
            server.start()
            for client in clients:
                client.check(restarted)
            assert sum(client.answered for client in clients) > 0


class Shop:
    """Gives one gift after another, some of them again, and keeps what was answered."""

    def __init__(self, server: Server, stream: str, name: str, seed: int) -> None:
        self.server = server
        self.stream = stream
        self.name = name
        self.random = random.Random(seed)
        self.token = server.token(stream, "viewer", "Shop", capabilities=("give-gifts",))
        self.answered: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.http_port, timeout=patient(10))
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        try:
            connection.request(method, f"/v1/streams/{self.stream}{path}", None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        assert answer.status == 200, (answer.status, text)
        return json.loads(text)

    def give(self, key: str) -> None:
        count = 1 + len(key) % 3
        body = {"giver": self.name, "gift": "rose", "count": count, "price": {"amount": 100, "currency": "EUR"}}
        gift = self.ask("PUT", f"/gifts/{key}", body)
        assert gift["key"] == key and gift["count"] == count
        assert self.answered.setdefault(key, gift) == gift, "the same gift is answered the same"

    def run(self) -> None:
        """Until the server is gone."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            while True:
                if self.answered and self.random.random() < 0.2:
                    self.give(self.random.choice(list(self.answered)))
                    continue
                self.asked.append(f"{self.name}-{len(self.asked)}")
                self.give(self.asked[-1])


@pytest.mark.parametrize("seed", range(2))
def test_gifts_are_given_once_whenever_the_server_dies(logs: Path, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    with durable_server(logs, f"gifts-{seed}", tmp_path / "data") as server:
        client = Client(server, f"gifts{seed}", seed)
        client.create()
        client.ask("host", "POST", f"{client.path}/live")
        kinds = [{"id": "rose", "name": "Rose", "picture": "🌹", "price": 100}]
        status, _ = client.ask(
            "host", "PATCH", f"{client.path}/interaction", {"gifts": {"currency": "EUR", "kinds": kinds}})
        assert status == 200
        shops = [Shop(server, client.name, f"giver{number}", seed * 10 + number) for number in range(3)]
        for _ in range(3):
            threads = [threading.Thread(target=shop.run) for shop in shops]
            before = sum(len(shop.answered) for shop in shops)
            for thread in threads:
                thread.start()
            let_answer(lambda: sum(len(shop.answered) for shop in shops) - before, chance.randrange(20, 300), chance)
            os.kill(server.pid, signal.SIGKILL)
            for thread in threads:
                thread.join(patient(20))
                assert not thread.is_alive()
            server.stop()
            server.start()
            for shop in shops:
                # What was not answered is asked again; what was answered is known, with the number that it had.
                for key in shop.asked:
                    shop.give(key)
            ledger: list[dict[str, Any]] = []
            page = {"more": True}
            while page["more"]:
                page = shops[0].ask("GET", f"/gifts?limit=200&after={len(ledger)}")
                ledger += page["gifts"]
            assert [gift["number"] for gift in ledger] == list(range(1, len(ledger) + 1))
            given = {gift["key"]: gift for gift in ledger}
            assert given == {key: gift for shop in shops for key, gift in shop.answered.items()}
            assert len(given) == len(ledger) > 0, "each once"
            count = sum(gift["count"] for gift in ledger)
            assert page["totals"] == {
                "gifts": count, "value": 100 * count, "currency": "EUR", "last": len(ledger)}
            ranks = shops[0].ask("GET", "/ranks/givers")["ranks"]
            assert sum(rank["value"] for rank in ranks) == 100 * count


def refused_and_back(client: Client, fill: Any, relieve: Any) -> None:
    """Commands are refused with 503 while nothing can be written, and taken afterwards; nothing is lost."""
    for _ in range(5):
        client.step()
    fill()
    status = 200
    for number in range(500):
        status, problem = client.ask(
            "operator", "PATCH", client.path, {"title": f"{number} " + "x" * 150})
        if status != 200:
            break
        assert client.model is not None
        client.model.title = f"{number} " + "x" * 150
    assert status == 503, status
    assert problem["status"] == 503, problem
    # What was refused did not happen, and questions are answered.
    assert client.seen() == client.model
    assert client.server.request("GET", "/healthz")[0] == 200
    assert client.server.metrics()["rostrum_store_failing"] == 1
    status, _, body = client.server.request("GET", "/readyz")
    assert status == 503 and b"can't write" in body, (status, body)
    relieve()
    # A server that is not ready is asked for nothing: it must find out by itself.
    wait_until(lambda: client.server.request("GET", "/readyz")[0] == 200, 10, "it is ready again")
    client.step()
    status, _ = client.ask("operator", "PATCH", client.path, {"title": "After"})
    assert status == 200
    assert client.model is not None
    client.model.title = "After"
    assert client.seen() == client.model
    assert client.server.metrics()["rostrum_store_failing"] == 0
    os.kill(client.server.pid, signal.SIGKILL)
    client.server.stop()
    restarted = time.monotonic()
    client.server.start()
    client.check(restarted)


def test_no_more_room_in_files(logs: Path, tmp_path: Path) -> None:
    """A limit on the size of files stands for a disk with errors."""
    data = tmp_path / "data"
    with durable_server(logs, "limit", data) as server:
        client = Client(server, "limited", 1)
        unlimited = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)

        def fill() -> None:
            size = (data / "rostrum.db-wal").stat().st_size
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size + 50_000, unlimited[1]))

        refused_and_back(
            client, fill, lambda: resource.prlimit(server.pid, resource.RLIMIT_FSIZE, unlimited))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes; only root may make one."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"cannot mount: {made.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_full_disk(logs: Path, small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    with durable_server(logs, "full", small_disk / "data") as server:

        def fill() -> None:
            with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
                while True:
                    file.write(b"x" * 4096)

        refused_and_back(Client(server, "full", 2), fill, ballast.unlink)


def test_media_goes_on_while_the_disk_is_full(chromium: Browser, logs: Path, small_disk: Path) -> None:
    with durable_server(logs, "full-media", small_disk / "data") as server:
        host = go_live(chromium, server, "talk", source="test")
        viewer = watch(chromium, server, "talk")
        wait_for_state(viewer, "live")
        wait_for_frames(viewer)
        with contextlib.suppress(OSError), (small_disk / "ballast").open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        headers = {"Authorization": f"Bearer {server.token('talk', 'admin', 'Root')}", "Content-Type": "application/json"}
        for number in range(500):
            body = json.dumps({"title": f"{number} " + "x" * 150}).encode()
            status, _, problem = server.request("PATCH", "/v1/streams/talk", body, headers)
            if status != 200:
                break
        assert status == 503 and json.loads(problem)["rule"] == "storage", problem
        # Those who watch go on watching, and whoever comes now is let in.
        for page in (viewer, watch(chromium, server, "talk")):
            wait_for_state(page, "live")
            wait_for_frames(page, 60)
        # It is interrupted for as long as a busy machine keeps the answers to its checks.
        host.wait_for("() => rostrum.connection.state === 'connected'", what="the host stays connected")
        assert server.metrics()["rostrum_store_failing"] == 1


def refusal(data: Path) -> str:
    """What a server says that cannot start on this data."""
    ended = subprocess.run(
        [str(binary()), "serve", "--dev", "--http", "127.0.0.1:0", "--udp", "127.0.0.1:0", "--tcp", "off",
         "--data", str(data)],
        capture_output=True, text=True, timeout=patient(20))
    assert ended.returncode == 1, ended
    return ended.stderr


def test_read_only_disk(small_disk: Path) -> None:
    data = small_disk / "data"
    data.mkdir()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    text = refusal(data)
    assert f"cannot write to the data directory {data}: " in text and "--data" in text, text


def test_one_server_at_a_time(logs: Path, tmp_path: Path) -> None:
    with durable_server(logs, "first", tmp_path / "data") as server:
        text = refusal(tmp_path / "data")
        assert f"process {server.pid}" in text, text

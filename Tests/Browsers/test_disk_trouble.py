"""A disk that takes nothing more, or hangs, while the server runs: who is told what, and that nothing told is lost.

As whoever runs the server meets it: the files are open, and the file system stops being what it was.
"""

from __future__ import annotations

import errno
import http.client
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from aiortc_client import Aiortc
from drivers import Browser, Page, wait_until
from drivers.disk import SYNCS, Disk
from drivers.patience import patient
from media import go_live
from server import Server, free_port
from test_durability import SECRET, Client
from test_recordings import aiortc, check, complaints, counted, fetched, grown, listed  # noqa: F401
from test_webhooks import HOOK_SECRET, Receiver


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    (tmp_path / "data").mkdir(mode=0o700)
    disk = Disk(tmp_path / "data")
    yield disk
    disk.close()


@pytest.fixture
def hook() -> Iterator[Receiver]:
    receiver = Receiver(free_port())
    yield receiver
    receiver.stop()


@pytest.fixture
def keeper(disk: Disk, hook: Receiver, logs: Path, request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server whose files are on that disk."""
    server = Server(
        logs / f"server-{request.node.name}.log", "--data", disk.folder, "--secret", SECRET, "--workers", "1", "--tcp", "off",
        "--webhook", f"http://127.0.0.1:{hook.port}/", "--webhook-secret", HOOK_SECRET, starter=disk.command)
    yield server
    server.stop()


def trouble(disk: Disk, kind: str) -> AbstractContextManager[None]:
    return {
        "read-only": disk.read_only, "full": disk.full, "broken": lambda: disk.failing(errno.EIO, SYNCS)}[kind]()


def is_ready(server: Server) -> bool:
    return server.request("GET", "/readyz")[0] == 200


def killed(server: Server) -> None:
    """The server again, after an end of which it learned nothing."""
    os.kill(server.pid, signal.SIGKILL)
    server.stop()
    server.start()


def refused(client: Client, method: str, path: str, body: Any = None) -> str:
    """The rule by which the host is refused, who is told when to try again."""
    token = client.server.token(client.name, "host", "host")
    status, headers, answer = client.server.request(
        method, path, None if body is None else json.dumps(body).encode(),
        {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
    assert status in (503, 507), (status, answer)
    problem = json.loads(answer)
    assert headers["content-type"] == "application/problem+json" and problem["status"] == status
    assert status == 507 or int(headers["retry-after"]) > 0
    return problem["rule"]


#: What it says of the disk, whatever else it says.
WORDS = {"read-only": "read-only", "full": "full", "broken": "input/output error"}
REASONS = {"read-only": "storage", "full": "disk-full", "broken": "storage"}


@pytest.mark.parametrize(("kind", "codec"), [("read-only", "vp8"), ("read-only", "h264"), ("full", "h264"), ("broken", "vp8")])
def test_it_takes_nothing_more(
    aiortc: Aiortc, disk: Disk, hook: Receiver, keeper: Server, tmp_path: Path, kind: str, codec: str  # noqa: F811
) -> None:
    client = Client(keeper, "talk", 1)
    for _ in range(10):
        client.step()
    assert client.model is not None
    assert client.ask("host", "POST", f"{client.path}/live")[0] == 200
    client.model.state = "live"
    publisher = aiortc.speak(keeper, "talk", "host", "host", codec=codec)
    player = aiortc.play(keeper, "talk")
    assert client.ask("host", "POST", f"{client.path}/recording")[0] == 201
    sent = counted(keeper, "talk", publisher, 3)
    while hook.take(1)[0]["type"] != "stream.live":
        pass

    with trouble(disk, kind):
        # The recording ends by itself, and says why.
        entry = wait_until(lambda: (one := listed(keeper, "talk")[0])["state"] == "ended" and one, 20, "it ends")
        assert entry["endReason"] == REASONS[kind] and entry["duration"] > 2.5
        # What there is of it can be played.
        cut = tmp_path / "cut"
        cut.write_bytes(keeper.request("GET", entry["url"])[2])
        assert complaints(cut) == ""
        wait_until(lambda: keeper.json(client.path)["isRecording"] is False, 10, "all are told")
        # Who wants something remembered is refused, and what they wanted did not happen.
        assert refused(client, "PATCH", client.path, {"title": "Refused"}) == "storage"
        assert client.ask("viewer-0", "DELETE" if "viewer-0" in client.model.hands else "POST", f"{client.path}/hands")[0] == 503
        assert refused(client, "POST", f"{client.path}/recording") == ("disk-full" if kind == "full" else "storage")
        assert client.seen() == client.model
        # Whoever runs it finds out why.
        status, _, body = keeper.request("GET", "/readyz")
        assert status == 503 and WORDS[kind] in body.decode().lower(), body
        assert keeper.metrics()["rostrum_store_failing"] == 1
        for event in ("store.unavailable", "recording.failed"):
            line = wait_until(
                lambda: next((line for line in keeper.log.read_text().splitlines() if event in line), None), 10,
                f"the log has {event}")
            assert WORDS[kind] in line.lower() or kind == "full" and "No space left" in line, line
        # Who watches goes on, and who comes is let in.
        for viewer in (player, aiortc.play(keeper, "talk")):
            frames = viewer.frames
            wait_until(lambda viewer=viewer, frames=frames: viewer.frames > frames + 20, 30, "pictures come")
        assert not is_ready(keeper)

    # It finds out by itself.
    wait_until(lambda: is_ready(keeper), 15, "it is ready again")
    for _ in range(10):
        client.step()
    assert client.seen() == client.model
    # Now it is told of, with its end mended.
    while (told := hook.take(1)[0])["type"] != "recording.ended":
        pass
    entry = listed(keeper, "talk")[0]
    assert told["data"]["recording"] == entry and entry["endReason"] == REASONS[kind]
    check(fetched(keeper, entry, tmp_path / "file"), entry["duration"], codec, sent, publisher, lost=1)
    assert client.ask("host", "POST", f"{client.path}/recording")[0] == 201
    wait_until(lambda: listed(keeper, "talk")[1]["duration"] > 1, 20, "it is recorded again")

    restarted = time.monotonic()
    killed(keeper)
    client.check(restarted)
    found = listed(keeper, "talk")
    assert found[0] == entry, "what was told of the recording is there"
    assert [each["endReason"] for each in found] == [REASONS[kind], "interrupted"]


@pytest.mark.parametrize("kind", ["read-only", "full", "broken"])
def test_it_is_killed_meanwhile(disk: Disk, keeper: Server, kind: str) -> None:
    """What was answered is there, and what was refused did not happen."""
    client = Client(keeper, "talk", 2)
    for _ in range(20):
        client.step()
    assert client.model is not None
    with trouble(disk, kind):
        for number in range(3):
            assert refused(client, "PATCH", client.path, {"title": f"Refused {number}"}) == "storage"
        # It has tried by itself, too.
        disk.wait_for_refusal(patient(10), "openat", "pwrite64", "fdatasync")
        os.kill(keeper.pid, signal.SIGKILL)
        keeper.stop()
    restarted = time.monotonic()
    keeper.start()
    client.check(restarted)


def patiently(client: Client, who: str, method: str, path: str, body: Any) -> int:
    """The status of an answer, however late."""
    connection = http.client.HTTPConnection("127.0.0.1", client.server.http_port, timeout=patient(60))
    try:
        connection.request(
            method, path, None if body is None else json.dumps(body),
            {"Authorization": f"Bearer {client.tokens[who]}", "Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def test_it_hangs(aiortc: Aiortc, disk: Disk, keeper: Server) -> None:  # noqa: F811
    client = Client(keeper, "talk", 3)
    for _ in range(10):
        client.step()
    assert client.model is not None
    assert client.ask("host", "POST", f"{client.path}/live")[0] == 200
    publisher = aiortc.speak(keeper, "talk", "host", "host")
    player = aiortc.play(keeper, "talk")
    assert client.ask("host", "POST", f"{client.path}/recording")[0] == 201
    grown(keeper, "talk", 1)
    answers: dict[str, int] = {}

    def ask(what: str, *command: Any) -> threading.Thread:
        thread = threading.Thread(
            target=lambda: answers.update({what: patiently(client, "operator", *command)}), daemon=True)
        thread.start()
        return thread

    with disk.hanging():
        asked = [
            ask("title", "PATCH", client.path, {"title": "Late"}),
            ask("hand", "POST", f"{client.path}/hands", None),
        ]
        disk.wait_for_refusal(patient(10), "fdatasync")
        # What lies in files or in memory is told as ever, and who watches notices nothing.
        for viewer in (player, aiortc.play(keeper, "talk")):
            frames = viewer.frames
            wait_until(lambda viewer=viewer, frames=frames: viewer.frames > frames + 20, 30, "pictures come")
        assert keeper.json(client.path)["title"] == client.model.title
        assert publisher.state == "connected"

        def reason() -> str:
            status, _, body = keeper.request("GET", "/readyz")
            return body.decode() if status == 503 else ""
        text = wait_until(reason, 10, "it is not ready any more")
        assert "the disk has not finished a write for" in text
        assert keeper.metrics()["rostrum_store_writing_seconds"] >= 5
        # Those who asked wait: they are told neither that it is done nor that it is not.
        assert not answers
    for thread in asked:
        thread.join(patient(15))
    assert answers["title"] == 200, answers
    wait_until(lambda: is_ready(keeper), 10, "it is ready again")
    assert keeper.json(client.path)["title"] == "Late"
    grown(keeper, "talk", 3)
    killed(keeper)
    assert keeper.json(client.path)["title"] == "Late"


def test_it_is_slow(aiortc: Aiortc, disk: Disk, keeper: Server) -> None:  # noqa: F811
    """Everything is done, later; nobody who watches waits for it."""
    client = Client(keeper, "talk", 4)
    client.step()
    assert client.ask("host", "POST", f"{client.path}/live")[0] == 200
    aiortc.speak(keeper, "talk", "host", "host")
    player = aiortc.play(keeper, "talk")
    assert client.ask("host", "POST", f"{client.path}/recording")[0] == 201
    grown(keeper, "talk", 1)
    with disk.slow(1):
        frames = player.frames
        for number in range(3):
            began = time.monotonic()
            assert client.ask("operator", "PATCH", client.path, {"title": f"Title {number}"})[0] == 200
            assert time.monotonic() - began >= 1
            assert is_ready(keeper)
        wait_until(lambda: player.frames > frames + 20, 30, "pictures come")
        grown(keeper, "talk", listed(keeper, "talk")[0]["duration"] + 1)
    killed(keeper)
    assert keeper.json(client.path)["title"] == "Title 2"
    assert listed(keeper, "talk")[0]["duration"] > 1.5


def said(page: Page, words: str, seconds: float = 15) -> None:
    """Waits until the page says something with these words, and forgets it."""
    page.wait_for(
        "words => said.some(text => text.includes(words)) && said.splice(0)", words, seconds=seconds,
        what=f"it says “{words}”", about="() => said")


def test_the_host_is_told(chromium: Browser, disk: Disk, keeper: Server) -> None:
    """In words that say what is wrong, and what became of what was wanted."""
    host = go_live(chromium, keeper, "talk", source="test")
    host.evaluate("""() => {
        globalThis.said = [];
        new MutationObserver(changes => said.push(
            ...changes.flatMap(({addedNodes}) => [...addedNodes]).map(node => node.textContent)
        )).observe(document.querySelector('.messages'), {childList: true});
    }""")

    def press(outcome: bool) -> None:
        host.click("#record")
        host.wait_for(
            "is => document.getElementById('record').ariaPressed === String(is)", outcome, what=f"it is recorded: {outcome}")

    press(True)
    grown(keeper, "talk", 1)
    with disk.read_only():
        said(host, "Recording stopped: the server can’t write to its disk.")
        host.click("#record")
        said(host, "couldn't save the change, so nothing was changed")
    wait_until(lambda: is_ready(keeper), 15, "it is ready again")
    press(True)
    grown(keeper, "talk", 0)
    with disk.full():
        said(host, "Recording stopped: the server’s disk is full.")
        host.click("#record")
        said(host, "too full for a recording")
    wait_until(lambda: is_ready(keeper), 15, "it is ready again")
    with disk.hanging():
        host.click("#record")
        said(host, "The server isn’t responding.", 20)
    # What was asked for happens after all, and is shown.
    host.wait_for("() => document.getElementById('record').ariaPressed === 'true'", what="it is recorded")

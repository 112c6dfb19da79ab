"""A backup that is taken while a server works is a server's whole past; a restore is all of it or nothing."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from drivers.patience import patient
from server import ROOT, Server, binary
from test_durability import Client, Shop, durable_server, refusal

KINDS = [{"id": "rose", "name": "Rose", "picture": "🌹", "price": 100}]


def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(binary()), *map(str, arguments), "--config", "/dev/null"], capture_output=True, text=True,
        timeout=patient(120), env={**os.environ, **environment})


def done(*arguments: str | Path, **environment: str) -> str:
    ended = run(*arguments, **environment)
    assert ended.returncode == 0, ended
    return ended.stdout


def refused(*arguments: str | Path, status: int = 1) -> str:
    ended = run(*arguments)
    assert ended.returncode == status and ended.stdout == "", ended
    assert ended.stderr.startswith("rostrum: "), ended
    return ended.stderr


class Titles(Client):
    """Gives its stream one title after another, each with the next number."""

    def __init__(self, server: Server, name: str, seed: int) -> None:
        super().__init__(server, name, seed)
        self.asked = self.told = 0

    def run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self.asked += 1
                status, answer = self.ask("operator", "PATCH", self.path, {"title": f"Title {self.asked}"})
                assert status == 200, (status, answer)
                self.told = self.asked


def ledger(shop: Shop) -> dict[str, Any]:
    gifts: list[dict[str, Any]] = []
    page = {"more": True}
    while page["more"]:
        page = shop.ask("GET", f"/gifts?limit=200&after={len(gifts)}")
        gifts += page["gifts"]
    assert [gift["number"] for gift in gifts] == list(range(1, len(gifts) + 1))
    count = sum(gift["count"] for gift in gifts)
    assert page["totals"] == {"gifts": count, "value": 100 * count, "currency": "EUR", "last": len(gifts)}
    return {gift["key"]: gift for gift in gifts}


@pytest.mark.parametrize("seed", range(2))
def test_a_backup_under_load_has_all_that_was_answered_before(logs: Path, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    backups = []
    with durable_server(logs, f"backup-{seed}", tmp_path / "data") as server:
        titles = [Titles(server, f"titles{number}", number) for number in range(2)]
        host = Client(server, "gifts", seed)
        for client in [*titles, host]:
            assert client.create()[0] == 201
        host.ask("host", "POST", f"{host.path}/live")
        host.ask("host", "PATCH", f"{host.path}/interaction", {"gifts": {"currency": "EUR", "kinds": KINDS}})
        shops = [Shop(server, "gifts", f"giver{number}", number) for number in range(3)]
        threads = [threading.Thread(target=worker.run) for worker in [*titles, *shops]]
        for thread in threads:
            thread.start()
        for turn in range(3):
            wanted = sum(len(shop.answered) for shop in shops) + chance.randrange(20, 120)
            deadline = time.monotonic() + patient(30)
            while sum(len(shop.answered) for shop in shops) < wanted and time.monotonic() < deadline:
                time.sleep(chance.random() / 100)
            told = [client.told for client in titles]
            given: dict[str, Any] = {}
            for shop in shops:
                given |= dict(shop.answered)
            target = tmp_path / f"backup-{turn}"
            assert "without recordings" in done("backup", target, "--data", tmp_path / "data")
            backups.append((target, told, given, [client.asked for client in titles]))
        os.kill(server.pid, signal.SIGKILL)
        for thread in threads:
            thread.join(patient(20))
            assert not thread.is_alive()
        asked = {key for shop in shops for key in shop.asked}
    for turn, (target, told, given, latest) in enumerate(backups):
        done("restore", target, "--data", tmp_path / f"restored-{turn}")
        with durable_server(logs, f"restored-{seed}-{turn}", tmp_path / f"restored-{turn}") as server:
            for number, client in enumerate(titles):
                client.server = server
                status, stream = client.ask("host", "GET", client.path)
                assert status == 200, stream
                title = int(stream["title"].removeprefix("Title ")) if stream["title"] != "Before" else 0
                assert told[number] <= title <= latest[number]
            shops[0].server = server
            found = ledger(shops[0])
            assert found.items() >= given.items(), "what was answered before the backup began"
            assert found.keys() <= asked
            # The server goes on from there.
            shops[0].give(f"after-{seed}-{turn}")


def put_recordings(data: Path, count: int, size: int, ended: int = 1_700_000_000_000) -> None:
    """Files as recordings leave them, `ended` in milliseconds since 1970; what is in them is nobody's business here."""
    folder = data / "recordings" / "talk"
    folder.mkdir(parents=True)
    for number in range(count):
        (folder / f"r{number}.webm").write_bytes(random.Random(number).randbytes(1 << 16) * (size >> 16))
        (folder / f"r{number}.json").write_text(json.dumps(
            {"id": f"r{number}", "stream": "talk", "part": 1, "state": "ended", "startedAt": 1, "endedAt": ended,
             "endReason": "stopped", "milliseconds": 5, "size": size, "fileExtension": "webm"}))


@pytest.fixture(scope="module")
def old_data(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a server left that ended politely: a stream with a title, and 60 MB of recordings."""
    data = tmp_path_factory.mktemp("old") / "data"
    with durable_server(logs, "old", data) as server:
        client = Titles(server, "talk", 0)
        assert client.create()[0] == 201
        assert client.ask("operator", "PATCH", client.path, {"title": "Kept"})[0] == 200
    put_recordings(data, 60, 1 << 20)
    return data


def killed_after(seconds: float, *arguments: str | Path) -> int:
    process = subprocess.Popen([str(binary()), *map(str, arguments), "--config", "/dev/null"], stdout=subprocess.DEVNULL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(seconds)
    process.kill()
    return process.wait(patient(20))


def count_files(folder: Path) -> int:
    with contextlib.suppress(FileNotFoundError):
        return len(os.listdir(folder))
    return 0


def killed_at(is_there: Callable[[], bool], *arguments: str | Path) -> None:
    """Kills a command as soon as that much of its work is there, unless it has ended before."""
    process = subprocess.Popen([str(binary()), *map(str, arguments), "--config", "/dev/null"], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + patient(120)
    while process.poll() is None and not is_there() and time.monotonic() < deadline:
        time.sleep(0.001)
    process.kill()
    process.wait(patient(20))


def test_a_backup_that_is_killed_is_none(old_data: Path, tmp_path: Path) -> None:
    chance = random.Random(5)
    target = tmp_path / "backup"
    start = time.monotonic()
    done("backup", target, "--recordings", "--data", old_data)
    whole = time.monotonic() - start
    shutil.rmtree(target)
    killed = 0
    for _ in range(8):
        status = killed_after(chance.uniform(0, whole), "backup", target, "--recordings", "--data", old_data)
        killed += status != 0
        if target.exists():
            assert "is complete" in done("restore", target, "--check")
            shutil.rmtree(target)
        else:
            assert status == -signal.SIGKILL
    assert killed > 0
    # What those have left is no hindrance, and does not stay.
    done("backup", target, "--recordings", "--data", old_data)
    assert "is complete" in done("restore", target, "--check")
    assert [path.name for path in tmp_path.iterdir()] == ["backup"]


def test_a_restore_that_is_killed_is_no_servers_data(logs: Path, old_data: Path, tmp_path: Path) -> None:
    chance = random.Random(6)
    backup = tmp_path / "backup"
    done("backup", backup, "--recordings", "--data", old_data)
    done("restore", backup, "--data", tmp_path / "first")
    files = len(list((old_data / "recordings/talk").iterdir()))
    unfinished = 0
    for turn in range(8):
        data = tmp_path / f"data-{turn}"
        # By what it has done, not by the time: how long it takes differs from one run to the next.
        wanted = chance.randrange(1, files + 1)
        killed_at(lambda: count_files(data / ".restore/recordings/talk") >= wanted, "restore", backup, "--data", data)
        if (data / "rostrum.db").exists():
            continue
        if (data / ".restore").exists():
            unfinished += 1
            assert "was not finished: run `rostrum restore` again" in refusal(data)
        done("restore", backup, "--data", data)
        assert sorted(path.name for path in data.iterdir()) == ["recordings", "rostrum.db", "rostrum.lock"]
        for path in (old_data / "recordings/talk").iterdir():
            assert (data / "recordings/talk" / path.name).read_bytes() == path.read_bytes()
        shutil.rmtree(data / "recordings")
    assert unfinished > 0
    with durable_server(logs, "after-kill", tmp_path / "first") as server:
        client = Titles(server, "talk", 0)
        assert client.ask("host", "GET", client.path)[1]["title"] == "Kept"
        assert len(server.json("/v1/streams/talk/recordings")["recordings"]) == 60


def test_a_restore_writes_over_nothing(logs: Path, old_data: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    done("backup", backup, "--data", old_data)
    with durable_server(logs, "live", tmp_path / "live") as server:
        text = refused("restore", backup, "--data", tmp_path / "live")
        assert f"in use by another server (process {server.pid})" in text
    assert "there is data in" in refused("restore", backup, "--data", tmp_path / "live")
    assert "is not empty" in refused("backup", backup, "--data", old_data)
    assert "a directory is missing" in refused("backup", status=2)
    assert "unknown option --recording;" in refused("backup", "x", "--recording", status=2)
    assert "usage: rostrum restore DIRECTORY" in done("restore", "--help")
    manifest = json.loads((backup / "manifest.json").read_text())
    assert subprocess.run(
        ["sha256sum", "--check", "--strict"], cwd=backup, text=True, capture_output=True,
        input="".join(f"{file['sha256']}  {file['path']}\n" for file in manifest["files"])).returncode == 0
    # A later version's tables, by their own word.
    with contextlib.closing(sqlite3.connect(backup / "data/rostrum.db")) as database:
        database.execute("PRAGMA user_version = 99")
    manifest["schema"] = 99
    (backup / "manifest.json").write_text(json.dumps(manifest))
    text = refused("restore", backup, "--data", tmp_path / "new")
    assert "was made by a newer Rostrum" in text and "schema 99" in text
    assert not (tmp_path / "new").exists()


def test_a_backup_of_a_recording_that_goes_on_is_mended_like_after_a_crash(logs: Path, old_data: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(old_data, data, ignore=shutil.ignore_patterns("recordings"))
    folder = data / "recordings" / "talk"
    folder.mkdir(parents=True)
    lines = (ROOT / "Tests/Fixtures/Recordings/recordings.hex").read_text().splitlines()
    # A WebM file as it is while it is recorded.
    whole = bytes.fromhex([line for line in lines if not line.startswith("#")][2])
    (folder / "now.webm").write_bytes(whole[: len(whole) * 2 // 3])
    (folder / "now.json").write_text(json.dumps(
        {"id": "now", "stream": "talk", "part": 1, "state": "recording", "startedAt": 1_700_000_000_000, "milliseconds": 0,
         "size": 0}))
    done("backup", tmp_path / "backup", "--recordings", "--data", data)
    done("restore", tmp_path / "backup", "--data", tmp_path / "new")
    with durable_server(logs, "mended", tmp_path / "new") as server:
        [entry] = server.json("/v1/streams/talk/recordings")["recordings"]
        assert entry["state"] == "ended" and entry["endReason"] == "interrupted", entry
        assert 0 < entry["size"] <= len(whole)

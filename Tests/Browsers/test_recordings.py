"""What viewers get can be recorded, and is there afterwards: whole, or up to the second in which something died."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aiortc_client import FRAMES_PER_SECOND, HEIGHT, WIDTH, Aiortc, Peer
from drivers import wait_until
from server import Server
from test_previews import transcoder


@pytest.fixture
def aiortc() -> Iterator[Aiortc]:
    home = Aiortc()
    yield home
    home.close()


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Server]:
    """A server that keeps what it records."""
    server = Server(tmp_path / "server.log", "--data", str(tmp_path / "data"))
    yield server
    server.stop()


def ask(server: Server, method: str, path: str, stream: str, role: str = "host") -> tuple[int, Any]:
    token = server.token(stream, role)
    status, _, body = server.request(method, path, headers={"Authorization": f"Bearer {token}"})
    return status, json.loads(body) if body else None


def listed(server: Server, stream: str) -> list[dict[str, Any]]:
    return server.json(f"/v1/streams/{stream}/recordings")["recordings"]


def start(server: Server, stream: str) -> dict[str, Any]:
    status, entry = ask(server, "POST", f"/v1/streams/{stream}/recording", stream)
    assert status == 201, entry
    return entry


def stop(server: Server, stream: str) -> dict[str, Any]:
    status, entry = ask(server, "DELETE", f"/v1/streams/{stream}/recording", stream)
    assert status == 200, entry
    return entry


def grown(server: Server, stream: str, seconds: float) -> dict[str, Any]:
    """The latest recording, once so much of it is on the disk."""
    return wait_until(
        lambda: (all_ := listed(server, stream)) and all_[-1]["duration"] >= seconds and all_[-1], 30,
        f"{seconds} s are recorded")


def counted(server: Server, stream: str, publisher: Peer, seconds: float) -> int:
    """How many pictures were sent while the latest recording grew to so many seconds: a busy machine sends fewer."""
    grown(server, stream, 0.1)
    before = sent = publisher.pictures

    def is_grown() -> bool:
        nonlocal sent
        # Those that are made while the server answers may come after what it tells of.
        sent = publisher.pictures
        return listed(server, stream)[-1]["duration"] >= seconds
    wait_until(is_grown, 30, f"{seconds} s are recorded")
    return sent - before


def probe(path: Path) -> dict[str, Any]:
    done = subprocess.run(
        ["ffprobe", "-v", "error", "-show_format", "-show_streams", "-of", "json", str(path)],
        capture_output=True, check=True)
    assert not done.stderr, done.stderr
    return json.loads(done.stdout)


def complaints(path: Path) -> str:
    """What ffmpeg says while it decodes all of a file; pictures that are close to each other are none of its faults."""
    done = subprocess.run(
        ["ffmpeg", "-v", "error", "-i", str(path), "-enc_time_base", "1:90000", "-f", "null", "-"],
        capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.stderr + (f"exit status {done.returncode}" if done.returncode else "")


def times(path: Path, kind: str) -> list[float]:
    """Of a track's packets, in seconds."""
    done = subprocess.run(
        ["ffprobe", "-v", "error", "-select_streams", kind[0], "-show_entries", "packet=pts_time",
         "-of", "csv=p=0", str(path)], capture_output=True, text=True, check=True)
    return sorted(float(line.rstrip(",")) for line in done.stdout.split() if line.rstrip(","))


def fetched(server: Server, entry: dict[str, Any], path: Path) -> Path:
    status, headers, body = server.request("GET", entry["url"])
    assert status == 200 and headers["content-type"] == entry["contentType"]
    assert len(body) == entry["size"] == int(headers["content-length"])
    path.write_bytes(body)
    return path


def check(path: Path, seconds: float, codec: str, sent: int, publisher: Peer, lost: float = 0) -> None:
    """It has both tracks, all pictures that were sent but for the last `lost` seconds, lasts as long as it says, and can
    be decoded."""
    about = probe(path)
    assert sorted(each["codec_name"] for each in about["streams"]) == sorted([codec, "opus"])
    picture = next(each for each in about["streams"] if each["codec_type"] == "video")
    assert (picture["width"], picture["height"]) == (WIDTH, HEIGHT)
    assert complaints(path) == ""
    video, audio = times(path, "video"), times(path, "audio")
    # It lasts as long as the longer one of both, and where that stood still its reports place it later than it was.
    assert abs(audio[-1] - seconds) < 0.5 + publisher.behind
    # A busy machine makes pictures late, and none in the last moment.
    assert video[-1] < seconds + 0.5
    # The latest may not have arrived.
    assert len(video) >= sent - FRAMES_PER_SECOND * (lost + 0.25), f"{sent} were sent"
    assert max(b - a for a, b in zip(audio, audio[1:])) < 0.2 + publisher.late
    assert video[0] < 0.1 and audio[0] < 0.5


@pytest.mark.parametrize("codec", ["vp8", "h264"])
def test_a_stream_is_recorded(aiortc: Aiortc, keeper: Server, stream: str, tmp_path: Path, codec: str) -> None:
    publisher = aiortc.publish(keeper, stream, codec)
    wait_until(lambda: keeper.json(f"/v1/streams/{stream}")["state"] == "live", 10, "it is live")
    assert listed(keeper, stream) == []
    entry = start(keeper, stream)
    assert entry["state"] == "recording"
    assert ask(keeper, "POST", f"/v1/streams/{stream}/recording", stream)[0] == 200
    assert keeper.json(f"/v1/streams/{stream}")["isRecording"] is True
    sent = counted(keeper, stream, publisher, 4)
    ended = stop(keeper, stream)
    assert (ended["id"], ended["state"], ended["endReason"]) == (entry["id"], "ended", "stopped")
    assert keeper.json(f"/v1/streams/{stream}")["isRecording"] is False
    assert ended["duration"] >= 4 and listed(keeper, stream) == [ended]
    file = fetched(keeper, ended, tmp_path / "file")
    check(file, ended["duration"], codec, sent, publisher)
    assert abs(float(probe(file)["format"]["duration"]) - ended["duration"]) < 0.1


def test_it_is_served_in_ranges(aiortc: Aiortc, keeper: Server, stream: str, tmp_path: Path) -> None:
    aiortc.publish(keeper, stream)
    wait_until(lambda: keeper.json(f"/v1/streams/{stream}")["state"] == "live", 10, "it is live")
    start(keeper, stream)
    grown(keeper, stream, 2)
    entry = stop(keeper, stream)
    whole = fetched(keeper, entry, tmp_path / "file").read_bytes()

    def get(value: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
        return keeper.request("GET", entry["url"], headers={"Range": value, **headers})

    status, headers, body = get("bytes=10-19")
    assert (status, body) == (206, whole[10:20])
    assert headers["content-range"] == f"bytes 10-19/{len(whole)}" and headers["accept-ranges"] == "bytes"
    assert get("bytes=-7")[2] == whole[-7:]
    assert get(f"bytes={len(whole) - 3}-")[2] == whole[-3:]
    assert get(f"bytes=5-{len(whole) + 100}")[2] == whole[5:]
    status, headers, body = get(f"bytes={len(whole)}-")
    assert status == 416 and headers["content-range"] == f"bytes */{len(whole)}"
    assert headers["content-type"] == "application/problem+json"
    for odd in ["bytes=9-3", "bytes=0-1,5-6", "lines=1-2", "bytes=x-"]:
        assert get(odd)[::2] == (200, whole)
    tag = headers["etag"]
    assert get("bytes=0-4", **{"If-Range": tag})[::2] == (206, whole[:5])
    assert get("bytes=0-4", **{"If-Range": '"other"'})[::2] == (200, whole)
    assert keeper.request("GET", entry["url"], headers={"If-None-Match": tag})[0] == 304
    status, headers, body = keeper.request("HEAD", entry["url"])
    assert (status, body) == (200, b"") and int(headers["content-length"]) == len(whole)

    path = f"/v1/streams/{stream}/recordings/{entry['id']}"
    assert ask(keeper, "DELETE", path, stream, "viewer")[0] == 403
    assert ask(keeper, "DELETE", path, stream)[0] == 204
    assert keeper.request("GET", entry["url"])[0] == 404 and listed(keeper, stream) == []


@pytest.mark.parametrize("codec", ["vp8", "h264"])
def test_a_killed_server_loses_a_second(
    aiortc: Aiortc, keeper: Server, stream: str, tmp_path: Path, codec: str
) -> None:
    publisher = aiortc.publish(keeper, stream, codec)
    wait_until(lambda: keeper.json(f"/v1/streams/{stream}")["state"] == "live", 10, "it is live")
    began = time.monotonic()
    start(keeper, stream)
    sent = counted(keeper, stream, publisher, 4)
    os.kill(keeper.pid, signal.SIGKILL)
    lasted = time.monotonic() - began
    wait_until(lambda: not keeper.is_running, 5, "it is gone")
    left = next((tmp_path / "data/recordings" / stream).glob("*.webm" if codec == "vp8" else "*.mp4"))
    assert max(times(left, "video")[-1], times(left, "audio")[-1]) >= 3.9
    keeper.start()
    entry, = listed(keeper, stream)
    assert (entry["state"], entry["endReason"]) == ("ended", "interrupted")
    assert 4 <= entry["duration"] <= lasted + 1.5 + publisher.behind
    file = fetched(keeper, entry, tmp_path / "file")
    check(file, entry["duration"], codec, sent, publisher, lost=1)
    assert abs(float(probe(file)["format"]["duration"]) - entry["duration"]) < 0.1


def test_a_killed_transcoder_costs_a_moment(aiortc: Aiortc, keeper: Server, stream: str, tmp_path: Path) -> None:
    publisher = aiortc.publish(keeper, stream)
    wait_until(lambda: keeper.json(f"/v1/streams/{stream}")["state"] == "live", 10, "it is live")
    first = start(keeper, stream)
    sent = [counted(keeper, stream, publisher, 3)]
    before = listed(keeper, stream)[-1]
    os.kill(transcoder(keeper), signal.SIGKILL)
    wait_until(lambda: len(listed(keeper, stream)) == 2, 10, "there is a second part")
    sent.append(counted(keeper, stream, publisher, 2))
    stop(keeper, stream)
    one, two = listed(keeper, stream)
    assert one["id"] == first["id"] and (one["endReason"], two["endReason"]) == ("continued", "stopped")
    assert (one["part"], two["part"]) == (1, 2) and one["duration"] >= before["duration"]
    for number, entry in enumerate([one, two]):
        check(fetched(keeper, entry, tmp_path / str(number)), entry["duration"], "vp8", sent[number], publisher, lost=1 - number)


def test_who_may(aiortc: Aiortc, keeper: Server, server: Server, stream: str) -> None:
    aiortc.publish(keeper, stream)
    wait_until(lambda: keeper.json(f"/v1/streams/{stream}")["state"] == "live", 10, "it is live")
    path = f"/v1/streams/{stream}/recording"
    assert keeper.request("POST", path)[0] == 401
    for role in ["viewer", "speaker"]:
        assert ask(keeper, "POST", path, stream, role)[0] == 403
    assert ask(keeper, "DELETE", path, stream)[0] == 404

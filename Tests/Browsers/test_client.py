"""RostrumClient's examples against a real server: what they receive and what they say."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from drivers import wait_until
from drivers.patience import patient
from drivers.process import Process
from server import ROOT, Server, binary
from test_recordings import complaints


def program(name: str) -> str:
    return str(binary().with_name(name))


def probe(file: Path) -> list[dict[str, Any]]:
    """The streams of a file, each with the packets that could be read."""
    result = subprocess.run(
        ["ffprobe", "-v", "error", "-count_packets", "-show_streams", "-of", "json", str(file)],
        capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    assert result.stderr == ""
    return json.loads(result.stdout)["streams"]


@pytest.fixture
def publisher(server: Server, stream: str, tmp_path: Path) -> Iterator[Process]:
    """Somebody who publishes a picture of 160 by 120 and a tone until the test is over."""
    film = tmp_path / "film.webm"
    subprocess.run(
        ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc=size=160x120:rate=20:duration=1",
         "-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000:duration=1",
         "-c:v", "libvpx", "-deadline", "realtime", "-b:v", "200k", "-g", "20", "-c:a", "libopus", str(film)],
        check=True, stdin=subprocess.DEVNULL)
    process = Process(
        [program("sfu-bench"), "publish", server.origin, "--stream", stream, "--file", str(film),
         "--duration", "10m"],
        tmp_path / "publisher.log", r"", 15)
    wait_until(lambda: is_live(server, stream), 20, "the publisher is live")
    yield process
    process.stop()


def is_live(server: Server, stream: str) -> bool:
    status, _, body = server.request("GET", f"/v1/streams/{stream}")
    return status == 200 and json.loads(body)["state"] == "live"


def test_the_recorder_writes_what_everything_plays(
    server: Server, stream: str, publisher: Process, tmp_path: Path
) -> None:
    file = tmp_path / "recording.webm"
    result = subprocess.run(
        [program("headless-recorder"), server.origin, stream, str(file), "6"], capture_output=True, text=True,
        timeout=patient(60), stdin=subprocess.DEVNULL)
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"written: {file}" in result.stdout
    streams = {entry["codec_type"]: entry for entry in probe(file)}
    assert streams["video"]["codec_name"] == "vp8"
    assert (streams["video"]["width"], streams["video"]["height"]) == (160, 120)
    assert streams["audio"]["codec_name"] == "opus"
    # Of six seconds at 20 pictures and 50 packets of sound a second, less what the beginning waits for.
    assert int(streams["video"]["nb_read_packets"]) > 40
    assert int(streams["audio"]["nb_read_packets"]) > 100
    assert complaints(file) == "", "each picture and each sound can be decoded"


def test_the_speaker_is_on_stage_and_writes(
    server: Server, stream: str, publisher: Process, tmp_path: Path
) -> None:
    speaker = Process(
        # It stays for longer than the test may take.
        [program("headless-speaker"), server.origin, stream, "Sam", "600"], tmp_path / "speaker.log",
        r"^on stage$", 20)
    try:
        host = {"Authorization": f"Bearer {server.token(stream)}"}

        def sam() -> dict[str, Any] | None:
            _, _, body = server.request("GET", f"/v1/streams/{stream}/participants", headers=host)
            return json.loads(body)["speakers"].get("Sam")

        wait_until(lambda: (sam() or {}).get("present"), 20, "the speaker is present")
        assert sam()["role"] == "speaker"

        def comments() -> list[str]:
            _, _, body = server.request("GET", f"/v1/streams/{stream}/comments", headers=host)
            return [comment["text"] for comment in json.loads(body)["comments"]]

        wait_until(lambda: comments() == ["Good evening from Sam!"], 20, "the comment is there")
        # Told by the socket that it was said on.
        wait_until(
            lambda: re.search(r"^Sam: Good evening from Sam!$", speaker.log.read_text(), re.MULTILINE), 20,
            "the speaker hears of its own comment")

        assert speaker.is_running
    finally:
        speaker.stop()


#: Where Foundation, which cannot be told of others, finds the authorities that it trusts.
SYSTEM_AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")


def trusting(authority: Path, command: list[str]) -> list[str]:
    """The command on a machine that trusts this authority: in a view of the file system of its own."""
    return [
        "unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
        'mount --bind "$0" "$1" && shift && SSL_CERT_FILE="$0" exec "$@"', str(authority), str(SYSTEM_AUTHORITIES),
        *command]


def test_the_speaker_comes_by_tls_and_trusts_nobody_else(logs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    subprocess.run([str(ROOT / "Certs/make-dev-certs"), "--out", str(folder)], check=True, capture_output=True)
    trial = subprocess.run(trusting(folder / "ca.pem", ["true"]), capture_output=True, text=True)
    if trial.returncode:
        pytest.skip(f"no file system of its own for a process here: {trial.stderr}")
    server = Server(
        logs / "client-tls.log", "--tls-certificate", f"{folder}/tls.pem", "--tls-key", f"{folder}/tls.key")
    try:
        origin = server.origin.replace("http:", "https:")
        command = [program("headless-speaker"), origin, "talk", "Sam", "60"]
        # It says so when its requests were answered, its WebSocket is open, and its media go.
        speaker = Process(
            trusting(folder / "ca.pem", command), tmp_path / "speaker.log", r"^on stage$", 20)
        assert speaker.is_running
        speaker.stop()

        stranger = subprocess.run(
            command, capture_output=True, text=True, timeout=patient(60), stdin=subprocess.DEVNULL)
        assert stranger.returncode == 1
        assert "certificate" in stranger.stdout
    finally:
        assert server.stop() == 0

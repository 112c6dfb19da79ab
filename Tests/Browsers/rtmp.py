"""Encoders that publish by RTMP or SRT, and a client by RTMP that says what it likes."""

from __future__ import annotations

import socket
import struct
import subprocess
from pathlib import Path
from types import TracebackType

from drivers.patience import patient

#: Baseline: no B-frames, as OBS has it with `tune=zerolatency`.
PLAIN = ("-c:v", "libx264", "-preset", "ultrafast", "-profile:v", "baseline", "-tune", "zerolatency", "-g", "30")
SOUND = ("-c:a", "aac", "-b:a", "128k")


class Encoder:
    """ffmpeg with a moving picture and a tone, publishing until it is stopped or refused."""

    def __init__(
        self, address: str, log: Path, video: tuple[str, ...] = PLAIN, sound: tuple[str, ...] = SOUND,
        size: str = "640x360", rate: int = 30, sample_rate: int = 48_000, pixels: str = "yuv420p",
        picture: str | None = None, container: str = "flv",
    ) -> None:
        self.log = log
        command = [
            "ffmpeg", "-hide_banner", "-nostdin", "-loglevel", "info",
            "-re", "-f", "lavfi", "-i", picture or f"testsrc2=size={size}:rate={rate}",
            "-re", "-f", "lavfi", "-i", f"sine=frequency=440:sample_rate={sample_rate}",
            *video, "-pix_fmt", pixels, *sound, "-f", container, address,
        ]
        with log.open("w") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)

    def __enter__(self) -> Encoder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait(self, seconds: float = 20) -> int:
        """Exit status of an encoder that ends by itself."""
        return self._process.wait(timeout=patient(seconds))

    def stop(self) -> None:
        if self.is_running:
            self._process.terminate()
        try:
            self._process.wait(timeout=patient(5))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def connect(port: int) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), timeout=patient(10))
    return client


def greet(client: socket.socket) -> None:
    """The handshake, and `connect`."""
    client.sendall(b"\x03" + bytes(1536))
    answer = b""
    while len(answer) < 1 + 2 * 1536:
        received = client.recv(4096)
        assert received, "the server hung up within the handshake"
        answer += received
    text = b"\x02\x00\x07connect\x00" + struct.pack(">d", 1) + b"\x03\x00\x03app\x02\x00\x04live\x00\x00\x09"
    header = b"\x03\x00\x00\x00" + len(text).to_bytes(3, "big") + b"\x14\x00\x00\x00\x00"
    client.sendall(bytes(1536) + header + text)


def is_closed(client: socket.socket) -> bool:
    """Reads until the server hangs up; fails if it does not."""
    try:
        while client.recv(65536):
            pass
    except ConnectionError:
        pass
    return True

"""A publisher by Enhanced RTMP, which Debian's ffmpeg and GStreamer do not speak yet."""

from __future__ import annotations

import contextlib
import itertools
import socket
import struct
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit

from drivers import wait_until
from drivers.patience import patient

#: By FourCC, as the specification names codecs: what ffmpeg is told, and the box of the configuration.
CODECS: dict[str, tuple[tuple[str, ...], bytes]] = {
    "vp09": (("-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-b:v", "800k"), b"vpcC"),
    "av01": (("-c:v", "libaom-av1", "-usage", "realtime", "-cpu-used", "8", "-b:v", "800k"), b"av1C"),
    "hvc1": (("-c:v", "libx265", "-preset", "ultrafast", "-b:v", "800k", "-x265-params", "open-gop=0:log-level=none"), b"hvcC"),
}

SEQUENCE_START, CODED_FRAMES, SEQUENCE_END, CODED_FRAMES_X, METADATA = range(5)
KEY_FRAME, INTER_FRAME = 1, 2
CHUNK_SIZE = 60_000


@dataclass(frozen=True)
class Sample:
    is_video: bool
    is_key_frame: bool
    #: When it is decoded, and how much later it is shown, in milliseconds.
    time: int
    delay: int
    data: bytes


@dataclass(frozen=True)
class Clip:
    """Some seconds that begin with a key frame, so that they can be sent again and again."""

    four_cc: str
    configuration: bytes
    samples: tuple[Sample, ...]
    #: In milliseconds.
    length: int


def make_clip(
    folder: Path, four_cc: str, size: str = "640x360", pixels: str = "yuv420p", seconds: int = 4,
    options: tuple[str, ...] = (),
) -> Clip:
    """Encodes a moving picture and a tone."""
    encoder, box = CODECS[four_cc]
    file = folder / f"{four_cc}-{size}-{pixels}.mp4"
    subprocess.run(
        ["ffmpeg", "-y", "-hide_banner", "-nostdin", "-loglevel", "error",
         "-f", "lavfi", "-i", f"testsrc2=size={size}:rate=30", "-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000",
         *encoder, *options, "-g", "30", "-pix_fmt", pixels, "-c:a", "aac", "-ac", "2", "-t", str(seconds), str(file)],
        check=True, timeout=patient(120))
    listed = subprocess.run(
        ["ffprobe", "-v", "error", "-show_entries", "packet=codec_type,pts_time,dts_time,size,pos,flags",
         "-of", "compact=nk=0:p=0", str(file)],
        check=True, capture_output=True, text=True, timeout=patient(60)).stdout
    data = file.read_bytes()
    start = data.index(box)
    length = int.from_bytes(data[start - 4:start], "big")
    # The box of VP9 has a version and flags, and its record is what is behind them.
    configuration = data[start + (8 if box == b"vpcC" else 4):start - 4 + length]
    samples = []
    for line in listed.splitlines():
        fields = dict(field.split("=", 1) for field in line.split("|") if "=" in field)
        # Behind a packet with side data an empty line stands for that.
        if "dts_time" not in fields:
            continue
        decoded, shown = float(fields["dts_time"]) * 1_000, float(fields["pts_time"]) * 1_000
        place, count = int(fields["pos"]), int(fields["size"])
        samples.append(Sample(
            fields["codec_type"] == "video", "K" in fields["flags"], round(decoded), round(shown - decoded),
            data[place:place + count]))
    earliest = min(sample.time for sample in samples)
    moved = [Sample(s.is_video, s.is_key_frame, s.time - earliest, s.delay, s.data) for s in samples]
    return Clip(four_cc, configuration, tuple(sorted(moved, key=lambda s: s.time)), seconds * 1_000)


def video_tag(four_cc: str, kind: int, body: bytes, frame: int = KEY_FRAME, delay: int | None = None) -> bytes:
    """An enhanced video tag's body; with a composition time where that is given."""
    time_field = b"" if delay is None else (delay & 0xFFFFFF).to_bytes(3, "big")
    return bytes([0x80 | frame << 4 | kind]) + four_cc.encode() + time_field + body


def amf(value: object) -> bytes:
    match value:
        case None:
            return b"\x05"
        case float():
            return b"\x00" + struct.pack(">d", value)
        case str():
            return b"\x02" + len(value).to_bytes(2, "big") + value.encode()
        case list():
            return b"\x0A" + len(value).to_bytes(4, "big") + b"".join(map(amf, value))
        case dict():
            members = b"".join(len(name).to_bytes(2, "big") + name.encode() + amf(each) for name, each in value.items())
            return b"\x03" + members + b"\x00\x00\x09"
    raise TypeError(value)


class Publisher:
    """One connection that publishes what it is told to."""

    def __init__(self, address: str) -> None:
        url = urlsplit(address)
        key = address.split("/live/", 1)[1]
        assert url.hostname and url.port
        #: All that the server sent, chunk headers among it.
        self.received = b""
        self.is_closed = False
        self._lock = threading.Lock()
        self._socket = socket.create_connection((url.hostname, url.port), timeout=patient(20))
        self._socket.sendall(b"\x03" + bytes(1536))
        answer = b""
        while len(answer) < 1 + 2 * 1536:
            piece = self._socket.recv(1 + 2 * 1536 - len(answer))
            assert piece, "the server hung up within the handshake"
            answer += piece
        self._socket.sendall(bytes(1536))
        self._send(1, CHUNK_SIZE.to_bytes(4, "big"), chunk_size=128)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.command("connect", 1.0, {"app": "live", "type": "nonprivate", "fourCcList": list(CODECS)})
        self.command("createStream", 2.0, None)
        self.command("publish", 3.0, None, key, "live", stream=1)
        wait_until(
            lambda: b"NetStream.Publish.Start" in self.received or self.is_closed, patient(20), "it may publish")

    def __enter__(self) -> Publisher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join()
        self._socket.close()

    def _read(self) -> None:
        try:
            while piece := self._socket.recv(65_536):
                self.received += piece
        except OSError:
            pass
        self.is_closed = True

    def command(self, name: str, number: float, *values: object, stream: int = 0) -> None:
        self._send(20, amf(name) + amf(number) + b"".join(map(amf, values)), stream=stream)

    def video(self, body: bytes, timestamp: int = 0) -> None:
        self._send(9, body, timestamp, stream=1)

    def audio(self, body: bytes, timestamp: int = 0) -> None:
        self._send(8, body, timestamp, stream=1)

    def _send(
        self, kind: int, body: bytes, timestamp: int = 0, stream: int = 0, chunk_size: int = CHUNK_SIZE
    ) -> None:
        header = (bytes([2 if kind == 1 else 4]) + timestamp.to_bytes(3, "big") + len(body).to_bytes(3, "big")
                  + bytes([kind]) + stream.to_bytes(4, "little"))
        pieces = [body[start:start + chunk_size] for start in range(0, len(body), chunk_size)] or [b""]
        with self._lock:
            self._socket.sendall(header + b"\xC4".join(pieces))


class EnhancedEncoder:
    """Sends a clip again and again in real time, with AAC, until it is stopped or refused."""

    def __init__(self, address: str, clip: Clip) -> None:
        self._clip = clip
        self._stop = threading.Event()
        self._publisher = Publisher(address)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self) -> EnhancedEncoder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def received(self) -> bytes:
        return self._publisher.received

    @property
    def is_running(self) -> bool:
        return not self._publisher.is_closed and self._thread.is_alive()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        self._publisher.close()

    def _run(self) -> None:
        clip, publisher = self._clip, self._publisher
        with contextlib.suppress(OSError):
            publisher.video(video_tag(clip.four_cc, SEQUENCE_START, clip.configuration))
            publisher.audio(b"\xAF\x00\x11\x90")
            began = time.monotonic()
            for round_number in itertools.count():
                for sample in clip.samples:
                    timestamp = round_number * clip.length + sample.time
                    if self._stop.wait(max(0, began + timestamp / 1_000 - time.monotonic())):
                        return
                    if sample.is_video:
                        frame = KEY_FRAME if sample.is_key_frame else INTER_FRAME
                        publisher.video(self._tag(sample, frame), timestamp)
                    else:
                        publisher.audio(b"\xAF\x01" + sample.data, timestamp)

    def _tag(self, sample: Sample, frame: int) -> bytes:
        four_cc = self._clip.four_cc
        if four_cc == "hvc1" and sample.delay:
            return video_tag(four_cc, CODED_FRAMES, sample.data, frame, sample.delay)
        # Codecs without a composition time have but one kind; of HEVC this one has none.
        return video_tag(four_cc, CODED_FRAMES_X if four_cc == "hvc1" else CODED_FRAMES, sample.data, frame)

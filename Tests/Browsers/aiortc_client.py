"""aiortc as a WHIP encoder, a WHEP player and a speaker, run on a thread of its own so that tests stay plain functions."""

from __future__ import annotations

import asyncio
import fractions
import json
import threading
from collections import Counter
from collections.abc import Coroutine
from typing import Any, TypeVar

import numpy
from aiortc import (
    MediaStreamTrack, RTCBundlePolicy, RTCConfiguration, RTCPeerConnection, RTCRtpSender, RTCSessionDescription,
)
from aiortc.mediastreams import MediaStreamError
from av import AudioFrame, VideoFrame

from drivers.patience import patient
from server import Server

T = TypeVar("T")
WIDTH, HEIGHT, FRAMES_PER_SECOND = 320, 240, 20
SAMPLE_RATE, SAMPLES = 48_000, 960


class Picture(MediaStreamTrack):
    """A bar that wanders over a gradient: every frame differs from the last."""

    kind = "video"

    def __init__(self) -> None:
        super().__init__()
        #: Pictures that were sent.
        self.count = 0
        #: The most that a picture came after its time, in seconds: of a busy machine.
        self.late = 0.0
        self._start: float | None = None
        self._ground = numpy.tile(numpy.linspace(40, 200, WIDTH, dtype=numpy.uint8)[None, :, None], (HEIGHT, 1, 3))

    async def recv(self) -> VideoFrame:
        elapsed = self.count / FRAMES_PER_SECOND
        self._start = await pace(self._start, elapsed)
        self.late = max(self.late, asyncio.get_running_loop().time() - self._start - elapsed)
        pixels = self._ground.copy()
        at = self.count * 4 % (WIDTH - 20)
        pixels[:, at:at + 20] = (250, 60, 60)
        frame = VideoFrame.from_ndarray(pixels, format="rgb24")
        frame.pts, frame.time_base = self.count * 90_000 // FRAMES_PER_SECOND, fractions.Fraction(1, 90_000)
        self.count += 1
        return frame


class Tone(MediaStreamTrack):
    """440 Hz at a quarter of full scale."""

    kind = "audio"

    def __init__(self) -> None:
        super().__init__()
        self._count = 0
        self._start: float | None = None
        #: The most that a frame came after its time, in seconds: of a busy machine.
        self.late = 0.0

    async def recv(self) -> AudioFrame:
        elapsed = self._count * SAMPLES / SAMPLE_RATE
        self._start = await pace(self._start, elapsed)
        self.late = max(self.late, asyncio.get_running_loop().time() - self._start - elapsed)
        times = (numpy.arange(SAMPLES) + self._count * SAMPLES) / SAMPLE_RATE
        samples = (numpy.sin(2 * numpy.pi * 440 * times) * 8192).astype(numpy.int16)
        frame = AudioFrame.from_ndarray(samples[None, :], format="s16", layout="mono")
        frame.sample_rate, frame.pts = SAMPLE_RATE, self._count * SAMPLES
        frame.time_base = fractions.Fraction(1, SAMPLE_RATE)
        self._count += 1
        return frame


async def pace(start: float | None, elapsed: float) -> float:
    """Waits until a frame is due, as a camera does, and returns when the first one was."""
    now = asyncio.get_running_loop().time()
    start = now if start is None else start
    await asyncio.sleep(max(0.0, start + elapsed - now))
    return start


class Aiortc:
    """The thread all of a test's aiortc peers live on."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._peers: list[Peer] = []

    def run(self, work: Coroutine[Any, Any, T], seconds: float = 20) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=patient(seconds))

    def publish(self, server: Server, stream: str, codec: str | None = None) -> Peer:
        return self._open(server, f"/whip/{stream}", server.token(stream), codec=codec, sends=True)

    def play(self, server: Server, stream: str, token: str | None = None) -> Peer:
        return self._open(server, f"/whep/{stream}?wait=20", token, receives=True)

    def speak(self, server: Server, stream: str, role: str, name: str, **offer: Any) -> Peer:
        """On the stage, with microphone, camera and a slot for each of somebody else's."""
        path, token = f"/v1/streams/{stream}/sessions", server.token(stream, role, name)
        # Without max-bundle aiortc leaves the last of four m-lines on a transport of its own, which never connects.
        return self._open(
            server, path, token, sends=True, receives=True, bundle=RTCBundlePolicy.MAX_BUNDLE, **offer)

    def _open(self, server: Server, path: str, token: str | None, **offer: Any) -> Peer:
        peer = Peer(self, server, token)
        self._peers.append(peer)
        self.run(peer.open(path, **offer))
        return peer

    def close(self) -> None:
        for peer in self._peers:
            peer.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)
        self._loop.close()


class Peer:
    """One session. A player counts what it decodes."""

    def __init__(self, home: Aiortc, server: Server, token: str | None) -> None:
        self._home = home
        self._server = server
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._connection: RTCPeerConnection | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._tone = Tone()
        self._picture: Picture | None = None
        self.resource: str | None = None
        self.frames = 0
        self.sizes: set[tuple[int, int]] = set()
        #: Of the latest picture.
        self.height = 0
        self.frames_by_height: Counter[int] = Counter()
        #: Sum of squared samples, full scale being 1.
        self.energy = 0.0
        #: What came on the control channel, if there is one.
        self.control: list[dict[str, Any]] = []

    @property
    def pictures(self) -> int:
        """How many were sent so far."""
        return self._picture.count if self._picture else 0

    @property
    def late(self) -> float:
        """How long its sound stood still at most, in seconds; reports that it sends meanwhile are wrong by as much."""
        return self._tone.late

    @property
    def behind(self) -> float:
        """The same of sound and pictures, whichever stood still for longer."""
        return max(self._tone.late, self._picture.late if self._picture else 0.0)

    @property
    def state(self) -> str:
        return self._connection.connectionState if self._connection else "closed"

    async def open(
        self, path: str, *, codec: str | None = None, sends: bool = False, receives: bool = False, channel: bool = False,
        bundle: RTCBundlePolicy = RTCBundlePolicy.BALANCED,
    ) -> None:
        connection = self._connection = RTCPeerConnection(RTCConfiguration(iceServers=[], bundlePolicy=bundle))
        if sends:
            connection.addTransceiver(self._tone, "sendonly")
            self._picture = Picture()
            video = connection.addTransceiver(self._picture, "sendonly")
            if codec:
                known = RTCRtpSender.getCapabilities("video").codecs
                video.setCodecPreferences(
                    [each for each in known if each.mimeType.lower() in (f"video/{codec}", "video/rtx")])
        if receives:
            connection.addTransceiver("audio", "recvonly")
            connection.addTransceiver("video", "recvonly")
            connection.on("track", lambda track: self._tasks.append(asyncio.ensure_future(self._consume(track))))
        if channel:
            control = connection.createDataChannel("control", negotiated=True, id=0)
            control.on("message", lambda text: self.control.append(json.loads(text)))
        await connection.setLocalDescription(await connection.createOffer())
        # urllib blocks, and the loop must go on answering.
        status, headers, body = await asyncio.to_thread(
            self._server.request, "POST", path, connection.localDescription.sdp.encode(),
            {"Content-Type": "application/sdp", **self._headers})
        if status != 201:
            await connection.close()
            raise RuntimeError(f"{path}: {status} {body.decode(errors='replace')}")
        self.resource = headers["location"]
        await connection.setRemoteDescription(RTCSessionDescription(body.decode(), "answer"))

    async def _consume(self, track: MediaStreamTrack) -> None:
        try:
            while True:
                frame = await track.recv()
                if isinstance(frame, VideoFrame):
                    self.frames += 1
                    self.sizes.add((frame.width, frame.height))
                    self.height = frame.height
                    self.frames_by_height[frame.height] += 1
                else:
                    self.energy += float(numpy.square(frame.to_ndarray() / 32768.0).sum())
        except MediaStreamError:
            pass

    def lost(self) -> int:
        """Packets lost so far, audio and video, after retransmission."""
        async def count() -> int:
            report = await self._connection.getStats()
            return sum(entry.packetsLost for entry in report.values() if entry.type == "inbound-rtp")
        return self._home.run(count())

    def ask(self, method: str) -> int:
        """The status of a request for this session's resource."""
        status, _, _ = self._server.request(method, self.resource, headers=self._headers)
        return status

    def close(self) -> None:
        if self._connection and self.resource and self._server.is_running:
            self.ask("DELETE")
        self.hang_up()

    def hang_up(self) -> None:
        """Closes the connection, and leaves it to DTLS to notify the server."""
        connection, self._connection = self._connection, None
        if connection is None:
            return

        async def end() -> None:
            await connection.close()
            for task in self._tasks:
                task.cancel()
        self._home.run(end())

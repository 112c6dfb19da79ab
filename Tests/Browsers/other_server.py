"""Somebody else's server: WHIP and WHEP by aiortc, a full ICE agent that begins the DTLS handshake itself.

What RFC 9725 leaves to servers it does in another way than Rostrum: a 307 before the WHIP endpoint, an absolute URL
and a relative one in `Location`, no entity tags, candidates in every m-line.
"""

from __future__ import annotations

import asyncio

from aiohttp import web
from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError
from av import VideoFrame

from aiortc_client import Aiortc, Picture, Tone


class OtherServer:
    """Takes what is published, and plays a picture and a tone."""

    def __init__(self, token: str | None = None) -> None:
        self._token = token
        self._home = Aiortc()
        self._sessions: dict[str, RTCPeerConnection] = {}
        self._tasks: list[asyncio.Future[None]] = []
        self._count = 0
        self.frames = 0
        self.samples = 0
        self.redirected = 0
        self.deleted = 0
        self.origin = self._home.run(self._start())

    async def _start(self) -> str:
        application = web.Application()
        application.add_routes([
            web.post("/whip/{stream}", self._redirect), web.post("/moved/whip/{stream}", self._publish),
            web.post("/whep/{stream}", self._play), web.delete("/sessions/{session}", self._end),
        ])
        self._runner = web.AppRunner(application)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        return f"http://{host}:{port}"

    async def _redirect(self, request: web.Request) -> web.Response:
        self.redirected += 1
        raise web.HTTPTemporaryRedirect(f"/moved{request.path}")

    async def _publish(self, request: web.Request) -> web.Response:
        connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        connection.on("track", lambda track: self._tasks.append(asyncio.ensure_future(self._consume(track))))
        session, answer = await self._answer(connection, request)
        return web.Response(
            status=201, text=answer, content_type="application/sdp",
            headers={"Location": f"{self.origin}/sessions/{session}"})

    async def _play(self, request: web.Request) -> web.Response:
        connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        connection.addTrack(Tone())
        connection.addTrack(Picture())
        session, answer = await self._answer(connection, request)
        return web.Response(
            status=201, text=answer, content_type="application/sdp",
            headers={"Location": f"../sessions/{session}"})

    async def _answer(self, connection: RTCPeerConnection, request: web.Request) -> tuple[str, str]:
        if self._token and request.headers.get("Authorization") != f"Bearer {self._token}":
            raise web.HTTPUnauthorized(text="a token, please")
        await connection.setRemoteDescription(RTCSessionDescription(await request.text(), "offer"))
        await connection.setLocalDescription(await connection.createAnswer())
        self._count += 1
        self._sessions[str(self._count)] = connection
        return str(self._count), connection.localDescription.sdp

    async def _end(self, request: web.Request) -> web.Response:
        connection = self._sessions.pop(request.match_info["session"], None)
        if connection is None:
            raise web.HTTPNotFound
        self.deleted += 1
        await connection.close()
        return web.Response(status=200)

    async def _consume(self, track: MediaStreamTrack) -> None:
        try:
            while True:
                frame = await track.recv()
                if isinstance(frame, VideoFrame):
                    self.frames += 1
                else:
                    self.samples += frame.samples
        except MediaStreamError:
            pass

    def close(self) -> None:
        async def end() -> None:
            for connection in self._sessions.values():
                await connection.close()
            await self._runner.cleanup()
        self._home.run(end())
        self._home.close()

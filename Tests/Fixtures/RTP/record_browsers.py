"""Records what browsers send: RTP and RTCP, decrypted, one packet a line in hexadecimal.

A browser publishes its fake camera and microphone to a minimal peer built of aiortc's transports, which answers any
codec, keeps what arrives, asks for a second key frame, and sends the video back with losses, so that the browser's
receiver has something to report. See README.md for how to run it.
"""

from __future__ import annotations

import asyncio
import http.server
import re
import struct
import sys
import threading
from pathlib import Path

from aiortc import (
    RTCCertificate, RTCDtlsFingerprint, RTCDtlsParameters, RTCDtlsTransport, RTCIceGatherer, RTCIceParameters,
    RTCIceTransport)
from aiortc.sdp import candidate_from_sdp

sys.path.insert(0, str(Path(__file__).parents[2] / "Browsers"))
from drivers import Chromium, Firefox  # noqa: E402

HERE = Path(__file__).parent
ECHO_SSRC = 0x0EC40001
SMALL, LARGE = (160, 120), (480, 270)
#: file name -> codec, size (Chromium sends spatial layers from 240x135 up), encodings, video packets to keep
CASES = {
    "vp8-l1t3": ("video/VP8", (320, 180), [{"scalabilityMode": "L1T3", "maxBitrate": 150_000}], 16),
    "vp8-simulcast": ("video/VP8", LARGE, [
        {"rid": "q", "scaleResolutionDownBy": 2.0, "maxBitrate": 60_000},
        {"rid": "f", "scaleResolutionDownBy": 1.0, "maxBitrate": 120_000}], 20),
    "vp9-l1t1": ("video/VP9", SMALL, [{}], 8),
    "vp9-l2t2": ("video/VP9", (640, 360), [{"scalabilityMode": "L2T2", "maxBitrate": 400_000}], 24),
    "h264": ("video/H264", SMALL, [{}], 14),
    "av1-l1t1": ("video/AV1", SMALL, [{}], 10),
    "av1-l2t2": ("video/AV1", LARGE, [{"scalabilityMode": "L2T2", "maxBitrate": 150_000}], 24),
}
PAGE = """async (mime, [width, height], encodings) => {
    const media = await navigator.mediaDevices.getUserMedia(
        {audio: true, video: {width, height, frameRate: 15}});
    const pc = window.pc = new RTCPeerConnection();
    pc.addTransceiver(media.getAudioTracks()[0], {direction: 'sendonly'});
    const video = pc.addTransceiver(media.getVideoTracks()[0], {direction: 'sendrecv', sendEncodings: encodings});
    const all = RTCRtpReceiver.getCapabilities('video').codecs;
    const wanted = all.filter(c => c.mimeType.toLowerCase() === mime.toLowerCase());
    video.setCodecPreferences([...wanted, ...all.filter(c => c.mimeType === 'video/rtx')]);
    await pc.setLocalDescription();
    if (pc.iceGatheringState !== 'complete')
        await new Promise(r => pc.onicegatheringstatechange = () => pc.iceGatheringState === 'complete' && r());
    return pc.localDescription.sdp;
}"""


class Recorder(RTCDtlsTransport):
    """Keeps packets instead of depacketising them, and echoes the video."""

    def prepare(self, video_types: set[int]) -> None:
        self.rtp: list[bytes] = []
        self.rtcp: list[bytes] = []
        self.video_types = video_types
        self.ssrc: int | None = None

    async def _handle_rtp_data(self, data: bytes, arrival_time_ms: int) -> None:
        self.rtp.append(data)
        if data[1] & 0x7F not in self.video_types:
            return
        ssrc, sequence = struct.unpack_from("!I", data, 8)[0], struct.unpack_from("!H", data, 2)[0]
        self.ssrc = self.ssrc or ssrc
        if ssrc == self.ssrc and sequence % 7:
            await self._send_rtp(data[:8] + struct.pack("!I", ECHO_SSRC) + data[12:])

    async def _handle_rtcp_data(self, data: bytes) -> None:
        self.rtcp.append(data)

    async def ask_for_key_frame(self) -> None:
        await self._send_rtp(struct.pack("!BBHII", 0x81, 206, 2, 1, self.ssrc or 0))


def answer(offer: str, ice: RTCIceGatherer, dtls: RTCDtlsTransport) -> str:
    """Takes the first payload type (and its RTX) of each section and every extension and feedback."""
    parameters = ice.getLocalParameters()
    fingerprint = dtls.getLocalParameters().fingerprints[0]
    head, *sections = re.split(r"(?=^m=)", offer, flags=re.M)
    lines = ["v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "t=0 0"]
    lines += re.findall(r"^a=group:.*$|^a=extmap-allow-mixed", head, re.M)
    for section in sections:
        kind, types = re.match(r"m=(\w+) \d+ \S+ (.*)", section).groups()
        first = types.split()[0]
        kept = [first] + re.findall(rf"^a=fmtp:(\d+) apt={first}\b", section, re.M)
        lines += [f"m={kind} 9 UDP/TLS/RTP/SAVPF {' '.join(kept)}", "c=IN IP4 0.0.0.0", "a=rtcp-mux",
                  "a=rtcp-rsize", f"a=ice-ufrag:{parameters.usernameFragment}",
                  f"a=ice-pwd:{parameters.password}", "a=setup:passive",
                  f"a=fingerprint:{fingerprint.algorithm} {fingerprint.value}",
                  "a=" + ("sendrecv" if "a=sendrecv" in section else "recvonly")]
        # What the browser only sends, this side only receives.
        turned = section.replace("/sendonly", "/recvonly@").replace("/recvonly ", "/sendonly ").replace("@", "")
        lines += [line for line in turned.split("\n")
                  if re.match(r"a=(mid|extmap):?", line) and "allow-mixed" not in line
                  or re.match(rf"a=(rtpmap|fmtp|rtcp-fb):({'|'.join(kept)}) ", line)]
        rids = re.findall(r"^a=rid:(\w+) send", section, re.M)
        if rids:
            lines += [f"a=rid:{rid} recv" for rid in rids] + ["a=simulcast:recv " + ";".join(rids)]
        if kind == "video":
            # Nothing here tells Chromium that it may send more than its first 300 kbit/s.
            lines = [line + ";x-google-start-bitrate=1500" if line.startswith(f"a=fmtp:{first} ") else line
                     for line in lines]
            lines += [f"a=ssrc:{ECHO_SSRC} cname:echo", f"a=ssrc:{ECHO_SSRC} msid:echo video"]
        lines += [f"a=candidate:{c.foundation} {c.component} udp {c.priority} {c.ip} {c.port} typ host"
                  for c in ice.getLocalCandidates() if ":" not in c.ip]
    return "\r\n".join(lines) + "\r\n"


class EmptyPage(http.server.BaseHTTPRequestHandler):
    """Cameras are only given to pages of a secure origin; localhost is one."""

    def do_GET(self) -> None:  # noqa: N802
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


async def record(
        browser, address: str, mime: str, size: tuple[int, int], encodings: list[dict], seconds: float) -> tuple[Recorder, str]:
    page = await asyncio.to_thread(browser.open, address)
    offer = (await asyncio.to_thread(page.evaluate, PAGE, mime, size, encodings)).replace("\r", "")
    gatherer = RTCIceGatherer(iceServers=[])
    ice = RTCIceTransport(gatherer)
    dtls = Recorder(ice, [RTCCertificate.generateCertificate()])
    dtls.prepare({int(re.search(r"^m=video \d+ \S+ (\d+)", offer, re.M)[1])})
    dtls._set_role("server")
    await gatherer.gather()
    reply = answer(offer, gatherer, dtls)
    await asyncio.to_thread(
        page.evaluate, "sdp => pc.setRemoteDescription({type: 'answer', sdp})", reply)
    for line in set(re.findall(r"^a=candidate:(.*? udp .*)$", offer, re.M)):
        candidate = candidate_from_sdp(line)
        candidate.sdpMid = "0"
        await ice.addRemoteCandidate(candidate)
    find = lambda name: re.search(rf"^a={name}:(.*)$", offer, re.M)[1]  # noqa: E731
    await ice.start(RTCIceParameters(usernameFragment=find("ice-ufrag"), password=find("ice-pwd")))
    algorithm, value = find("fingerprint").split()
    await dtls.start(RTCDtlsParameters(fingerprints=[RTCDtlsFingerprint(algorithm, value)]))
    await asyncio.sleep(seconds / 2)
    await dtls.ask_for_key_frame()
    await asyncio.sleep(seconds / 2)
    await dtls.stop()
    await ice.stop()
    await asyncio.to_thread(page.close)
    return dtls, offer


def keep(recorder: Recorder, offer: str, name: str, limit: int) -> None:
    video = re.split(r"(?=^m=)", offer, flags=re.M)[-1]
    notes = [f"# {line}" for line in re.findall(r"^m=.*$|^a=extmap:.*$", offer, re.M)]
    first = re.match(r"m=video \d+ \S+ (\d+)", video)[1]
    notes += [f"# {line}" for line in re.findall(rf"^a=(?:rtpmap|fmtp):{first} .*$", video, re.M)]
    seen = 0
    lines = []
    audio = 0
    for packet in recorder.rtp:
        if packet[1] & 0x7F in recorder.video_types:
            seen += 1
            if seen <= limit:
                lines.append(packet.hex())
        elif audio < 2:
            audio += 1
            lines.append(packet.hex())
    (HERE / f"{name}.rtp.hex").write_text("\n".join(notes + lines) + "\n")
    (HERE / f"{name}.rtcp.hex").write_text("\n".join(p.hex() for p in recorder.rtcp[:36]) + "\n")
    print(name, len(recorder.rtp), "RTP", len(recorder.rtcp), "RTCP", flush=True)


async def main() -> None:
    logs = Path(sys.argv[1])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), EmptyPage)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://localhost:{server.server_port}/"
    wanted = sys.argv[2:]
    for kind in (Chromium, Firefox):
        browser = None
        for name, (mime, size, encodings, limit) in CASES.items():
            title = f"{kind.name}-{name}"
            if title not in wanted:
                continue
            browser = browser or await asyncio.to_thread(kind, logs)
            try:
                recorder, offer = await record(browser, address, mime, size, encodings, 3)
                keep(recorder, offer, title, limit)
            except Exception as error:  # noqa: BLE001
                print(title, "failed:", repr(error), flush=True)
        if browser:
            await asyncio.to_thread(browser.close)


asyncio.run(main())

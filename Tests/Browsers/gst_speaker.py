"""A WHIP publisher on GStreamer's webrtcbin whose packets of sound carry earlier ones (`rtpredenc`), a program of its own
because it needs the system's Python (python3-gi).

    /usr/bin/python3 gst_speaker.py http://127.0.0.1:8080/whip/demo TOKEN DISTANCE LOSS

Each packet carries the one so many before it; of the packets a share, 0 to 1, never leaves. Sends until its standard input
ends, and prints as JSON how many left once it was connected.
"""

import json
import random
import re
import sys
import urllib.request

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstSdp", "1.0")
gi.require_version("GstWebRTC", "1.0")
from gi.repository import GLib, Gst, GstSdp, GstWebRTC  # noqa: E402

OPUS, RED = 111, 63


class Speaker:
    def __init__(self, endpoint: str, token: str, distance: int, loss: float) -> None:
        self.endpoint, self.token, self.loss = endpoint, token, loss
        self.is_connected = False
        self.counts = {"sent": 0, "dropped": 0, "redundant": 0}
        self.chance = random.Random(5)
        self.loop = GLib.MainLoop()
        # To webrtcbin all is one format, whose name is put right in the offer: it knows RED with FEC alone.
        self.pipeline = Gst.parse_launch(
            "webrtcbin name=peer bundle-policy=max-bundle audiotestsrc is-live=true samplesperbuffer=960 volume=0.3"
            f" ! audio/x-raw,rate=48000,channels=2 ! opusenc frame-size=20 ! rtpopuspay pt={OPUS}"
            f" ! rtpredenc name=red pt={RED} distance={distance} allow-no-red-blocks=true"
            " ! capssetter join=false replace=true name=caps"
            f" caps=application/x-rtp,media=audio,encoding-name=OPUS,payload={RED},clock-rate=48000,"
            "encoding-params=(string)2 ! identity name=gate ! peer.")
        self.peer = self.pipeline.get_by_name("peer")
        self.peer.connect("on-negotiation-needed", lambda *_: self.offer())
        self.peer.connect("notify::connection-state", lambda *_: self.on_state())
        gate = self.pipeline.get_by_name("gate").get_static_pad("src")
        gate.add_probe(Gst.PadProbeType.BUFFER, self.on_packet)
        bus = self.pipeline.get_bus()
        bus.add_signal_watch()
        bus.connect("message::error", self.on_error)
        GLib.io_add_watch(sys.stdin, GLib.PRIORITY_DEFAULT, GLib.IOCondition.HUP, lambda *_: self.loop.quit())

    def on_state(self) -> None:
        state = self.peer.get_property("connection-state")
        self.is_connected |= state == GstWebRTC.WebRTCPeerConnectionState.CONNECTED

    def on_packet(self, _: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        if not self.is_connected:
            return Gst.PadProbeReturn.OK
        buffer = info.get_buffer()
        self.counts["redundant"] += buffer.extract_dup(1, 1)[0] & 0x7F == RED
        if self.chance.random() < self.loss:
            self.counts["dropped"] += 1
            return Gst.PadProbeReturn.DROP
        self.counts["sent"] += 1
        return Gst.PadProbeReturn.OK

    def offer(self) -> None:
        self.peer.emit("create-offer", None, Gst.Promise.new_with_change_func(self.on_offer, None))

    def on_offer(self, promise: Gst.Promise, _: object) -> None:
        # The offer lives only as long as the reply that holds it.
        reply = promise.get_reply()
        offer = reply.get_value("offer")
        text = offer.sdp.as_text()
        self.peer.emit("set-local-description", offer, Gst.Promise.new())
        text = re.sub(rf"(m=audio \d+ \S+) {RED}\b", rf"\1 {RED} {OPUS}", text)
        text = re.sub(
            rf"a=rtpmap:{RED} OPUS/48000/2\r\n",
            f"a=rtpmap:{RED} red/48000/2\r\na=fmtp:{RED} {OPUS}/{OPUS}\r\na=rtpmap:{OPUS} opus/48000/2\r\n", text)
        request = urllib.request.Request(
            self.endpoint, text.encode(), {"Content-Type": "application/sdp", "Authorization": f"Bearer {self.token}"},
            method="POST")
        with urllib.request.urlopen(request, timeout=20) as response:
            body = response.read().decode()
        assert f" {RED} {OPUS}\r\n" in body, body
        body = body.replace(f" {RED} {OPUS}\r\n", f" {RED}\r\n").replace(f"rtpmap:{RED} red/", f"rtpmap:{RED} OPUS/")
        body = re.sub(rf"a=(rtpmap|fmtp|rtcp-fb):({OPUS} .*|{RED} {OPUS}/{OPUS})\r\n", "", body)
        _, sdp = GstSdp.SDPMessage.new()
        GstSdp.sdp_message_parse_buffer(body.encode(), sdp)
        answer = GstWebRTC.WebRTCSessionDescription.new(GstWebRTC.WebRTCSDPType.ANSWER, sdp)
        self.peer.emit("set-remote-description", answer, Gst.Promise.new())

    def on_error(self, _: Gst.Bus, message: Gst.Message) -> None:
        print(message.parse_error(), file=sys.stderr)
        self.loop.quit()

    def run(self) -> None:
        self.pipeline.set_state(Gst.State.PLAYING)
        self.loop.run()
        self.pipeline.set_state(Gst.State.NULL)
        print(json.dumps(self.counts))


Gst.init(None)
Speaker(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])).run()

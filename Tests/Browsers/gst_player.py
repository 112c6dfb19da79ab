"""A WHEP player on GStreamer's webrtcbin, a program of its own because it needs the system's Python (python3-gi).

    /usr/bin/python3 gst_player.py http://127.0.0.1:8080/whep/demo FRAMES SECONDS

Decodes until it has seen so many pictures and heard some sound, prints what it got as JSON, and ends with 0;
with 1 when the time is over first.
"""

import json
import sys
import urllib.request

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstSdp", "1.0")
gi.require_version("GstWebRTC", "1.0")
from gi.repository import GLib, Gst, GstSdp, GstWebRTC  # noqa: E402


class Player:
    def __init__(self, endpoint: str, frames: int, seconds: int) -> None:
        self.endpoint = endpoint
        self.wanted = frames
        self.seconds = seconds
        self.seen = {"codec": None, "width": 0, "height": 0, "frames": 0, "samples": 0, "peak": 0}
        self.loop = GLib.MainLoop()
        self.pipeline = Gst.Pipeline.new(None)
        self.peer = Gst.ElementFactory.make("webrtcbin", None)
        self.peer.set_property("bundle-policy", GstWebRTC.WebRTCBundlePolicy.MAX_BUNDLE)
        self.pipeline.add(self.peer)
        self.peer.connect("pad-added", self.on_pad)
        self.peer.connect("on-negotiation-needed", lambda *_: self.offer())
        bus = self.pipeline.get_bus()
        bus.add_signal_watch()
        bus.connect("message::error", self.on_error)
        for caps in (
            "application/x-rtp,media=audio,encoding-name=OPUS,payload=111,clock-rate=48000,encoding-params=(string)2",
            "application/x-rtp,media=video,encoding-name=VP8,payload=96,clock-rate=90000,rtcp-fb-nack=true,"
            "rtcp-fb-nack-pli=true,rtcp-fb-ccm-fir=true",
        ):
            direction = GstWebRTC.WebRTCRTPTransceiverDirection.RECVONLY
            transceiver = self.peer.emit("add-transceiver", direction, Gst.Caps.from_string(caps))
            transceiver.set_property("do-nack", True)

    def offer(self) -> None:
        self.peer.emit("create-offer", None, Gst.Promise.new_with_change_func(self.on_offer, None))

    def on_offer(self, promise: Gst.Promise, _: object) -> None:
        # The offer lives only as long as the reply that holds it.
        reply = promise.get_reply()
        offer = reply.get_value("offer")
        text = offer.sdp.as_text()
        self.peer.emit("set-local-description", offer, Gst.Promise.new())
        request = urllib.request.Request(
            self.endpoint, text.encode(), {"Content-Type": "application/sdp"}, method="POST")
        with urllib.request.urlopen(request, timeout=self.seconds) as response:
            body = response.read()
        _, sdp = GstSdp.SDPMessage.new()
        GstSdp.sdp_message_parse_buffer(body, sdp)
        answer = GstWebRTC.WebRTCSessionDescription.new(GstWebRTC.WebRTCSDPType.ANSWER, sdp)
        self.peer.emit("set-remote-description", answer, Gst.Promise.new())

    def on_pad(self, _: Gst.Element, pad: Gst.Pad) -> None:
        if pad.direction != Gst.PadDirection.SRC:
            return
        caps = pad.get_current_caps().get_structure(0)
        is_video = caps.get_string("media") == "video"
        if is_video:
            self.seen["codec"] = caps.get_string("encoding-name")
        steps = (
            "rtpvp8depay ! vp8dec ! fakesink sync=false signal-handoffs=true name=sink" if is_video else
            "rtpopusdepay ! opusdec ! audioconvert ! audio/x-raw,format=S16LE ! fakesink sync=false"
            " signal-handoffs=true name=sink")
        decoder = Gst.parse_bin_from_description(steps, True)
        decoder.get_by_name("sink").connect("handoff", self.on_picture if is_video else self.on_sound)
        self.pipeline.add(decoder)
        decoder.sync_state_with_parent()
        pad.link(decoder.get_static_pad("sink"))

    def on_picture(self, _: Gst.Element, __: Gst.Buffer, pad: Gst.Pad) -> None:
        caps = pad.get_current_caps().get_structure(0)
        self.seen["width"], self.seen["height"] = caps.get_int("width")[1], caps.get_int("height")[1]
        self.seen["frames"] += 1
        self.check()

    def on_sound(self, _: Gst.Element, buffer: Gst.Buffer, __: Gst.Pad) -> None:
        data = buffer.extract_dup(0, buffer.get_size())
        self.seen["samples"] += len(data) // 2
        self.seen["peak"] = max([self.seen["peak"], *map(abs, memoryview(data).cast("h"))])
        self.check()

    def check(self) -> None:
        if self.seen["frames"] >= self.wanted and self.seen["peak"] > 100:
            GLib.idle_add(self.loop.quit)

    def on_error(self, _: Gst.Bus, message: Gst.Message) -> None:
        print(message.parse_error(), file=sys.stderr)
        self.loop.quit()

    def run(self) -> bool:
        GLib.timeout_add_seconds(self.seconds, self.loop.quit)
        self.pipeline.set_state(Gst.State.PLAYING)
        self.loop.run()
        self.pipeline.set_state(Gst.State.NULL)
        return self.seen["frames"] >= self.wanted and self.seen["peak"] > 100


if __name__ == "__main__":
    Gst.init(None)
    player = Player(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    succeeded = player.run()
    print(json.dumps(player.seen))
    sys.exit(0 if succeeded else 1)

"""Records what the payloaders of GStreamer and FFmpeg send: RTP, one packet a line in hexadecimal. See README.md."""

import socket
import subprocess
from pathlib import Path

SOURCE = "videotestsrc num-buffers=6 pattern=ball ! video/x-raw,width=192,height=108,framerate=10/1 ! "
GSTREAMER = {
    "gstreamer-vp8": "vp8enc keyframe-max-dist=4 deadline=1 ! rtpvp8pay picture-id-mode=7-bit mtu=500 pt=96",
    "gstreamer-vp9": "vp9enc keyframe-max-dist=4 deadline=1 ! rtpvp9pay picture-id-mode=15-bit mtu=500 pt=98",
    "gstreamer-h264": "videoconvert ! openh264enc gop-size=4 ! h264parse config-interval=-1"
    " ! rtph264pay aggregate-mode=zero-latency mtu=300 pt=102",
}
FFMPEG = (
    "ffmpeg -loglevel error -f lavfi -i testsrc=size=198x106:rate=10 -frames:v 4 -pix_fmt yuv420p"
    " -c:v libx264 -preset ultrafast -tune zerolatency -g 3 -profile:v high -b:v 100k -slices 2"
    " -bsf:v dump_extra -payload_type 102 -f rtp rtp://127.0.0.1:{port}?pkt_size=600&rtcpport=9")


def record(name: str, command: list[str], receiver: socket.socket) -> None:
    packets = []
    sender = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        while True:
            packets.append(receiver.recv(2048).hex())
    except TimeoutError:
        sender.wait()
    (Path(__file__).parent / f"{name}.rtp.hex").write_text("\n".join(packets) + "\n")
    print(name, len(packets))


with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
    receiver.bind(("127.0.0.1", 0))
    receiver.settimeout(3)
    port = receiver.getsockname()[1]
    for name, chain in GSTREAMER.items():
        pipeline = f"{SOURCE}{chain} ! udpsink host=127.0.0.1 port={port} sync=false"
        record(name, ["gst-launch-1.0", "-q", *pipeline.split()], receiver)
    record("ffmpeg-h264", FFMPEG.format(port=port).split(), receiver)

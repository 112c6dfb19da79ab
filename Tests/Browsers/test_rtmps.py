"""Encoders by RTMPS: the server's certificate, and what happens when it is renewed."""

from __future__ import annotations

import json
import os
import random
import signal
import ssl
import urllib.request
from pathlib import Path
from typing import Any

from drivers import wait_until
from drivers.patience import patient
from drivers.process import Process
from rtmp import Encoder, connect, is_closed
from server import binary, free_port
from test_operation import make_certificate, presented_name


def test_encoders_publish_by_rtmps(tmp_path: Path, logs: Path) -> None:
    make_certificate(tmp_path, "first.example")
    port = free_port(width=4)
    rtmps = port + 3
    process = Process(
        [str(binary()), "serve", "--dev", "--workers", "1", "--http", f"127.0.0.1:{port}",
         "--udp", f"127.0.0.1:{port + 1}", "--rtmps", f"127.0.0.1:{rtmps}",
         "--tls-certificate", f"{tmp_path}/chain.pem", "--tls-key", f"{tmp_path}/key.pem"],
        logs / "rtmps.log", rf"^ready http=.* rtmps=127.0.0.1:{rtmps}", 15)
    context = ssl.create_default_context(cafile=str(tmp_path / "chain.pem"))
    context.check_hostname = False

    def ask(path: str, token: str | None = None, body: dict[str, Any] | None = None) -> Any:
        request = urllib.request.Request(
            f"https://127.0.0.1:{port}{path}", json.dumps(body).encode() if body else None,
            {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})})
        with urllib.request.urlopen(request, timeout=patient(10), context=context) as answer:
            return json.load(answer)

    def live() -> set[str]:
        return {stream["id"] for stream in ask("/v1/streams")["streams"] if stream["state"] == "live"}

    def address(stream: str) -> str:
        token = ask("/v1/tokens", body={"sub": "ann", "name": "Ann", "role": "host", "stream": stream})["token"]
        rtmp = ask(f"/v1/streams/{stream}/ingest", token)["rtmp"]
        assert rtmp["server"] == f"rtmps://127.0.0.1:{rtmps}/live" and rtmp["plainServer"] is None
        return f"{rtmp['server']}/{rtmp['key']}"

    try:
        first, second = address("first"), address("second")
        assert presented_name(rtmps) == "first.example"
        with Encoder(first, logs / "rtmps-first.log") as encoder:
            wait_until(lambda: "first" in live(), 20, "the stream is live")
            # What is no TLS is closed, and disturbs nobody.
            chance = random.Random(1936)
            for bytes_ in (b"\x03" + bytes(1536), chance.randbytes(2_000)):
                with connect(rtmps) as client:
                    client.sendall(bytes_)
                    assert is_closed(client)
            # Who connects from now on is shown another certificate.
            make_certificate(tmp_path, "second.example", "rsa:2048")
            os.kill(process.pid, signal.SIGHUP)
            wait_until(lambda: presented_name(rtmps) == "second.example", 20, "there is another certificate")
            context.load_verify_locations(str(tmp_path / "chain.pem"))
            with Encoder(second, logs / "rtmps-second.log"):
                wait_until(lambda: {"first", "second"} <= live(), 20, "both are live")
            assert encoder.is_running
    finally:
        status = process.stop()
    assert status == 0

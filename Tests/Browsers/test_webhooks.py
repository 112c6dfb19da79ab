"""Webhooks of a real server: told in order, signed, and delivered after a restart when the receiver was down."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import os
import queue
import signal
import threading
import time
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from drivers import wait_until
from drivers.patience import patient
from server import Server, free_port
from websockets.sync.client import connect

SECRET = "a secret that outlives a restart, of course"
HOOK_SECRET = "what webhooks are signed with"


class Receiver:
    """Takes webhooks, verifies them with Python's own HMAC, and answers as it is told."""

    def __init__(self, port: int) -> None:
        self.events: queue.Queue[dict[str, Any]] = queue.Queue()
        self.status = 200
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                parts = dict(part.split("=", 1) for part in self.headers["Rostrum-Signature"].split(","))
                signed = parts["t"].encode() + b"." + body
                expected = hmac.new(HOOK_SECRET.encode(), signed, hashlib.sha256).hexdigest()
                event = json.loads(body)
                assert event["id"] == self.headers["Rostrum-Delivery"]
                event["signed"] = hmac.compare_digest(expected, parts["v1"])
                event["age"] = time.time() - int(parts["t"])
                status = receiver.status
                if status == 200:
                    receiver.events.put(event)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def take(self, count: int, seconds: float = 20) -> list[dict[str, Any]]:
        deadline = time.monotonic() + patient(seconds)
        events = [self.events.get(timeout=max(0.01, deadline - time.monotonic())) for _ in range(count)]
        assert all(event["signed"] and event["age"] < 60 for event in events), events
        return events

    def stop(self) -> None:
        self.http.shutdown()
        self.http.server_close()


def ask(server: Server, token: str, method: str, path: str, body: Any = None) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=patient(10))
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    assert 200 <= answer.status < 300, (method, path, answer.status, text)
    return json.loads(text) if text else None


def test_story(logs: Path, tmp_path: Path) -> None:
    receiver = Receiver(free_port())
    server = Server(
        logs / "server-webhooks.log", "--data", str(tmp_path / "data"), "--secret", SECRET, "--workers", "1",
        "--tcp", "off",
        "--webhook", f"http://127.0.0.1:{receiver.port}/hook", "--webhook-secret", HOOK_SECRET)
    stack = ExitStack()
    try:
        ann, bob = server.token("story", "host", "Ann"), server.token("story", "viewer", "Bob")
        ask(server, ann, "POST", "/v1/streams", {"id": "story", "title": "A story", "hostGraceSeconds": 3600})
        # Who is not connected has left after fifteen seconds, which a busy machine may take for what follows.
        for token in (ann, bob):
            sync = stack.enter_context(connect(
                f"{server.origin.replace('http', 'ws')}/v1/streams/story/sync?access_token={token}", open_timeout=patient(10)))
            sync.recv(timeout=patient(10))
        ask(server, bob, "POST", "/v1/streams/story/hands")
        ask(server, ann, "POST", "/v1/streams/story/invitations", {"participant": "bob"})
        ask(server, bob, "POST", "/v1/streams/story/invitations/bob/accept")
        events = receiver.take(1)
        assert events[0]["type"] == "stream.created", events
        assert events[0]["data"]["stream"]["title"] == "A story"
        told = [(event["type"], event["data"].get("participant", {}).get("id")) for event in events]
        while ("participant.promoted", "bob") not in told:
            event = receiver.take(1)[0]
            told.append((event["type"], event["data"].get("participant", {}).get("id")))
        assert told.index(("participant.joined", "bob")) < told.index(("participant.promoted", "bob"))

        # Whose answer is not written down yet is told again after a restart.
        wait_until(lambda: server.metrics()["rostrum_webhooks_waiting"] == 0, 20, "the answers are written down")
        # Down, while things happen; then the server is killed; then both are back.
        receiver.stop()
        ask(server, ann, "POST", "/v1/streams/story/live")
        ask(server, ann, "DELETE", "/v1/streams/story/speakers/bob")
        os.kill(server.pid, signal.SIGKILL)
        server.stop()
        receiver = Receiver(receiver.port)
        server.start()
        types = [event["type"] for event in receiver.take(2)]
        assert types == ["stream.live", "participant.demoted"], types

        # An answer that is no yes is asked again.
        receiver.status = 503
        ask(server, ann, "POST", "/v1/streams/story/end")
        wait_until(
            lambda: server.metrics()['rostrum_webhook_attempts_total{outcome="failed"}'] > 0, 10, "it was tried in vain")
        receiver.status = 200
        event = receiver.take(1)[0]
        assert (event["type"], event["data"]["stream"]["endReason"]) == ("stream.ended", "ended")
        wait_until(lambda: server.metrics()["rostrum_webhooks_waiting"] == 0, 20, "everything is told")
    finally:
        server.stop()
        receiver.stop()
        stack.close()

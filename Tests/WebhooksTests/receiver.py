"""A receiver of webhooks that behaves as its path says, and prints one JSON line for each request.

Verifies signatures with Python's own HMAC. First prints {"port": N}. Ends when its standard input does.
"""

import hashlib
import hmac
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = sys.argv[1].encode()
lock = threading.Lock()
attempts: dict[tuple[str, str], int] = {}


def say(**fields: object) -> None:
    with lock:
        print(json.dumps(fields), flush=True)


def is_signed(header: str, body: bytes) -> bool:
    parts = dict(part.split("=", 1) for part in header.split(","))
    expected = hmac.new(SECRET, parts["t"].encode() + b"." + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, parts["v1"]) and abs(time.time() - int(parts["t"])) < 60


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        delivery = self.headers["Rostrum-Delivery"]
        with lock:
            attempt = attempts[self.path, delivery] = attempts.get((self.path, delivery), 0) + 1
        status = {"/gone": 410, "/moved": 302}.get(self.path, 200)
        if self.path == "/flaky" and attempt <= 2:
            status = 500
        if self.path == "/hangup" and attempt <= 2:
            status = 0
        if self.path == "/slow":
            time.sleep(0.2)
        say(
            path=self.path, delivery=delivery, attempt=attempt, status=status,
            event=self.headers["Rostrum-Event"], type=self.headers["Content-Type"],
            signed=is_signed(self.headers["Rostrum-Signature"], body), body=body.decode())
        if status == 0:
            self.close_connection = True
            return
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/ok")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *arguments: object) -> None:
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
say(port=server.server_address[1])
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()

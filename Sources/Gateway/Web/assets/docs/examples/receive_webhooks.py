"""Receives webhooks: python3 receive_webhooks.py 9000, with the server's webhook-secret in WEBHOOK_SECRET."""
import hashlib, hmac, json, os, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = os.environ["WEBHOOK_SECRET"].encode()
OLDEST = 300  # seconds; older requests may be replays by an attacker
seen = set()  # ids of events; keep yours in a database


def is_authentic(signature: str, body: bytes) -> bool:
    parts = dict(part.partition("=")[::2] for part in signature.split(","))
    sent = parts.get("t", "")
    if not sent.isdecimal() or abs(time.time() - int(sent)) > OLDEST:
        return False
    expected = hmac.new(SECRET, sent.encode() + b"." + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), parts.get("v1", "").encode())


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not is_authentic(self.headers.get("Rostrum-Signature", ""), body):
            self.send_error(401)
            return
        event = json.loads(body)
        if event["id"] not in seen:  # events are delivered at least once
            seen.add(event["id"])
            print(event["type"], event["stream"], flush=True)
        self.send_response(204)  # anything but 2xx is retried
        self.end_headers()

    def log_message(self, *arguments):
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver)
print("listening", flush=True)
server.serve_forever()

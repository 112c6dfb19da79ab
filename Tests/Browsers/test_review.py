"""Comments that a webhook is asked about before anybody is shown them: real sockets, and a receiver of each kind."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from drivers import Browser, wait_until
from media import go_live
from server import Server
from test_comments import IS_SHOWN, open_watch, say_name, submit, wait_for_comment

HOOK_SECRET = "what questions are signed with"


class Reviewer:
    """Allows all but what holds the word `bad`; what holds `slow` it answers only when it is let go."""

    def __init__(self) -> None:
        self.questions: list[dict[str, Any]] = []
        self.release = threading.Event()
        reviewer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                parts = dict(part.split("=", 1) for part in self.headers["Rostrum-Signature"].split(","))
                code = hmac.new(HOOK_SECRET.encode(), parts["t"].encode() + b"." + body, hashlib.sha256).hexdigest()
                question = json.loads(body)
                assert hmac.compare_digest(code, parts["v1"]) and self.headers["Rostrum-Event"] == question["type"]
                reviewer.questions.append(question)
                text = question["data"]["comment"]["text"]
                if "slow" in text:
                    reviewer.release.wait()
                try:
                    self.send_response(403 if "bad" in text else 204)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                except BrokenPipeError:
                    pass

            def log_message(self, *arguments: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/review"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def authors(self) -> list[str]:
        """Of the comments that it was asked about."""
        return [question["data"]["comment"]["author"] for question in self.questions]

    def stop(self) -> None:
        self.release.set()
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def reviewer() -> Iterator[Reviewer]:
    reviewer = Reviewer()
    yield reviewer
    reviewer.stop()


def reviewed_server(logs: Path, url: str, default: str) -> Server:
    return Server(
        logs / f"server-review-{default}.log", "--workers", "1", "--tcp", "off", "--review-webhook", url,
        "--review-default", default, "--webhook-secret", HOOK_SECRET)


def ask(server: Server, token: str, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
    status, _, answer = server.request(
        method, path, json.dumps(body).encode() if body is not None else None,
        {"Content-Type": "application/json", "Authorization": f"Bearer {token}"})
    return status, json.loads(answer or b"{}")


def begin(server: Server) -> str:
    """The host's token of a live stream."""
    host = server.token("talk", "host", "Ann")
    # Nobody sends, and a slow machine takes its time.
    assert ask(server, host, "POST", "/v1/streams", {"id": "talk", "hostGraceSeconds": 3600})[0] == 201
    assert ask(server, host, "POST", "/v1/streams/talk/live")[0] == 200
    return host


def write(server: Server, name: str, text: str, key: str | None = None) -> tuple[int, dict[str, Any]]:
    return ask(server, server.token("talk", "viewer", name), "POST", "/v1/streams/talk/comments",
               {"id": key or text.replace(" ", "-"), "text": text})


def write_until(server: Server, name: str, text: str, wanted: int) -> tuple[str, dict[str, Any]]:
    """Somebody else each time: a machine that is busy may be late for an answer, and then the default counts."""
    for attempt in range(20):
        status, answer = write(server, f"{name}{attempt}", text)
        if status == wanted:
            return f"{name}{attempt}", answer
        assert unanswered(server) > 0, (status, answer)
    raise AssertionError(f"{text} was never answered in time")


def write_until_asked(
    pool: ThreadPoolExecutor, server: Server, reviewer: Reviewer, name: str, text: str
) -> tuple[Future[tuple[int, dict[str, Any]]], int]:
    """Somebody else each time: a machine that is busy may not come to ask in the time that there is for an answer.

    Tells how many were in vain before.
    """
    for attempt in range(20):
        author = f"{name}{attempt}"
        writing = pool.submit(write, server, author, text)
        wait_until(lambda: author in reviewer.authors() or writing.done(), 10, "it is asked, or nobody waits any more")
        if author in reviewer.authors():
            return writing, attempt
    raise AssertionError(f"{text} was never asked about in time")


def texts(server: Server, host: str) -> list[str]:
    return [each["text"] for each in ask(server, host, "GET", "/v1/streams/talk/comments")[1]["comments"]]


def reviews(server: Server, outcome: str) -> float:
    return server.metrics()[f'rostrum_reviews_total{{outcome="{outcome}"}}']


def unanswered(server: Server) -> float:
    """The request and the wait for it end after the same 200 ms, and either may be noticed first."""
    return reviews(server, "late") + reviews(server, "failed")


@pytest.mark.parametrize("default", ["allow", "deny"])
def test_the_receiver_decides_in_time_and_the_default_else(logs: Path, reviewer: Reviewer, default: str) -> None:
    server = reviewed_server(logs, reviewer.url, default)
    try:
        host = begin(server)
        author, comment = write_until(server, "bob", "good", 201)
        denied, problem = write_until(server, "eve", "bad", 422)
        assert problem["rule"] == "review-denied"
        # The same request again is the same comment, and nobody is asked again.
        assert write(server, author, "good")[1] == comment
        # What is not the default was answered in time, so that the receiver has got it.
        assert (denied if default == "allow" else author) in reviewer.authors()
        before = unanswered(server)
        # A receiver that says nothing costs no more than its time, and that only those who wait for it.
        begun = time.monotonic()
        with ThreadPoolExecutor() as pool:
            slow, in_vain = write_until_asked(pool, server, reviewer, "cid", "slow")
            before += in_vain
            after = pool.submit(write, server, "dan", "after")
            assert slow.result()[0] == (201 if default == "allow" else 422)
            # This one, too, may be late on a machine that is busy.
            assert after.result()[0] == 201 or unanswered(server) > before + 1
        print(f"a comment that nobody answers for took {time.monotonic() - begun:.3f} s")
        assert unanswered(server) > before
        said = [text for text in texts(server, host) if text in ("slow", "after")]
        wanted = ["slow"] * (in_vain + 1) + ["after"]
        assert said == wanted if default == "allow" else "slow" not in said, "in the order in which they came"
        assert reviews(server, "allowed") >= 1 or default == "allow"
        reviewer.release.set()
        wait_until(lambda: server.metrics()["rostrum_reviews_under_way"] == 0, 10, "its place is free again")
        # A question for which nobody waits any more may come late to the receiver, or not at all.
        assert reviewer.authors().count(author) <= 1
    finally:
        server.stop()


def test_a_receiver_that_hangs_or_is_not_there_stops_nobody(logs: Path) -> None:
    # It takes connections, as the kernel does for it, and never reads.
    with socket.create_server(("127.0.0.1", 0), backlog=128) as dead:
        server = reviewed_server(logs, f"http://127.0.0.1:{dead.getsockname()[1]}/", "allow")
        try:
            host = begin(server)
            with ThreadPoolExecutor(40) as pool:
                answers = list(pool.map(lambda number: write(server, f"v{number}", f"c{number}"), range(120)))
            assert all(status == 201 for status, _ in answers), answers
            assert len(texts(server, host)) == 50
            count = sum(reviews(server, outcome) for outcome in ("late", "failed", "skipped"))
            assert count == 120 and reviews(server, "allowed") == 0, server.metrics()
            # Who is not asked is nobody's business: taps and settings go on at once.
            assert ask(server, host, "POST", "/v1/streams/talk/reactions", {"reactions": {"heart": 1}})[0] == 200
        finally:
            server.stop()


def test_a_denied_comment_is_told_to_its_author_alone(
    chromium: Browser, firefox: Browser, logs: Path, reviewer: Reviewer
) -> None:
    server = reviewed_server(logs, reviewer.url, "deny")
    try:
        go_live(chromium, server, "talk", source="test")
        writer, reader = open_watch(firefox, server, "talk"), open_watch(chromium, server, "talk")
        submit(writer, "a bad word")
        say_name(writer, "Vera")
        writer.wait_for(
            "() => /comment wasn.t approved/.test(document.body.innerText)", what="the author is told")
        assert writer.evaluate("() => document.querySelector('.composer input').value") == "a bad word"
        # Until it is answered in time, which a machine that is busy may not do.
        writer.wait_for(
            f"""text => {{
                if (({IS_SHOWN})(text)) return true;
                const line = document.querySelector('.composer');
                if (line.ariaBusy === 'true') return false;
                line.querySelector('input').value = text;
                line.requestSubmit();
                return false;
            }}""", "a good word", seconds=30, what="it is written")
        for page in (writer, reader):
            wait_for_comment(page, "a good word")
            assert not page.evaluate(IS_SHOWN, "a bad word")
        writer.screenshot(logs / "review-denied.png")
    finally:
        server.stop()

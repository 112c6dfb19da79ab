"""The examples of the API document, asked of a real server one after the other, so that each makes sense when it comes.

Each operation is asked with the example of its parameters and of its body, by whom `x-token` says; the answer has the
status that is described, and the members and types of the example. Only what a server makes up (sessions, tags,
recordings, files of HLS) is put in. `/docs` shows the same examples.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import quote

import pytest
from PIL import Image
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from drivers import wait_until
from drivers.patience import patient
from rtmp import Encoder
from server import ROOT, Server, free_port

DOCUMENT = json.loads((ROOT / "Sources" / "Gateway" / "OpenAPI" / "openapi.json").read_text())
#: Documents, of which the example shows the beginning only.
PARTIAL = {"openAPI", "asyncAPI"}
#: Lines that are read of what does not end by itself.
ENDLESS = {"playEvents": 9}
PEOPLE = {"host": ("Ann", ()), "viewer": ("Bob", ()), "shop": ("Shop", ("give-gifts",)), "admin": ("Op", ())}


@dataclass
class Step:
    """One operation, and what differs from its examples."""

    operation: str
    status: int = 200
    #: Parameters by name: texts, or what makes them.
    given: dict[str, Any] = field(default_factory=dict)
    #: Takes from the answer what later steps need.
    keep: Callable[[Story, dict[str, str], Any], None] | None = None
    #: Asked again until the answer is so: it is about what happens by itself.
    until: Callable[[Any], bool] | None = None
    body: bytes | None = None
    content_type: str = ""
    #: Who asks, where that is not whom the document names.
    by: str = ""


def resolved(value: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in value:
        target: Any = DOCUMENT
        for part in value["$ref"].split("/")[1:]:
            target = target[part]
        value = target
    return value


def operations() -> dict[str, tuple[str, str, dict[str, Any], list[dict[str, Any]]]]:
    """Method, path, description and parameters, by name."""
    found = {}
    for path, item in DOCUMENT["paths"].items():
        for method, operation in item.items():
            if method != "parameters":
                parameters = [resolved(one) for one in item.get("parameters", []) + operation.get("parameters", [])]
                found[operation["operationId"]] = (method.upper(), path, operation, parameters)
    return found


OPERATIONS = operations()


class Story:
    """Who asks, and what the server has made up so far."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.made: dict[str, str] = {}
        self.tokens = {
            "rival": server.token("quiz", "host", "Cleo", 3600),
            **{
                role: server.token(
                    "*" if role == "admin" else "talk", role if role != "shop" else "viewer", name, 3600, capabilities)
                for role, (name, capabilities) in PEOPLE.items()
            },
        }

    def ask(self, step: Step) -> tuple[int, dict[str, str], bytes]:
        method, path, operation, parameters = OPERATIONS[step.operation]
        headers, query = {}, []
        for one in parameters:
            name = one["name"]
            value = step.given.get(name, one.get("example") if one["in"] == "path" or one.get("required") else None)
            if callable(value):
                value = value(self)
            if value is None:
                continue
            if one["in"] == "path":
                path = path.replace("{" + name + "}", quote(str(value), safe=""))
            elif one["in"] == "header":
                headers[name] = str(value)
            else:
                query.append(f"{name}={quote(str(value), safe='')}")
        if role := step.by or operation.get("x-token"):
            headers["Authorization"] = f"Bearer {self.tokens[role]}"
        body = step.body
        content = operation.get("requestBody", {}).get("content", {})
        if content:
            kind = step.content_type or next(iter(content))
            headers["Content-Type"] = kind
            if body is None:
                example = content[kind]["example"]
                body = example.encode() if isinstance(example, str) else json.dumps(example).encode()
        elif method == "POST":
            body = b""
        if lines := ENDLESS.get(step.operation):
            return self.server.beginning(path, lines, headers)
        return self.server.request(method, path + ("?" + "&".join(query) if query else ""), body, headers)

    def run(self, step: Step) -> None:
        if step.until:
            wait_until(lambda: step.until(parsed(self.ask(step)[2])), 20, f"{step.operation} is so")
        status, headers, body = self.ask(step)
        assert status == step.status, (step.operation, status, body)
        self.compare(step, headers, body)
        if step.keep:
            step.keep(self, headers, parsed(body))

    def compare(self, step: Step, headers: dict[str, str], body: bytes) -> None:
        _, _, operation, _ = OPERATIONS[step.operation]
        assert str(step.status) in operation["responses"], f"{step.operation} does not describe {step.status}"
        content = resolved(operation["responses"][str(step.status)]).get("content", {})
        if not content:
            assert not body or step.status == 200, (step.operation, body)
            return
        kind = headers["content-type"].split(";")[0]
        assert kind in content, (step.operation, kind)
        if kind.startswith(("image/", "video/", "application/vnd.tcpdump")):
            assert body
            return
        assert "example" in content[kind], f"{step.operation}: no example of {kind}"
        example, answer = content[kind]["example"], parsed(body)
        if step.operation in PARTIAL:
            assert example.items() <= answer.items()
            return
        differences = compare(example, answer, content[kind].get("schema", {}), "$")
        assert not differences, f"{step.operation}: {differences}"


def parsed(body: bytes) -> Any:
    """JSON, or text where it is none; bytes where it is no text."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return body
    try:
        return json.loads(text)
    except ValueError:
        return text


def required(schema: dict[str, Any]) -> set[str] | None:
    """Members that have to be there; None where that is not said."""
    schema = resolved(schema)
    for choice in schema.get("anyOf", []) + schema.get("oneOf", []) + schema.get("allOf", []):
        if (names := required(choice)) is not None:
            return names
    return set(schema.get("required", [])) if "properties" in schema else None


def inner(schema: dict[str, Any], name: str | None) -> dict[str, Any]:
    """Of a member, or of a list's items."""
    schema = resolved(schema)
    for choice in schema.get("anyOf", []) + schema.get("oneOf", []) + schema.get("allOf", []):
        if found := inner(choice, name):
            return found
    if name is None:
        return schema.get("items", {})
    other = schema.get("additionalProperties", {})
    return schema.get("properties", {}).get(name, other if isinstance(other, dict) else {})


def compare(example: Any, answer: Any, schema: dict[str, Any], path: str) -> list[str]:
    """What is of another shape: null stands for anything that may be absent."""
    if example is None or answer is None:
        return []
    if isinstance(example, dict) and isinstance(answer, dict):
        names = required(schema)
        odd = set(example) ^ set(answer)
        found = [f"{path}.{name} is in one of them" for name in sorted(odd) if names is None or name in names]
        for name in sorted(set(example) & set(answer)):
            found += compare(example[name], answer[name], inner(schema, name), f"{path}.{name}")
        return found
    if isinstance(example, list) and isinstance(answer, list):
        if bool(example) and not answer:
            return [f"{path} is empty"]
        return [fault for one in answer[:20] for fault in compare(example[0], one, inner(schema, None), f"{path}[]")] if example else []
    if isinstance(example, str) and example.startswith("v=0") and isinstance(answer, str):
        kinds = [[line.split(" ")[0] for line in text.splitlines() if line.startswith("m=")] for text in (example, answer)]
        return [] if kinds[0] == kinds[1] else [f"{path} has other m-lines"]
    number = (int, float)
    if isinstance(example, number) and isinstance(answer, number):
        return [] if isinstance(example, bool) == isinstance(answer, bool) else [f"{path} is {answer!r}"]
    return [] if type(example) is type(answer) else [f"{path} is {answer!r}, not like {example!r}"]


def kept(name: str) -> Callable[[Story], str]:
    return lambda story: story.made[name]


def keep_session(story: Story, headers: dict[str, str], _: Any) -> None:
    story.made["session"] = headers["location"].rsplit("/", 1)[1]
    story.made["tag"] = headers["etag"]


def is_playlist(answer: Any) -> bool:
    """What is first asked for is waited for, six seconds at most; a busy machine makes its first segment later."""
    return isinstance(answer, str) and answer.startswith("#EXTM3U")


def keep_recording(story: Story, _: dict[str, str], page: Any) -> None:
    recording = page["recordings"][0]
    story.made.update(
        recording=recording["id"], file=recording["url"].rsplit("/", 1)[1], playlist=recording["hls"].rsplit("/", 1)[1])


def keep_hls_file(story: Story, _: dict[str, str], playlist: str) -> None:
    story.made["hls"] = playlist.split('#EXT-X-MAP:URI="')[1].split('"')[0]


MADE = {"session": kept("session")}


def session_steps(prefix: str, make: Step, extra: list[Step]) -> list[Step]:
    """A session of one of the four kinds, from its offer to its end."""
    make.keep = keep_session
    return [
        make,
        Step(f"{prefix}Session", 204, MADE),
        Step(f"{prefix}Trickle", 204, {**MADE, "If-Match": kept("tag")}),
        *extra,
        Step(f"{prefix}End", 200, MADE),
    ]


def quality_steps(prefix: str) -> list[Step]:
    patch = Step(f"{prefix}Trickle", 200, {**MADE, "If-Match": "*"}, content_type="application/merge-patch+json")
    gate = f"open{prefix[0].upper()}{prefix[1:]}Gate"
    return [patch, Step(f"{prefix}Quality", 200, MADE), Step(f"{prefix}Gate", 200, MADE), Step(gate, 200, MADE)]


def picture() -> bytes:
    data = io.BytesIO()
    Image.new("RGB", (64, 36), "navy").save(data, "JPEG")
    return data.getvalue()


#: Before there is a picture: documents, a stream, and a publisher of the example.
BEGINNING = [
    Step("describeServer"), Step("openAPI"), Step("asyncAPI"), Step("health"), Step("readiness"), Step("metrics"),
    Step("showStatistics"), Step("makeToken", 201), Step("createStream", 201), Step("showStream"), Step("listStreams"),
    Step("editStream"),
    # Nobody sends until the encoder does, which a busy machine starts late.
    Step("editStream", body=b'{"hostGraceSeconds":3600,"dvrSeconds":600}', content_type="application/json"),
    Step("makeLink", 201), Step("drawQRCode"), Step("showIngest"), Step("replaceIngestKey", 201), Step("showPlacement"),
    # Before it is live, so that nothing is sent anywhere.
    Step("addRestream", 201), Step("listRestreams"), Step("showRestream"), Step("removeRestream", 204),
    Step("placeStream"), Step("goLive"), Step("publishPreview", 204),
    *session_steps("publish", Step("publish", 201), []),
    Step("playPreview", 204),
]
#: With an encoder that sends.
WATCHING = [
    *session_steps("play", Step("play", 201, {"wait": 10}), [
        *quality_steps("play"), Step("choosePlayEvents", 201, MADE), Step("playEvents", 200, MADE),
        # The example's player is not connected, so there is nothing to choose but that the server does.
        Step("choosePlayLayer", 200, MADE, body=b'{"mediaId":"1"}'), Step("unchoosePlayLayer", 200, MADE),
    ]),
    Step("listFeed", until=lambda page: len(page["items"]) == 2 and page["items"][0]["preview"]),
    *session_steps("feed", Step("enterFeed", 201, {"stream": "talk"}), [
        *quality_steps("feed"),
        *(Step(name, 200, {"session": kept("session")}) for name in ("peek", "release", "focus")),
    ]),
    Step("previewWebP"), Step("previewJPEG"),
    *(
        Step(f"showHLS{end}", given={"token": lambda story: story.tokens["viewer"]}, until=is_playlist)
        for end in ("", "ByToken")
    ),
    *(
        Step(
            f"showHLSMedia{end}", given={"token": lambda story: story.tokens["viewer"]}, keep=keep_hls_file,
            until=is_playlist)
        for end in ("", "ByToken")
    ),
    *(
        Step(f"showHLSWindow{end}", given={"token": lambda story: story.tokens["viewer"]}, until=is_playlist)
        for end in ("", "ByToken")
    ),
    *(
        Step(f"showHLSFile{end}", given={"token": lambda story: story.tokens["viewer"], "file": kept("hls")})
        for end in ("", "ByToken")
    ),
    Step("choosePausePicture", 204, body=picture(), content_type="image/jpeg"), Step("dropPausePicture", 204),
]
STAGE = [
    Step("renewToken", 200), Step("enter"), Step("raiseHand"), Step("lowerHand"), Step("raiseHand"), Step("arrangeHand"), Step("invite"),
    Step("endInvitation"), Step("invite"), Step("acceptInvitation"), Step("showParticipants"),
    Step("describeSpeaker"), Step("requestMute"),
    *session_steps("join", Step("join", 201), quality_steps("join")),
    Step("leaveStage"),
]
AUDIENCE = [
    Step("editInteraction"), Step("writeComment", 201), Step("listComments"), Step("pinComment", 204), Step("unpinComment", 204),
    Step("react"), Step("openPoll", 201), Step("showPoll"), Step("vote"), Step("closePoll"),
    Step("showCard", 204), Step("removeCard", 204), Step("giveGift"), Step("listGifts"), Step("showRank"),
    Step("silence", 204), Step("showInteraction"), Step("unsilence", 204), Step("deleteComment", 204), Step("showAudit"),
]
DUEL = {"duel": kept("duel")}


def keep_duel(story: Story, _: dict[str, str], duel: Any) -> None:
    story.made["duel"] = duel["id"]


#: The other host sees the invitation once it has come.
IS_INVITED = Step("showDuel", 200, DUEL, by="rival", until=lambda duel: duel.get("state") == "invited")
DUELS = [
    Step("inviteToDuel", 201, keep=keep_duel), IS_INVITED, Step("acceptDuel", 200, DUEL, by="rival"),
    Step("showDuel", 200, DUEL, until=lambda duel: duel.get("state") == "running"),
    # Each stream tells the other what it counted; a rematch is of two who know how it ended.
    Step("leaveDuel", 200, DUEL), Step("showDuel", 200, DUEL, until=lambda duel: duel.get("state") == "over"),
    Step("rematchDuel", 201, DUEL, keep=keep_duel), Step("cancelDuel", 200, DUEL),
    Step("inviteToDuel", 201, keep=keep_duel), IS_INVITED, Step("declineDuel", 200, DUEL, by="rival"),
]
RECORDING = [
    Step("startRecording", 201, keep=lambda story, _, recording: story.made.update(recording=recording["id"])),
    Step("listRecordings", until=lambda page: page["recordings"] and page["recordings"][0]["size"] > 0),
    Step("writeComment", 201, body=b'{"id":"later","text":"Good evening!"}', content_type="application/json"),
    # What is recorded is behind what is live: stopped at once, it would end before that.
    Step("listRecordedComments", 200, {"recording": kept("recording")}, until=lambda page: page["comments"]),
    Step("stopRecording"),
    Step("listRecordings", until=lambda page: page["recordings"][0]["state"] == "ended", keep=keep_recording),
    *(Step(name, status, {"recording": kept(part)}) for name, status, part in [
        ("showRecording", 200, "recording"), ("showRecording", 200, "file"),
        ("listRecordedComments", 200, "recording"),
    ]),
    *(
        Step(f"showRecordedHLS{end}", given={"token": lambda story: story.tokens["viewer"], "recordedFile": kept("playlist")})
        for end in ("", "ByToken")
    ),
    Step("removeRecording", 204, {"recording": kept("recording")}),
    Step("makeClip", 201, by="host"),
]
END = [
    Step(
        "listSessions", given={"state": "live"}, until=lambda page: bool(page["sessions"]),
        keep=lambda story, _, page: story.made.update(session=page["sessions"][0]["id"])),
    Step("showSession", 200, {"session": kept("session")}),
    Step("captureSession", 200, {"session": kept("session"), "seconds": "1"}), Step("endSession", 204, {"session": kept("session")}),
    Step("ban"), Step("showBans"), Step("unban", given={"participant": "eve"}),
    Step("removeParticipant"), Step("revokeLinks"), Step("endStream"),
]
SOCKETS = {"followStream": "/v1/streams/talk/sync", "followFeed": "/v1/feed/sync"}


@pytest.fixture
def story(logs: Path, tmp_path: Path) -> Iterator[Story]:
    rtmp = free_port()
    server = Server(
        logs / "server-examples.log", "--data", str(tmp_path / "data"), "--rtmp", f"127.0.0.1:{rtmp}", "--max-hls", "1",
        "--max-restreams", "1")
    story = Story(server)
    story.made["rtmp"] = f"rtmp://127.0.0.1:{rtmp}/live/talk?token={story.tokens['host']}"
    yield story
    assert server.is_running
    assert server.stop() == 0


def make_second_stream(story: Story) -> None:
    """The one that swipes and invitations go to; nobody sends there."""
    server = story.server
    headers = {"Authorization": f"Bearer {story.tokens['rival']}", "Content-Type": "application/json"}
    for path, body in (("/v1/streams", b'{"title":"Quiz","hostGraceSeconds":3600}'), ("/v1/streams/quiz/live", b"{}")):
        assert server.request("POST", path, body, headers)[0] in (200, 201)


@contextmanager
def attending(story: Story, stream: str, role: str) -> Iterator[None]:
    """Somebody follows a stream, and is there for as long as that; who only asks for something is gone 15 s later."""
    address = story.server.origin.replace("http", "ws") + f"/v1/streams/{stream}/sync?access_token={story.tokens[role]}"
    with connect(address, open_timeout=patient(10), ping_interval=None) as socket:
        socket.recv(patient(10))

        def read() -> None:
            with suppress(ConnectionClosed):
                for _ in socket:
                    pass

        # Who reads nothing does not answer the server either.
        Thread(target=read, daemon=True).start()
        yield


def first_message(server: Server, path: str) -> dict[str, Any]:
    with connect(server.origin.replace("http", "ws") + path, open_timeout=patient(10)) as socket:
        return json.loads(socket.recv(patient(10)))


def test_each_operation_answers_as_its_example(story: Story, logs: Path) -> None:
    asked = {step.operation for part in (BEGINNING, WATCHING, STAGE, AUDIENCE, DUELS, RECORDING, END) for step in part}
    assert asked | set(SOCKETS) == set(OPERATIONS)
    for step in BEGINNING:
        story.run(step)
    make_second_stream(story)
    with Encoder(story.made["rtmp"], logs / "encoder-examples.log", size="320x180", rate=15):
        # Who plays waits ten seconds for it, and a busy machine starts it late.
        wait_until(lambda: len(story.server.json("/v1/streams/talk")["tracks"]) == 2, 20, "the encoder sends both")
        for step in WATCHING:
            story.run(step)
        with attending(story, "talk", "viewer"):
            for step in [*STAGE, *AUDIENCE]:
                story.run(step)
            with attending(story, "quiz", "rival"):
                for step in DUELS:
                    story.run(step)
            for step in RECORDING:
                story.run(step)
            for path in SOCKETS.values():
                assert first_message(story.server, path)["type"] == "snapshot"
            for step in END:
                story.run(step)

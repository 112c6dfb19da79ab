"""What is said as one of the audience on a session's control channel, beside sync sockets and POST, in real browsers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from drivers import Browser, Page, wait_until
from server import Server
from stage import join

LAST = "type => speaker.messages.filter(each => each.type === type).at(-1) ?? null"


def post(server: Server, token: str, path: str, body: Any, method: str = "POST") -> dict[str, Any]:
    status, _, answer = server.request(
        method, path, json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {token}"})
    assert status in (200, 201), (status, answer)
    return json.loads(answer)


def say(page: Page, message: dict[str, Any]) -> None:
    page.evaluate("message => speaker.control.send(JSON.stringify(message))", message)


def wait_for_message(page: Page, condition: str, what: str) -> dict[str, Any]:
    """One that was told, where the expression `each` is so."""
    page.wait_for(f"() => speaker.messages.some(each => {condition})", seconds=15, what=what)
    return page.evaluate(f"() => speaker.messages.find(each => {condition})")


@pytest.mark.parametrize("name", ["chromium", "firefox"])
def test_a_viewer_talks_on_the_channel_that_there_is(
    request: pytest.FixtureRequest, chromium: Browser, server: Server, stream: str, name: str
) -> None:
    ann = join(chromium, server, stream, "ann", "host")
    bob = join(request.getfixturevalue(name), server, stream, "bob", "viewer", audio=1, video=1, publishes=False)
    say(ann, {"type": "follow"})
    say(bob, {"type": "follow"})
    for page in (ann, bob):
        snapshot = wait_for_message(page, "each.type === 'interaction-snapshot'", "all that was said is told")
        assert snapshot["interaction"]["comments"] == []
    comment = {"id": "c-1", "text": "Good evening \u202e<b>all</b>"}
    say(bob, {"type": "comment", **comment})
    told = wait_for_message(bob, "each.type === 'commented'", "the comment is kept")["comment"]
    assert (told["number"], told["text"], told["author"]) == (1, "Good evening <b>all</b>", "bob")
    heard = wait_for_message(ann, "each.type === 'interaction' && each.comments", "the host hears it")["comments"]
    assert heard == [told]
    # The same id is one comment, whichever way it comes.
    again = post(server, server.token(stream, "viewer", "Bob"), f"/v1/streams/{stream}/comments", comment)
    assert again == told
    say(bob, {"type": "react", "reactions": {"heart": 7}})
    wait_for_message(ann, "each.type === 'interaction' && each.reactions?.heart.total === 7", "taps are told")
    poll = post(server, server.token(stream, "host", "Ann"), f"/v1/streams/{stream}/polls",
                {"question": "Tea?", "options": ["Yes", "No"]})
    wait_for_message(bob, "each.type === 'interaction' && each.poll", "the poll is told")
    say(bob, {"type": "vote", "poll": poll["number"], "options": [1]})
    wait_for_message(bob, "each.type === 'voted' && each.options[0] === 1", "the vote is kept")
    say(bob, {"type": "vote", "poll": poll["number"], "options": [0]})
    refused = wait_for_message(bob, "each.type === 'refused' && each.rule === 'already-voted'", "once an identity")
    assert "id" not in refused
    # A thousand at once cost no more than the budget: some are refused, and the rest are not even looked at.
    bob.evaluate(
        """() => {
            for (let index = 0; index < 1000; index++) {
                speaker.control.send(JSON.stringify({type: 'comment', id: `f-${index}`, text: 'flood'}));
            }
        }""")
    wait_for_message(bob, "each.type === 'refused' && each.rule === 'too-fast' && each.wait >= 1", "it is too fast")
    say(ann, {"type": "comment", "id": "h-1", "text": "Calm down"})
    wait_for_message(ann, "each.type === 'commented'", "others are not held up")
    comments = post(server, server.token(stream, "host", "Ann"), f"/v1/streams/{stream}/polls/{poll['number']}/close", {})
    assert comments["closedAt"]
    taken = bob.evaluate(
        "() => speaker.messages.filter(each => each.comment?.text === 'flood').map(({comment}) => Date.parse(comment.at) / 1000)")
    # Three at once, and one a second for as long as the flood took to come.
    assert len(taken) <= 4 + int(max(taken, default=0) - min(taken, default=0)), taken


def begin_track(page: Page, label: str) -> None:
    page.evaluate(
        """label => {
            const channel = speaker.peer.createDataChannel(label);
            (speaker.sent ??= {})[label] = channel;
            channel.onopen = () => { channel.wasOpen = true; };
            channel.onclose = () => { channel.isClosed = true; };
        }""", label)


def open_track(page: Page, label: str) -> None:
    begin_track(page, label)
    # The server may have closed it again by now.
    page.wait_for("label => speaker.sent[label].wasOpen || speaker.sent[label].isClosed", label, what=f"{label} is open")


def tracks(page: Page) -> list[dict[str, Any]]:
    return page.evaluate(
        "() => speaker.opened.map(({label, protocol, messages}) => ({label, protocol, messages: messages.map(String)}))")


def set_data(server: Server, stream: str, value: str) -> None:
    post(server, server.token(stream, "admin", "root"), f"/v1/streams/{stream}", {"audienceData": value}, "PATCH")


@pytest.mark.parametrize("name", ["chromium", "firefox"])
def test_data_tracks_reach_the_audience_and_come_from_it_where_the_stream_says_so(
    request: pytest.FixtureRequest, chromium: Browser, server: Server, stream: str, name: str
) -> None:
    ann = join(chromium, server, stream, "ann", "host")
    bob = join(request.getfixturevalue(name), server, stream, "bob", "viewer", audio=1, video=1, publishes=False)
    cid = join(chromium, server, stream, "cid", "viewer", audio=1, video=1, publishes=False)
    open_track(ann, "data:quiz")
    begin_track(bob, "data:quiz")
    bob.wait_for("() => speaker.sent['data:quiz'].isClosed", what="one of the audience may not send")
    ann.evaluate("() => speaker.sent['data:quiz'].send('not for all')")
    # What is sent on one connection comes in order: the server has it before it hears of the setting.
    say(ann, {"type": "ping"})
    wait_for_message(ann, "each.type === 'pong'", "the server has what was sent before")
    set_data(server, stream, "receive")

    def is_heard(page: Page) -> bool:
        ann.evaluate("() => speaker.sent['data:quiz'].send('question')")
        return page.evaluate("() => speaker.opened.some(each => each.messages.includes('question'))")

    for page in (bob, cid):
        # Workers hear of the setting a moment later, and who asks before that is not heard: it is asked again until then.
        wait_until(lambda page=page: is_heard(page), 10, "the audience hears")
        assert all("not for all" not in each["messages"] for each in tracks(page))
        assert [(each["label"], each["protocol"]) for each in tracks(page)] == [("data:quiz", "ann")]
    set_data(server, stream, "send")

    def is_passed_on() -> bool:
        open_track(bob, "data:quiz")
        bob.evaluate(
            """() => {
                const channel = speaker.sent['data:quiz'];
                if (channel.readyState === 'open') channel.send('\u0042 \ud83c\udf39');
            }""")
        heard = "() => speaker.opened.some(each => each.protocol === '' && each.messages.length > 0)"
        return wait_until(
            lambda: (ann.evaluate(heard) and "heard") or (bob.evaluate("() => speaker.sent['data:quiz'].isClosed") and "closed"),
            15, "what Bob says is heard, or he may not say it") == "heard"
    # Workers hear of the setting a moment later, and until then close what one of the audience opens.
    wait_until(is_passed_on, 15, "Bob may send")
    for page in (ann, cid):
        page.wait_for("() => speaker.opened.some(each => each.protocol === '' && each.messages.length)", what="all hear what Bob says")
        said = next(each for each in tracks(page) if each["protocol"] == "")
        assert [json.loads(each) for each in said["messages"]] == [{"from": "bob", "text": "B \U0001f339"}]
    # Too long, not text, on a track that nobody has, and far too much.
    open_track(bob, "data:other")
    bob.evaluate(
        """() => {
            speaker.sent['data:quiz'].send('x'.repeat(1025));
            speaker.sent['data:quiz'].send(new Uint8Array([1, 2, 3]));
            speaker.sent['data:other'].send('nobody has it');
            for (let index = 0; index < 500; index++) speaker.sent['data:quiz'].send(`flood ${index}`);
        }""")
    ann.wait_for(
        "() => speaker.opened.find(each => each.protocol === '').messages.some(each => each.includes('flood'))", what="some of it")
    ann.evaluate("() => speaker.sent['data:quiz'].send('enough')")
    for page in (bob, cid):
        page.wait_for("() => speaker.opened.some(each => each.messages.includes('enough'))", what="the stage is heard")
    said = next(each for each in tracks(ann) if each["protocol"] == "")
    assert {each["label"] for each in tracks(ann)} == {"data:quiz"}
    texts = [json.loads(each)["text"] for each in said["messages"]]
    assert all(text.startswith(("B ", "flood")) for text in texts), texts
    assert len(texts) < 100, "five a second, and ten at once"

"""What is written while a stream is recorded is known by the recording's time, and shown as that plays."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

from conftest import LOGS
from aiortc_client import Aiortc
from drivers import DESKTOP, PHONE, Browser, wait_until
from media import check_no_complaints, wait_for_state, watch
from server import Server
from test_pages import assert_fits
from test_recordings import aiortc, grown, keeper, start  # noqa: F401


def ask(server: Server, method: str, path: str, body: Any = None, role: str = "host", name: str = "Ann") -> Any:
    stream = path.split("/")[3]
    status, _, answer = server.request(
        method, path, None if body is None else json.dumps(body).encode(),
        {"Authorization": f"Bearer {server.token(stream, role, name)}", "Content-Type": "application/json"})
    assert status in (200, 201, 204), (status, answer)
    return json.loads(answer) if answer else None


def test_comments_by_the_time_of_a_recording(
    chromium: Browser, aiortc: Aiortc, keeper: Server, stream: str  # noqa: F811
) -> None:
    base = f"/v1/streams/{stream}"
    aiortc.publish(keeper, stream)
    wait_until(lambda: keeper.json(base)["state"] == "live", 20, "it is live")
    early = ask(keeper, "POST", f"{base}/comments", {"id": "c0", "text": "before it began"})
    # The two clocks agree to half a second.
    written_at = datetime.fromisoformat(early["at"])
    wait_until(lambda: (datetime.now(timezone.utc) - written_at).total_seconds() > 1, 20, "that is a second ago")
    recording = start(keeper, stream)
    path = f"{base}/recordings/{recording['id']}/comments"

    def recorded(*texts: str) -> list[dict[str, Any]]:
        """The comments, once as much as they are written at is on the disk, which is behind what is live."""
        def look() -> list[dict[str, Any]] | None:
            comments = keeper.json(path)["comments"]
            return comments if [each["text"] for each in comments] == list(texts) else None
        return wait_until(look, 30, f"{texts} are there")

    grown(keeper, stream, 1)
    ask(keeper, "POST", f"{base}/comments", {"id": "c1", "text": "the first"}, "viewer", "Bob")
    gone = ask(keeper, "POST", f"{base}/comments", {"id": "c2", "text": "not nice"}, "viewer", "Mal")
    ask(keeper, "PUT", f"{base}/silences/eve", {"seconds": 600, "shadow": True})
    ask(keeper, "POST", f"{base}/comments", {"id": "c3", "text": "nobody sees it"}, "viewer", "Eve")
    first = recorded("the first", "not nice")[0]
    grown(keeper, stream, first["at"] / 1_000 + 2)
    ask(keeper, "POST", f"{base}/comments", {"id": "c4", "text": "the second"}, "viewer", "Bob")
    second = recorded("the first", "not nice", "the second")[2]
    whole = grown(keeper, stream, second["at"] / 1_000 + 2)
    ask(keeper, "DELETE", f"{base}/comments/{gone['number']}")
    ask(keeper, "POST", f"{base}/end")
    wait_until(lambda: keeper.json(f"{base}/recordings/{recording['id']}")["state"] == "ended", 20, "it is complete")
    page = keeper.json(path)
    assert [(each["text"], each["name"]) for each in page["comments"]] == [("the first", "Bob"), ("the second", "Bob")]
    assert not page["more"]
    times = [each["at"] / 1_000 for each in page["comments"]]
    assert 0 <= times[0] < times[1] < whole["duration"], times
    # As far apart as they were written.
    written = {each["id"]: datetime.fromisoformat(each["at"]) for each in keeper.json(f"{base}/comments")["comments"]}
    assert abs((written["c4"] - written["c1"]).total_seconds() - (times[1] - times[0])) < 0.01
    one = keeper.json(f"{path}?limit=1")
    assert [each["text"] for each in one["comments"]] == ["the first"] and one["more"]
    rest = keeper.json(f"{path}?limit=1&after={one['comments'][0]['number']}")
    assert [each["text"] for each in rest["comments"]] == ["the second"] and not rest["more"]
    assert keeper.request("GET", f"{path}?limit=201")[0] == 422
    assert keeper.request("GET", f"{base}/recordings/nothing/comments")[0] == 404

    # After a restart they are there as before.
    keeper.stop()
    keeper.start()
    assert keeper.json(path) == page
    viewer = watch(chromium, keeper, stream)
    wait_for_state(viewer, "ended")
    viewer.wait_for("() => document.getElementById('playback').duration > 0", seconds=20, what="the recording is there")

    def shows(at: float, *texts: str) -> None:
        viewer.evaluate("at => { document.getElementById('playback').currentTime = at; }", at)
        viewer.wait_for(
            """texts => JSON.stringify([...document.querySelectorAll('.spoken li span')].map(each => each.textContent))
                === JSON.stringify(texts)""", list(texts), seconds=20, what=f"at {at} s there is {texts}")

    shows(times[1] + 0.1, "the first", "the second")
    for name, size in (("phone", PHONE), ("desktop", DESKTOP)):
        viewer.resize(size)
        assert_fits(viewer)
        viewer.screenshot(LOGS / f"recorded-comments-{name}.png")
    shows(0)
    shows((times[0] + times[1]) / 2, "the first")
    # And as it plays.
    viewer.evaluate("at => { document.getElementById('playback').currentTime = at; }", (times[0] + times[1]) / 2)
    viewer.evaluate("() => { const v = document.getElementById('playback'); v.muted = true; v.play(); }")
    # A few seconds are left of it: where nobody looks for so long it has ended, and is paused by that.
    viewer.wait_for("() => { const v = document.getElementById('playback'); return !v.paused || v.ended; }", what="it plays")
    viewer.wait_for("() => document.querySelectorAll('.spoken li').length === 2", seconds=30, what="the second is shown")
    check_no_complaints(viewer)

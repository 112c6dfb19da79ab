"""Operators decide what comes first in the feed: by the weights the server is started with, and stream by stream."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from drivers import wait_until
from drivers.patience import patient
from server import Server
from websockets.sync.client import ClientConnection, connect

NAMES = ["s1", "s2", "s3", "s4"]


@pytest.fixture
def server(logs: Path, tmp_path: Path) -> Iterator[Server]:
    """Remembers, and orders by age alone until somebody is pinned or boosted: streams that began later come first."""
    server = Server(
        logs / "server-feed-order.log", "--data", str(tmp_path / "data"), "--secret",
        "a secret that outlives a restart, of course", "--workers", "1", "--tcp", "off",
        "--feed-viewers-weight", "0", "--feed-age-weight", "1000", "--feed-boost-weight", "100")
    try:
        yield server
    finally:
        server.stop()


def ask(server: Server, who: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {who}", "Content-Type": "application/json"}
    status, _, answer = server.request(
        method, path, None if body is None else json.dumps(body).encode(), headers)
    return status, json.loads(answer) if answer else None


def place(server: Server, admin: str, stream: str, **placement: Any) -> dict[str, Any]:
    status, answer = ask(server, admin, "PATCH", f"/v1/streams/{stream}/placement", placement)
    assert status == 200, answer
    return answer


def order(server: Server) -> list[str]:
    return [item["id"] for item in server.json("/v1/feed")["items"]]


def wait_for_order(server: Server, wanted: list[str]) -> None:
    """The feed hears of streams a moment after they are told of."""
    wait_until(lambda: order(server) == wanted, 20, f"the order is {wanted}")


def next_change(socket: ClientConnection) -> dict[str, Any]:
    """What followers are told next."""
    while True:
        message = json.loads(socket.recv(timeout=patient(20)))
        if message["type"] != "heartbeat":
            return message


def test_an_operator_moves_a_stream_ahead_and_everybody_sees_it(server: Server) -> None:
    admin, host = server.token("*", "admin", "Root"), server.token("s1", "host")
    with connect(f"ws://127.0.0.1:{server.http_port}/v1/feed/sync") as socket:
        assert next_change(socket)["items"] == []
        for name in NAMES:
            token = server.token(name, "host")
            assert ask(server, token, "POST", "/v1/streams", {"id": name, "hostGraceSeconds": 600})[0] == 201
            assert ask(server, token, "POST", f"/v1/streams/{name}/live")[0] == 200
            assert next_change(socket)["added"][0]["item"]["id"] == name
        began = order(server)
        assert sorted(began) == NAMES
        *others, last = began

        # By more than a second's worth of age.
        assert place(server, admin, last, boost=5) == {"pinned": None, "boost": 5}
        change = next_change(socket)
        # That it moved, and nothing else: why, is the operator's affair.
        assert set(change) == {"type", "version", "moved"} and change["moved"] == [{"id": last, "after": None}]
        assert order(server) == [last, *others]

        place(server, admin, others[2], pinned=1)
        assert next_change(socket)["moved"] == [{"id": others[2], "after": None}]
        place(server, admin, others[1], pinned=7)
        assert next_change(socket)["moved"] == [{"id": others[1], "after": others[2]}]
        placed = [others[2], others[1], last, others[0]]
        assert order(server) == placed

        # Not by hosts, of their own streams or of others, nor into nowhere.
        for method, body in (("PATCH", {"pinned": 0}), ("GET", None)):
            status, problem = ask(server, host, method, "/v1/streams/s1/placement", body)
            assert (status, problem["rule"]) == (403, "not-operator")
            assert ask(server, host, method, "/v1/streams/s2/placement", body)[0] == 403
        status, problem = ask(server, admin, "PATCH", "/v1/streams/s1/placement", {"boost": 1_001})
        assert (status, problem["field"]) == (422, "boost")
        assert ask(server, admin, "PATCH", "/v1/streams/s9/placement", {"boost": 1})[0] == 404

    # What the operator was answered outlives the server.
    os.kill(server.pid, signal.SIGKILL)
    server.stop()
    server.start()
    wait_for_order(server, placed)
    assert ask(server, admin, "GET", f"/v1/streams/{others[1]}/placement") == (200, {"pinned": 7, "boost": 0})
    place(server, admin, others[2], pinned=None)
    place(server, admin, last, boost=0)
    wait_for_order(server, [others[1], *(name for name in began if name != others[1])])

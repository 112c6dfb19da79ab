"""Every operation of the API document, with made-up requests: the server answers as the document says, and never with a 5xx.

Schemathesis makes the requests of the document, good and bad ones, always the same; `ROSTRUM_API_EXAMPLES` says how
many for each operation (default 12).
"""

from __future__ import annotations

import http.client
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from drivers.patience import patient
from server import ROOT, Server

EXAMPLES = int(os.environ.get("ROSTRUM_API_EXAMPLES", "12"))
OFFERS = sorted((ROOT / "Tests" / "Fixtures" / "Offers").glob("*.sdp"))
CHECKS = [
    not_a_server_error, status_code_conformance, content_type_conformance, response_headers_conformance,
    response_schema_conformance,
]
#: Who is in the streams; requests speak of them more often than of strangers.
PEOPLE = ["ann", "bob", "eve/2", "zoë"]

CONFIGURATION = schemathesis.Config.from_dict({
    "seed": 7,
    "phases": {"coverage": {"unexpected-methods": []}},
})
schema = schemathesis.openapi.from_path(
    ROOT / "Sources" / "Gateway" / "OpenAPI" / "openapi.json", config=CONFIGURATION)


@schemathesis.serializer("application/sdp", "application/trickle-ice-sdpfrag")
def text(_: schemathesis.SerializationContext, value: object) -> bytes:
    """Mostly an offer that some client made: nothing made up comes near one."""
    given = value if isinstance(value, str) else json.dumps(value)
    number = zlib.crc32(given.encode(errors="replace"))
    if number % 4 == 0:
        return given.encode(errors="replace")
    return OFFERS[number % len(OFFERS)].read_bytes()


class Streams:
    """A stream with people in it for each operation, so that none of them ends another's."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._made: set[str] = set()

    def of(self, operation: str) -> str:
        if operation not in self._made:
            self._made.add(operation)
            self._make(operation)
        return operation

    def _make(self, stream: str) -> None:
        body = json.dumps({"id": stream}).encode()
        self._post("/v1/streams", self._server.token(stream), body)
        for number, person in enumerate(PEOPLE[1:]):
            token = self._server.token(stream, "speaker" if number == 0 else "viewer", person)
            self._post(f"/v1/streams/{stream}/participants", token)
            if number > 0:
                self._post(f"/v1/streams/{stream}/hands", token)

    def _post(self, path: str, token: str, body: bytes | None = None) -> None:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        status, _, answer = self._server.request("POST", path, body or b"", headers)
        assert status in (200, 201), (path, status, answer)


@pytest.fixture(scope="module")
def api(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Streams]]:
    server = Server(logs / "server-api.log", "--data", str(tmp_path_factory.mktemp("api") / "data"))
    yield server, Streams(server)
    assert server.is_running, "the server died"
    assert server.stop() == 0


@schema.parametrize()
@settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck))
def test_the_server_answers_as_its_document_says(case: schemathesis.Case, api: tuple[Server, Streams]) -> None:
    server, streams = api
    place_in_a_stream(case, streams)
    token = server.token("*", "admin", "ann")
    if has_control_characters([case.path_parameters, case.query]):
        # Malformed before any operation is asked, which then cannot have documented it; libwebsockets may hang up.
        try:
            answer = case.call(base_url=server.origin, headers={"Authorization": f"Bearer {token}"}, timeout=patient(10))
        except requests.ConnectionError:
            assert server.request("GET", "/healthz")[0] == 200
        else:
            assert answer.status_code < 500
        return
    case.call_and_validate(
        base_url=server.origin, headers={"Authorization": f"Bearer {token}"}, checks=CHECKS, timeout=patient(10))


@pytest.mark.parametrize("path", [
    "/v1/streams/a%00b", "/v1/streams/%00b", "/v1/streams/a%0d%0aX-Y:%20z", "/v1/streams/%ff", "/v1/streams/%c0%af",
    "/v1/streams?host=%00", "/v1/streams/a%01b", "/whep/a%00b", "/watch/%00x", "/v1/streams/%zz", "/v1/streams?host=%z",
])
def test_odd_addresses_are_refused(api: tuple[Server, Streams], path: str) -> None:
    """By us, by libwebsockets with a page of its own, or by a connection that ends; and the next client is served."""
    connection = http.client.HTTPConnection("127.0.0.1", api[0].http_port, timeout=patient(10))
    # Kept alive, so that the second is not the first of its connection.
    connection.request("GET", "/healthz")
    healthy = connection.getresponse()
    healthy.read()
    assert healthy.status == 200
    connection.request("GET", path)
    try:
        answer = connection.getresponse()
        body = answer.read()
    except (http.client.RemoteDisconnected, ConnectionResetError):
        pass
    else:
        assert answer.status in (400, 403, 404, 422), (answer.status, body)
        if answer.status != 403:
            assert answer.getheader("Content-Type") == "application/problem+json"
            assert json.loads(body)["status"] == answer.status
    connection.close()
    assert api[0].request("GET", "/healthz")[0] == 200


def place_in_a_stream(case: schemathesis.Case, streams: Streams) -> None:
    """Three times in four, speak of a stream and a person that are there."""
    parameters = case.path_parameters
    number = zlib.crc32(repr(sorted(parameters.items())).encode())
    if number % 4 == 0:
        return
    if "stream" in parameters:
        parameters["stream"] = streams.of(case.operation.definition.raw["operationId"])
    if "participant" in parameters:
        parameters["participant"] = PEOPLE[number // 4 % len(PEOPLE)]


def has_control_characters(value: object) -> bool:
    """In an address they are a malformed request to libwebsockets, before any route is asked."""
    if isinstance(value, dict):
        return has_control_characters([*value.keys(), *value.values()])
    if isinstance(value, list | tuple):
        return any(has_control_characters(item) for item in value)
    return isinstance(value, str) and any(ord(letter) < 32 or ord(letter) == 127 for letter in unquote(value))

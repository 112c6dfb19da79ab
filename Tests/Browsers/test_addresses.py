"""Where the server listens for media, and what it says of that when it starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from drivers.process import Process
from server import binary, free_port


@pytest.mark.parametrize("ip, is_warned", [("127.0.0.1", True), ("0.0.0.0", False)])
def test_a_start_warns_when_only_some_browsers_can_connect(logs: Path, ip: str, is_warned: bool) -> None:
    http, udp = free_port(), free_port()
    log = logs / f"server-at-{ip}.log"
    process = Process(
        [
            str(binary()), "serve", "--dev", "--workers", "1", "--http", f"127.0.0.1:{http}", "--udp", f"{ip}:{udp}",
        ],
        log, r"^ready http=", 15)
    assert process.stop() == 0
    warnings = [line for line in log.read_text().splitlines() if "only-loopback" in line]
    assert len(warnings) == is_warned
    if is_warned:
        assert "Firefox" in warnings[0] and f"set --udp 0.0.0.0:{udp}" in warnings[0]

"""`Tools/sync-bench` counts every change at every client of a running server, and every command's answer."""

from __future__ import annotations

import json
import subprocess
import sys

from server import ROOT, Server


def test_every_follower_sees_every_change(server: Server) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "Tools" / "sync-bench"), "--clients", "50", "--rounds", "10",
         "--pid", str(server.pid), server.origin],
        capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert result["connected"] == 50 and result["complete"] == 10
    assert 0 < result["first_p50_ms"] <= result["p50_ms"] <= result["p95_ms"]


def test_every_command_is_answered(server: Server) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "Tools" / "sync-bench"), "--senders", "8", "--seconds", "1", server.origin],
        capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["commands_a_second"] > 20

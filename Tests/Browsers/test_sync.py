"""`sfu-bench sync` counts every change at every client of a running server, `Tools/sync-bench` every command's answer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

from drivers.patience import patient
from server import ROOT, Server, binary

#: Measured; or void, which a busy machine may cause and which says nothing against the tool.
MEASURED, VOID = 0, 3


def follow(server: Server, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(binary().with_name("sfu-bench")), "sync", server.origin, "--quiet", "--json", "-", "--warm-up", "200ms",
         *arguments],
        capture_output=True, text=True, timeout=patient(90))


def test_every_follower_sees_every_change(server: Server) -> None:
    done = follow(server, "--clients", "50", "--sample", "5", "--commands", "10", "--hold", "1s")
    assert done.returncode in (MEASURED, VOID), done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["connected"] == 50 and report["lost"] == report["failed"] == 0
    assert report["complete"] == report["commands"] == 10
    assert report["seen"]["count"] == 500 and report["sample"]["count"] == 50
    assert 0 < report["seen"]["p50"] <= report["seen"]["p95"] <= report["seen"]["p99"] <= report["seen"]["maximum"]
    assert 0 < report["arrived"]["p50"] <= report["seen"]["p50"]
    assert report["first"]["p50"] <= report["last"]["p50"]
    assert report["bytesPerClient"] is not None and report["microsecondsPerChange"] > 0
    assert (done.returncode == VOID) == report["verdict"]["isVoid"]


def test_no_follower_of_many_is_forgotten(server: Server) -> None:
    """The server serves some of them at a time; whoever has something to hear meanwhile must get a turn without a call."""
    done = follow(server, "--clients", "900", "--sample", "5", "--commands", "60", "--pause", "10ms")
    assert done.returncode in (MEASURED, VOID), done.stdout + done.stderr
    assert json.loads(done.stdout)["complete"] == 60, done.stdout


def test_lost_followers_fail_the_run(logs) -> None:
    server = Server(logs / "server-sync-lost.log")
    run = subprocess.Popen(
        [str(binary().with_name("sfu-bench")), "sync", server.origin, "--clients", "5", "--sample", "0", "--commands",
         "1", "--hold", "8s", "--warm-up", "0", "--json", "-"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stderr is not None
    for line in run.stderr:
        if line.startswith("holding"):
            break
    # At once: a polite end takes seconds, and on a busy machine longer than they are held.
    os.kill(server.pid, signal.SIGKILL)
    out, _ = run.communicate(timeout=patient(60))
    server.stop()
    assert run.returncode == 1
    report = json.loads(out)
    assert report["lost"] == 5 and report["verdict"]["failures"] == ["5 clients were lost"]


def test_every_command_is_answered(server: Server) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "Tools" / "sync-bench"), "--senders", "8", "--seconds", "1", server.origin],
        capture_output=True, text=True, timeout=patient(60))
    assert done.returncode == 0, done.stdout + done.stderr
    # Of each of the eight one at least; how many there is time for is the machine's.
    assert json.loads(done.stdout)["commands"] >= 8

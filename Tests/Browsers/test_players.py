"""Players that are not browsers: GStreamer's webrtcbin and Pion."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from drivers import Browser
from drivers.patience import patient
from media import go_live
from server import Server

HERE = Path(__file__).parent
GO_PACKAGES = "/usr/share/gocode"
#: Of a player, in whole seconds.
LIMIT = str(round(patient(25)))


def run(command: list[str], seconds: float = 40, **options) -> dict:
    result = subprocess.run(command, capture_output=True, text=True, timeout=patient(seconds), **options)
    assert result.returncode == 0, f"{command}: {result.returncode}\n{result.stdout}\n{result.stderr[-3000:]}"
    return json.loads(result.stdout.splitlines()[-1])


@pytest.fixture(scope="session")
def system_python() -> str:
    """Debian's own Python, which has the bindings that a venv does not see."""
    python = "/usr/bin/python3"
    probe = (
        "import gi; gi.require_version('GstWebRTC', '1.0'); from gi.repository import Gst, GstWebRTC; Gst.init(None);"
        "missing = [n for n in ('webrtcbin', 'nicesrc', 'vp8dec', 'opusdec', 'rtpvp8depay')"
        " if not Gst.ElementFactory.find(n)]; assert not missing, missing")
    result = subprocess.run([python, "-c", probe], capture_output=True, text=True, timeout=patient(30))
    if result.returncode != 0:
        pytest.skip(f"GStreamer's webrtcbin or its Python is missing: {result.stderr.strip().splitlines()[-1]}")
    return python


@pytest.fixture(scope="session")
def pion_player(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("go") or not Path(GO_PACKAGES, "src/github.com/pion/webrtc").exists():
        pytest.skip("golang-go or golang-github-pion-webrtc.v3-dev is not installed")
    # Debian's packages lack the `/v3` of their import paths; Go finds them in spite of that for code which lies
    # in a GOPATH beside a go.mod ("minimal module compatibility", `go help gopath`).
    workspace = tmp_path_factory.mktemp("go")
    package = workspace / "src" / "player"
    package.mkdir(parents=True)
    shutil.copy(HERE / "pion" / "main.go", package)
    (package / "go.mod").write_text("module player\n")
    built = subprocess.run(
        ["go", "build", "-o", "player", "."], capture_output=True, text=True, timeout=patient(300), cwd=package,
        env={**os.environ, "GO111MODULE": "off", "GOPATH": f"{workspace}:{GO_PACKAGES}", "GOFLAGS": "-p=2"})
    assert built.returncode == 0, built.stderr
    return package / "player"


def test_gstreamer_plays_a_browser(chromium: Browser, server: Server, stream: str, system_python: str) -> None:
    go_live(chromium, server, stream, codec="vp8")
    seen = run([system_python, str(HERE / "gst_player.py"), f"{server.origin}/whep/{stream}?wait=20", "60", LIMIT])
    assert seen["codec"] == "VP8"
    assert seen["width"] >= 160
    assert seen["samples"] > 0


def test_pion_plays_a_browser(chromium: Browser, server: Server, stream: str, pion_player: Path) -> None:
    go_live(chromium, server, stream, codec="vp8")
    seen = run([str(pion_player), f"{server.origin}/whep/{stream}?wait=20", "60", LIMIT])
    assert seen["codec"] == "VP8"
    assert seen["gaps"] == 0

"""The declarations of types that the server has beside its modules: they say what is there, and TypeScript takes them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from drivers.patience import patient
from server import ROOT, Server

HERE = Path(__file__).parent
ASSETS = ROOT / "Sources" / "Gateway" / "Web" / "assets"
MODULES = ["rostrum-player", "session", "stage-api", "stage-session", "story-feed", "whep"]

#: What an app writes. A line that says `@ts-expect-error` is one that the declarations have to refuse.
APP = """
import { RostrumPlayer } from "./assets/rostrum-player.js";
import { SignallingError } from "./assets/session.js";
import { StageAPI } from "./assets/stage-api.js";
import { joinStage } from "./assets/stage-session.js";
import { StoryFeed, Swipe, decodeBlurHash } from "./assets/story-feed.js";
import { play } from "./assets/whep.js";

const player: RostrumPlayer = document.createElement("rostrum-player");
player.src = "https://host/watch/demo";
player.quality = "sound";
player.strings = { live: "En direct" };
player.addEventListener("statechange", ({ detail }) => detail.previous === "live" && player.play());
player.addEventListener("error", ({ detail }) => detail.reason === "token-needed" && (player.token = "…"));
player.addEventListener("click", ({ clientX }) => clientX + player.volume);
// @ts-expect-error there is no such quality
player.quality = "best";
// @ts-expect-error nobody sets it from outside
player.state = "live";
// @ts-expect-error it says nothing of that name
player.strings = { lively: "En direct" };

export async function main(media: MediaStream): Promise<void> {
  try {
    const session = await play({ endpoint: "/whep/demo", onTrack: (track) => media.addTrack(track) });
    await session.prefer({ maxHeight: 360 });
    // @ts-expect-error it is asked for what it takes
    await play({ onTrack: () => {} });
  } catch (error) {
    if (error instanceof SignallingError && error.rule === "banned") return;
  }
  const stage = await joinStage({ media, endpoint: "/v1/streams/demo/sessions", token: "…" });
  stage.show("bob", 360);
  const { recordings } = await new StageAPI("demo", "viewer").recordings();
  recordings.map(({ url, duration }) => (url ?? "") + duration.toFixed());
  const feed = new StoryFeed({ origin: "https://host", preload: "on-swipe" });
  feed.addEventListener("turn", ({ detail }) => feed.story(detail.to)?.title);
  new Swipe({ peek: (way) => feed.peek(way), commit: (way) => feed.commit(way), cancel: () => feed.cancel() });
  decodeBlurHash("…", 32, 18).length;
}
"""


@pytest.fixture(scope="module")
def typescript() -> str:
    if not shutil.which("tsc"):
        pytest.skip("node-typescript is not installed")
    return "tsc"


def run(*command: str | Path) -> str:
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=patient(60))
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_they_name_what_the_modules_export_and_nothing_else(typescript: str) -> None:
    assert {path.name.removesuffix(".d.ts") for path in ASSETS.rglob("*.d.ts")} == set(MODULES)
    assert run("node", HERE / "declarations.js", ASSETS, *MODULES) == ""


def test_what_is_missing_on_either_side_is_found(typescript: str, tmp_path: Path) -> None:
    (tmp_path / "both.js").write_text("export class A extends EventTarget { one() {} #two() {} }\nexport const here = 1;\n")
    (tmp_path / "both.d.ts").write_text(
        "export declare class A extends EventTarget { three(): void }\nexport declare const there: number;\n")
    assert run("node", HERE / "declarations.js", tmp_path, "both").splitlines() == [
        "both: A.three is declared and is not there", "both: there is declared and is not there",
        "both: A.one is there and is not declared", "both: here is there and is not declared",
    ]


def test_an_app_is_checked_against_what_the_server_serves(typescript: str, server: Server, tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    for name in MODULES:
        status, headers, body = server.request("GET", f"/assets/v1/{name}.d.ts")
        assert (status, headers["content-type"]) == (200, "text/plain; charset=utf-8")
        (tmp_path / "assets" / f"{name}.d.ts").write_bytes(body)
    (tmp_path / "app.ts").write_text(APP)
    assert run(
        typescript, "--noEmit", "--strict", "--target", "es2022", "--module", "es2022", "--lib", "es2022,dom,dom.iterable",
        tmp_path / "app.ts") == ""

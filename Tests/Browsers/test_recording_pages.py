"""The host records by a button, everybody is told, and the ended page plays it."""

from __future__ import annotations



from conftest import LOGS
from drivers import DESKTOP, PHONE, Browser, Page, wait_until
from media import check_no_complaints, end_stream, go_live, wait_for_frames, wait_for_state, watch
from server import Server
from test_pages import assert_fits
from test_recordings import grown, keeper, listed  # noqa: F401

#: Mean colour of a video's left edge, where nothing moves: red, green, blue.
EDGE = """selector => {
    const video = document.querySelector(selector);
    if (!video?.videoWidth) return null;
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [32, 32];
    const context = canvas.getContext('2d');
    context.drawImage(video, 0, 0, 32, 32);
    // Of a video whose size is known before its first picture nothing is drawn.
    const [red, green, blue, alpha] = context.getImageData(1, 16, 1, 1).data;
    return alpha ? [red, green, blue] : null;
}"""


def is_shown(page: Page, selector: str) -> bool:
    return page.evaluate("s => document.querySelector(s)?.checkVisibility() ?? false", selector)


def wait_for_mark(page: Page, isOn: bool) -> None:
    page.wait_for(
        "isOn => document.getElementById('recording').checkVisibility() === isOn", isOn,
        what=f"the mark says whether it records: {isOn}")


def plays(page: Page, seconds: float) -> None:
    page.wait_for(
        "from => { const v = document.getElementById('playback'); return !v.error && v.currentTime >= from; }", seconds,
        seconds=30, what=f"{seconds} s are played")


def test_a_host_records_and_the_ended_page_plays_it(
    chromium: Browser, keeper: Server, stream: str  # noqa: F811
) -> None:
    host = go_live(chromium, keeper, stream)
    viewer = watch(chromium, keeper, stream)
    wait_for_state(viewer, "live")
    assert not is_shown(viewer, "#record") and not is_shown(viewer, "#recording")
    seen = viewer.wait_for(EDGE, "#video", what="there is a picture")

    host.click("#record")
    for page in (host, viewer):
        wait_for_mark(page, True)
    assert host.evaluate("() => document.getElementById('record').getAttribute('aria-pressed')") == "true"
    for name, size in (("phone", PHONE), ("desktop", DESKTOP)):
        host.resize(size)
        viewer.resize(size)
        assert_fits(host)
        assert_fits(viewer)
        host.screenshot(LOGS / f"recording-studio-{name}.png")
        viewer.screenshot(LOGS / f"recording-viewer-{name}.png")
    grown(keeper, stream, 3)
    host.click("#record")
    for page in (host, viewer):
        wait_for_mark(page, False)

    # The mark may go before the answer comes, and until then the button does nothing.
    host.wait_for("() => !document.getElementById('record').hasAttribute('aria-busy')", what="the file is complete")
    host.click("#record")
    wait_for_mark(viewer, True)
    grown(keeper, stream, 2)
    wait_for_frames(viewer)
    end_stream(host)
    wait_for_state(viewer, "ended")
    both = wait_until(
        lambda: (all_ := listed(keeper, stream)) and all(each["state"] == "ended" for each in all_) and all_, 15,
        "both recordings are complete")
    assert [each["endReason"] for each in both] == ["stopped", "stream-ended"]

    # Who was there, and who comes later.
    for page in (viewer, watch(chromium, keeper, stream)):
        page.wait_for("() => document.querySelectorAll('.parts li').length === 2", seconds=15, what="both are listed")
        page.wait_for(
            """seconds => Math.abs(document.getElementById('playback').duration - seconds) < 0.2""", both[0]["duration"],
            seconds=15, what="the player tells how long it is")
        for name, size in (("phone", PHONE), ("desktop", DESKTOP)):
            page.resize(size)
            assert_fits(page)
            page.screenshot(LOGS / f"recording-ended-{name}.png")
        page.evaluate("() => document.getElementById('playback').play()")
        plays(page, 1)
        # Whoever looks late finds the next part, which may not have a picture yet.
        colour = page.wait_for(EDGE, "#playback", what="there is a picture")
        assert all(abs(a - b) < 30 for a, b in zip(colour, seen)), (colour, seen)
        assert max(seen) - min(seen) > 60, "a colour that can be told from grey"
        check_no_complaints(page)
    # It can be played from anywhere, and goes on with what came next.
    page.evaluate("end => { document.getElementById('playback').currentTime = end - 0.5; }", both[0]["duration"])
    page.wait_for(
        "url => document.getElementById('playback').src.endsWith(url)", both[1]["url"], seconds=15,
        what="the next part follows")
    plays(page, 0.5)

    # The host finds them too, and may throw one away.
    wait_for_state(host, "ended")
    host.wait_for("() => document.querySelectorAll('#recordings li').length === 2", what="the host sees both")
    host.screenshot(LOGS / "recording-host-ended.png")
    host.click("#recordings li:last-child button")
    host.click("dialog[data-name=delete-recording] [data-value=yes]")
    host.wait_for("() => document.querySelectorAll('#recordings li').length === 1", what="one is gone")
    assert [each["id"] for each in listed(keeper, stream)] == [both[0]["id"]]
    check_no_complaints(host)


def test_without_recordings_the_ended_page_is_as_ever(
    chromium: Browser, keeper: Server, stream: str  # noqa: F811
) -> None:
    with go_live(chromium, keeper, stream) as host, watch(chromium, keeper, stream) as viewer:
        wait_for_state(viewer, "live")
        end_stream(host)
        for page in (viewer, host):
            wait_for_state(page, "ended")
        assert is_shown(viewer, "#state") and not is_shown(viewer, "#playback")
        assert not is_shown(host, "#record") and not is_shown(host, "#recordings")
        check_no_complaints(viewer)


def test_the_settings_say_that_it_records_by_itself(
    chromium: Browser, keeper: Server, stream: str  # noqa: F811
) -> None:
    host = chromium.open(f"{keeper.origin}/live/{stream}?source=test&quality=360&fps=15")
    wait_for_state(host, "ready")
    host.click("#open-backstage")
    host.click("dialog input[name=recording]")
    host.evaluate("() => { document.querySelector('dialog select[name=programme]').value = 'composed'; }")
    host.screenshot(LOGS / "recording-settings.png")
    host.click("dialog[data-name=stream] [data-value=open]")
    wait_for_state(host, "backstage")
    made = keeper.json(f"/v1/streams/{stream}")
    assert (made["recording"], made["programme"]) == ("automatic", "composed")
    # Nobody gave it a title, and yet it has the one that the pages show.
    assert made["title"] == host.text("#name")
    # What is not touched stays.
    host.click("#edit-stream")
    host.evaluate("() => { document.querySelector('dialog input[name=title]').value = 'Talk'; }")
    host.click("dialog[data-name=stream] [data-value=save]")
    host.wait_for("() => rostrum.room.title === 'Talk'", what="the title is changed")
    made = keeper.json(f"/v1/streams/{stream}")
    assert (made["recording"], made["programme"]) == ("automatic", "composed")
    host.click("#go")
    wait_for_state(host, "live")
    wait_for_mark(host, True)
    grown(keeper, stream, 1)
    check_no_complaints(host)

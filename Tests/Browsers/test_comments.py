"""What an audience says and taps: in the players, in the feed and in the studio."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from drivers import DESKTOP, PHONE, Browser, Page
from drivers.page import Viewport
from feed import open_feed, wait_for_story
from media import check_no_complaints, end_stream, go_live, hold_answer, wait_for_state, watch
from server import Server
from test_durability import durable_server
from test_pages import assert_fits, assert_fits_in

#: Text that would do something if it were taken for markup.
MARKUP = "<img src=x onerror=\"globalThis.broken = true\"><b>bold</b> &amp;"

#: Whether a comment is shown as exactly this text.
IS_SHOWN = """text => [...document.querySelectorAll('.comments li p > span:last-child')]
    .some(each => each.textContent === text && each.childElementCount === 0)"""

#: Keeps what the page says for a moment only.
KEEP_MESSAGES = """() => {
    globalThis.messages = [];
    new MutationObserver(changes => {
        for (const {addedNodes} of changes) for (const {textContent} of addedNodes) messages.push(textContent);
    }).observe(document.querySelector('.messages'), {childList: true});
}"""

#: A phone that is held sideways.
SIDEWAYS = Viewport(844, 390)

#: Whether what is not part of the talk is in view and not covered by it, and all options of the poll can be pressed.
IS_FREE = """selector => {
    const box = element => element.getBoundingClientRect();
    const talk = box(document.querySelector('.talk'));
    const hit = element => {
        element.scrollIntoView({block: 'nearest'});
        const {left, top, width, height} = box(element);
        return document.elementFromPoint(left + width / 2, top + height / 2);
    };
    const seen = [...document.querySelectorAll(selector)].filter(each => each.checkVisibility());
    return seen.length > 1 && seen.map(box).every(({left, top, bottom}) => top >= 0 && (bottom <= talk.top || left >= talk.right))
        && [...document.querySelectorAll('.poll .option')].every(option => hit(option)?.closest('.option') === option);
}"""

FORGET_NAME = "() => { if (location.protocol === 'http:') localStorage.clear(); }"


@pytest.fixture(params=["chromium", "firefox"])
def browser(request: pytest.FixtureRequest) -> Browser:
    return request.getfixturevalue(request.param)


def open_watch(browser: Browser, server: Server, stream: str, viewport: Viewport = DESKTOP) -> Page:
    page = browser.open(f"{server.origin}/watch/{stream}", viewport, before_load=FORGET_NAME)
    wait_for_state(page, "live")
    page.wait_for("() => document.querySelector('.composer')?.checkVisibility()", what="there is a line to write in")
    return page


def submit(page: Page, text: str) -> None:
    page.wait_for(
        """text => {
            if (document.querySelector('.composer').ariaBusy === 'true') return false;
            document.querySelector('.composer input').value = text;
            document.querySelector('.composer').requestSubmit();
            return true;
        }""", text, what="what was written before is answered")


def say_name(page: Page, name: str) -> None:
    page.wait_for("() => document.querySelector('dialog[data-name=name]') !== null", what="the name is asked")
    page.evaluate("name => { document.querySelector('dialog[data-name=name] input').value = name; }", name)
    page.click("dialog[data-name=name] [data-value=yes]")


def write(page: Page, text: str, name: str) -> None:
    """Writes a comment, under that name unless the page knows another one."""
    submit(page, text)
    page.wait_for(
        "() => document.querySelector('dialog[data-name=name]') !== null || document.querySelector('.composer input').value === ''",
        what="the name is asked, or the comment is written")
    if page.evaluate("() => document.querySelector('dialog[data-name=name]') !== null"):
        say_name(page, name)


def wait_for_empty_line(page: Page) -> None:
    """Followers may be told of a comment before its author is answered, and the line is emptied after that."""
    page.wait_for("() => document.querySelector('.composer input').value === ''", what="the line is empty for the next one")


def wait_for_comment(page: Page, text: str) -> None:
    page.wait_for(IS_SHOWN, text, what=f"the comment is shown: {text}")


def act_on(page: Page, text: str, action: str) -> None:
    page.wait_for(
        """text => {
            const line = [...document.querySelectorAll('.comments li')].find(each => each.textContent.includes(text));
            const button = line?.querySelector('.act');
            if (!button?.checkVisibility()) return false;
            button.click();
            return true;
        }""", text, what=f"something can be done with {text}")
    page.click(f"dialog[data-name=comment] [data-value={action}]")


def test_a_comment_is_seen_by_all_and_taken_away_by_the_host(
    chromium: Browser, browser: Browser, server: Server, stream: str, logs: Path
) -> None:
    host = go_live(chromium, server, stream)
    writer = open_watch(browser, server, stream)
    reader = open_watch(browser, server, stream, PHONE)
    submit(writer, MARKUP)
    say_name(writer, "Vera")
    for page in (host, writer, reader):
        wait_for_comment(page, MARKUP)
        assert page.evaluate("() => globalThis.broken") is None
    assert "Vera" in reader.text(".comments li")
    wait_for_empty_line(writer)
    # Who came later knows what was said before, and who reads cannot take it away.
    late = open_watch(browser, server, stream)
    wait_for_comment(late, MARKUP)
    assert not reader.evaluate("() => document.querySelector('.comments .act').checkVisibility()")
    write(host, "Welcome!", "Ann")
    wait_for_comment(reader, "Welcome!")
    act_on(host, "Welcome!", "pin")
    reader.wait_for(
        "() => document.querySelector('.pinned-comment').checkVisibility()"
        " && document.querySelector('.pinned-comment').textContent.includes('Welcome!')", what="it is pinned")
    assert_fits(reader)
    reader.screenshot(logs / f"comments-{browser.name}.png")
    act_on(host, "bold", "delete")
    for page in (host, writer, reader, late):
        page.wait_for(f"text => !({IS_SHOWN})(text)", MARKUP, what="the comment is gone")
    check_no_complaints(host, reader, writer, late)


def test_who_scrolls_up_reads_what_was_said_before(chromium: Browser, server: Server, stream: str) -> None:
    headers = {"Authorization": f"Bearer {server.token(stream)}", "Content-Type": "application/json"}
    for path, body in (("", {"id": stream, "hostGraceSeconds": 3600}), (f"/{stream}/live", {})):
        assert server.request("POST", "/v1/streams" + path, json.dumps(body).encode(), headers)[0] in (200, 201)
    for number in range(1, 181):
        token = server.token(stream, "viewer", name=f"guest-{number}")
        status, _, answer = server.request(
            "POST", f"/v1/streams/{stream}/comments", json.dumps({"id": f"c{number}", "text": f"Comment {number}."}).encode(),
            {**headers, "Authorization": f"Bearer {token}"})
        assert status == 201, answer
    with watch(chromium, server, stream) as page:
        lines = "() => [...document.querySelectorAll('.comments li')].map(line => line.textContent.match(/Comment (\\d+)\\./)?.[1])"
        page.wait_for(f"() => ({lines})().at(-1) === '180'", what="the latest comments")
        assert len(page.evaluate(lines)) == 60
        # What is read stays where it is, while more comes above it.
        page.wait_for(
            f"""() => {{
                const list = document.querySelector('.comments');
                if (list.scrollTop > 0) list.scrollTop = 0;
                return ({lines})()[0] === '1';
            }}""", seconds=20, what="the first comment")
        assert page.evaluate(lines) == [str(number) for number in range(1, 181)]
        page.evaluate("() => { const list = document.querySelector('.comments'); list.scrollTop = list.scrollHeight; }")
        page.wait_for(f"() => ({lines})().length === 60", what="the latest alone")


def test_slow_mode_and_silence_are_told(browser: Browser, server: Server, stream: str) -> None:
    host = go_live(browser, server, stream)
    writer = open_watch(browser, server, stream)
    host.evaluate("() => rostrum.room.api.editInteraction({slowMode: 120, words: ['spam']})")
    writer.wait_for(
        "() => document.querySelector('.composer input').placeholder.includes('120')", what="slow mode is told")
    submit(writer, "one")
    say_name(writer, "Vera")
    wait_for_comment(host, "one")
    submit(writer, "two")
    problem = "words => document.querySelector('.comment-problem').textContent.includes(words)"
    writer.wait_for(problem, "Slow mode is on", what="when the next one may come is said")
    assert writer.evaluate("() => document.querySelector('.composer input').value") == "two", "it is not lost"
    host.evaluate("() => rostrum.room.api.editInteraction({slowMode: 0})")
    submit(writer, "buy spam")
    writer.wait_for(problem, "a word that the host doesn't allow", what="an unwanted word is refused")
    host.evaluate(KEEP_MESSAGES)
    act_on(host, "one", "silence")
    host.click("dialog[data-name=silence] [data-value='60']")
    host.wait_for("() => messages.some(text => text.includes('can’t comment'))", what="it is done")
    submit(writer, "three")
    writer.wait_for(problem, "silenced you", what="being silenced is told")
    host.evaluate("() => rostrum.room.api.editInteraction({comments: false, reactions: []})")
    for page in (host, writer):
        page.wait_for(
            "() => !document.querySelector('.composer').checkVisibility()"
            " && !document.querySelector('.reaction')?.checkVisibility()", what="all of it is switched off")


def test_hearts_agree_everywhere(
    chromium: Browser, firefox: Browser, server: Server, stream: str, logs: Path
) -> None:
    host = go_live(chromium, server, stream)
    pages = [open_watch(chromium, server, stream), open_watch(firefox, server, stream, PHONE)]
    for page in pages:
        for _ in range(6):
            page.click(".reaction[data-kind=heart]")
    total = "total => document.querySelector('.reaction').dataset.total === String(total)"
    for page in (host, *pages):
        page.wait_for(total, 12, what="every tap is counted")
    assert len({page.wait_for("() => rostrum.room.you?.id") for page in pages}) == 2, "without a question for the name"
    # Of a thousand taps at once those count that a person can do, and few of them rise.
    pages[0].evaluate("() => { for (let tap = 0; tap < 1000; tap++) document.querySelector('.reaction').click(); }")
    pages[1].wait_for("() => Number(document.querySelector('.reaction').dataset.total) > 12", what="some count")
    assert pages[0].evaluate("() => document.querySelectorAll('.rising i').length") <= 24
    pages[1].screenshot(logs / "hearts.png")
    counted = pages[1].evaluate("() => rostrum.room.audience.reactions.heart.total")
    assert counted <= 12 + 40
    late = open_watch(chromium, server, stream)
    late.wait_for(total, counted, what="who comes later sees the same")
    # Whoever wants no movement sees none.
    late.reduce_motion()
    pages[1].click(".reaction[data-kind=heart]")
    late.wait_for(total, counted + 1, what="it is counted all the same")
    assert late.evaluate("() => document.querySelectorAll('.rising i').length") == 0
    end_stream(host)
    check_no_complaints(*pages, late)


def test_the_feed_talks_about_the_story_in_view(
    chromium: Browser, browser: Browser, own_server: Server, stream: str, logs: Path
) -> None:
    host = go_live(chromium, own_server, stream)
    write(host, "Hello, feed!", "Ann")
    page = open_feed(browser, own_server, PHONE, before_load=FORGET_NAME)
    wait_for_story(page, stream)
    wait_for_comment(page, "Hello, feed!")
    page.click(".reaction[data-kind=heart]")
    host.wait_for("() => document.querySelector('.reaction').dataset.total === '1'", what="the heart is counted")
    submit(page, MARKUP)
    say_name(page, "Fay")
    wait_for_comment(host, MARKUP)
    host.wait_for(
        "() => [...document.querySelectorAll('.comments b')].some(each => each.textContent === 'Fay')",
        what="who had no name for a heart has one for a comment")
    wait_for_comment(page, MARKUP)
    for viewport in (DESKTOP, PHONE):
        assert_fits_in(page, viewport, logs / f"feed-talk-{browser.name}-{viewport.width}.png")
    host.evaluate("() => rostrum.room.api.openPoll({question: 'Which one?', options: ['A', 'B', 'C', 'D'], multiple: false}).then(() => null)")
    page.wait_for("() => document.querySelector('.poll')?.checkVisibility()", what="the poll is shown")
    assert_fits_in(page, SIDEWAYS, logs / f"feed-talk-{browser.name}-{SIDEWAYS.width}.png")
    page.wait_for(IS_FREE, ".is-front .foot > *", what="nothing lies on the title or on the way to join")
    page.resize(PHONE)
    # Letters that are keys of the page are letters here.
    wait_for_empty_line(page)
    page.evaluate("() => document.querySelector('.composer input').focus()")
    page.press("m")
    assert page.evaluate("() => document.querySelector('.composer input').value") == "m"
    assert page.evaluate("() => document.getElementById('sound').getAttribute('aria-pressed')") == "false"
    end_stream(host)
    page.wait_for("() => rostrum.talk.audience === null", what="nobody talks about what is over")
    check_no_complaints(page)


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_a_poll_is_asked_answered_and_closed(
    chromium: Browser, browser: Browser, server: Server, stream: str, viewport: Viewport, logs: Path
) -> None:
    host = go_live(chromium, server, stream)
    pages = [open_watch(browser, server, stream, viewport), open_watch(chromium, server, stream)]
    host.click("#ask-audience")
    assert host.evaluate(
        """() => {
            const field = name => document.querySelector(`dialog[data-name=poll] [name=${name}]`);
            field('question').value = 'Tea or <b>coffee</b>?';
            field('option-1').value = 'Tea';
            field('option-2').value = 'Coffee';
            // Whoever needs all four is given one more.
            const fifth = () => field('option-5').checkVisibility();
            const before = fifth();
            field('option-4').value = 'Water';
            field('option-4').dispatchEvent(new Event('input'));
            const after = fifth();
            field('option-4').value = '';
            return [before, after];
        }""") == [False, True]
    host.click("dialog[data-name=poll] [data-value=open]")
    option = ".poll .option:nth-child({})"
    for page in pages:
        page.wait_for("() => document.querySelector('.poll')?.checkVisibility()", what="the poll is shown")
        assert page.text(".poll h3") == "Tea or <b>coffee</b>?"
    pages[0].click(option.format(2))
    pages[1].click(option.format(2))
    shares = "wanted => [...document.querySelectorAll('.poll .option b')].map(each => each.textContent).join() === wanted"
    for page in (host, *pages):
        page.wait_for(shares, "0%,100%", what="both answers are counted")
    assert_fits(pages[0])
    pages[0].screenshot(logs / f"poll-{browser.name}-{viewport.width}.png")
    host.screenshot(logs / f"poll-host-{browser.name}-{viewport.width}.png")
    if viewport == PHONE:
        for number in range(3):
            write(host, f"Comment {number}", "Ann")
        wait_for_comment(pages[0], "Comment 2")
        assert_fits_in(pages[0], SIDEWAYS, logs / f"poll-{browser.name}-{SIDEWAYS.width}.png")
        pages[0].wait_for(IS_FREE, "#name, .sound", what="nothing lies on the title or on the button for sound")
        pages[0].resize(PHONE)
    # Who comes back has answered, and cannot answer again.
    pages[1].evaluate("() => location.reload()")
    pages[1].wait_for(
        "() => document.querySelector('.poll .option:nth-child(2)')?.ariaPressed === 'true'"
        " && document.querySelector('.poll .option').disabled", what="the answer is known")
    host.evaluate("() => [...document.querySelectorAll('.poll .actions button')].find(each => each.checkVisibility()).click()")
    pages[0].wait_for("() => document.querySelector('.poll').textContent.includes('over')", what="it is over")
    quiz(host, pages, f"{browser.name}-{viewport.width}", logs)
    check_no_complaints(host, *pages)


def quiz(host: Page, pages: list[Page], name: str, logs: Path) -> None:
    """A poll with a right answer, which the first of two viewers knows."""
    host.click("#ask-audience")
    host.evaluate(
        """() => {
            const field = name => document.querySelector(`dialog[data-name=poll] [name=${name}]`);
            field('question').value = 'Which one is a river?';
            ['Ox', 'Don'].forEach((text, index) => (field(`option-${index + 1}`).value = text));
            // One alone is right unless several may be chosen.
            for (const number of [1, 2]) field(`right-${number}`).click();
        }""")
    marks = host.evaluate(
        "() => ['right-1', 'right-2', 'hidden'].map(name => document.querySelector(`dialog[data-name=poll] [name=${name}]`).checked)")
    assert marks == [False, True, True], "results of a quiz are hidden unless the host says otherwise"
    host.screenshot(logs / f"quiz-form-{name}.png")
    host.click("dialog[data-name=poll] [data-value=open]")
    looks = "wanted => [...document.querySelectorAll('.poll .option')].map(each => each.dataset.look).join() === wanted"
    host.wait_for(looks, ",right", what="the host sees what is right")
    for page, chosen in zip(pages, (2, 1), strict=True):
        page.wait_for("() => document.querySelector('.poll .kind')?.checkVisibility()", what="the quiz is shown")
        page.click(f".poll .option:nth-child({chosen})")
        page.wait_for("() => document.querySelector('.poll').textContent.includes('at the end')", what="it is answered")
        assert "right" not in page.evaluate("() => JSON.stringify(rostrum.room.audience.poll)")
    host.wait_for("() => document.querySelector('.poll').textContent.includes('2 answers, 1 right')", what="the host sees who is right")
    host.screenshot(logs / f"quiz-host-{name}.png")
    host.evaluate("() => rostrum.room.api.closePoll(rostrum.room.audience.poll.number)")
    for page, look, verdict in (
        (pages[0], ",right", "You got it right."), (pages[1], "wrong,right", "Not this time."),
    ):
        page.wait_for(looks, look, what="what is right is seen at the end")
        assert verdict in page.text(".poll [role=status]")
        assert page.evaluate("() => document.querySelectorAll('.poll .winners li').length") == 1
    assert_fits(pages[0])
    pages[0].screenshot(logs / f"quiz-{name}.png")
    pages[1].screenshot(logs / f"quiz-wrong-{name}.png")


def test_hidden_results_are_seen_by_the_host_alone(chromium: Browser, server: Server, stream: str) -> None:
    host = go_live(chromium, server, stream, source="test")
    page = open_watch(chromium, server, stream)
    host.evaluate(
        "() => rostrum.room.api.openPoll({ question: 'Tea?', options: ['Yes', 'No'], multiple: false, results: 'closed' })")
    page.wait_for("() => document.querySelector('.poll')?.checkVisibility()", what="the poll is shown")
    page.click(".poll .option:nth-child(2)")
    shares = "() => [...document.querySelectorAll('.poll .option b')].map(each => each.textContent).join()"
    host.wait_for(f"() => ({shares})() === '0%,100%'", what="the host sees what was answered")
    page.wait_for("() => document.querySelector('.poll').textContent.includes('at the end')", what="it is answered")
    assert page.evaluate(shares) == ","


def test_a_late_answer_opens_no_poll_again(chromium: Browser, server: Server, stream: str) -> None:
    host = go_live(chromium, server, stream, source="test")
    page = open_watch(chromium, server, stream)
    host.evaluate("() => rostrum.room.api.openPoll({question: 'Tea?', options: ['Yes', 'No']})")
    page.wait_for("() => document.querySelector('.poll')?.checkVisibility()", what="the poll is shown")
    hold_answer(page, "PUT", "/vote", until="audience.poll?.closedAt")
    page.click(".poll .option:nth-child(1)")
    host.wait_for("() => rostrum.room.audience.poll?.voters === 1", what="the vote is counted")
    host.evaluate("() => rostrum.room.api.closePoll(rostrum.room.audience.poll.number)")
    page.wait_for("() => globalThis.hasAnswered", what="the answer comes after the end")
    assert page.evaluate("() => [rostrum.room.audience.poll.closedAt !== null, rostrum.room.audience.vote]") == [True, [0]]
    assert "over" in page.text(".poll")
    check_no_complaints(host, page)


def test_a_late_answer_brings_no_comment_back(chromium: Browser, server: Server, stream: str) -> None:
    host = go_live(chromium, server, stream, source="test")
    page = open_watch(chromium, server, stream)
    write(page, "One", "Vera")
    wait_for_comment(host, "One")
    is_there = "audience.comments.some(({text}) => text === 'Two')"
    hold_answer(page, "POST", "/comments", until=f"(globalThis.hasSeen ||= {is_there}) && !{is_there}")
    submit(page, "Two")
    wait_for_comment(host, "Two")
    # A comment that is deleted before it was told is not told.
    page.wait_for("() => globalThis.hasSeen", what="the viewer's page hears of the comment")
    host.evaluate("""() => {
        const {api, audience} = rostrum.room;
        return api.deleteComment(audience.comments.find(({text}) => text === 'Two').number);
    }""")
    page.wait_for("() => globalThis.hasAnswered", what="the answer comes after the end of the comment")
    assert page.evaluate("() => rostrum.room.audience.comments.map(({text}) => text)") == ["One"]
    check_no_complaints(host, page)


def test_comments_and_hearts_outlast_a_killed_server(chromium: Browser, stream: str, tmp_path: Path, logs: Path) -> None:
    with durable_server(logs, "comments", tmp_path / "data") as server:
        path = f"/v1/streams/{stream}"

        def ask(method: str, target: str, role: str, name: str, body: object = None) -> object:
            token = server.token(stream, role, name)
            status, _, answer = server.request(
                method, target, None if body is None else json.dumps(body).encode(),
                {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
            assert status in (200, 201, 204), answer
            return json.loads(answer) if answer else None

        # Nobody sends, and a slow machine takes its time.
        ask("POST", "/v1/streams", "host", "Ann", {"id": stream, "hostGraceSeconds": 3600})
        ask("POST", f"{path}/live", "host", "Ann")
        written = [ask("POST", f"{path}/comments", "viewer", f"V{n}", {"id": "c", "text": f"{n}"}) for n in range(20)]
        ask("DELETE", f"{path}/comments/3", "host", "Ann")
        ask("PUT", f"{path}/comments/5/pin", "host", "Ann")
        ask("POST", f"{path}/reactions", "viewer", "V1", {"reactions": {"heart": 30}})
        os.kill(server.pid, signal.SIGKILL)
        server.stop()
        server.start()
        page = ask("GET", f"{path}/comments", "viewer", "V1")
        assert page == {"comments": [each for each in written if each["number"] != 3], "more": False}
        again = ask("POST", f"{path}/comments", "viewer", "V7", {"id": "c", "text": "7"})
        assert again == written[7], "the same request is the same comment"
        viewer = chromium.open(f"{server.origin}/watch/{stream}")
        wait_for_comment(viewer, "19")
        assert "4" in viewer.text(".pinned-comment")
        # A crash may cost the last hearts; a server that ends in order writes them down.
        kept = int(viewer.wait_for("() => document.querySelector('.reaction')?.dataset.total", what="what is left is told"))
        assert kept in (0, 30)
        ask("POST", f"{path}/reactions", "viewer", "V9", {"reactions": {"heart": 30}})
        total = "total => document.querySelector('.reaction')?.dataset.total === String(total)"
        viewer.wait_for(total, kept + 30, what="the hearts are told")
        server.stop()
        server.start()
        late = chromium.open(f"{server.origin}/watch/{stream}")
        late.wait_for(total, kept + 30, what="hearts are told to those who come")

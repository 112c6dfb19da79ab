"""The one interface the tests know: a browser opens pages, a page evaluates, clicks and shows itself."""

from __future__ import annotations

import base64
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from .patience import patient

T = TypeVar("T")

# What comes soon is asked for often; each question costs a browser and a test some milliseconds of a processor.
POLL_SECONDS = 0.05
# What does not is asked for after a tenth of the time that it is waited for already, and at least so often.
RARE_POLL_SECONDS = 0.15
# A finger that has rested for so long is not flung: more than twice what the page's gestures remember.
REST_SECONDS = 0.2


class Viewport(NamedTuple):
    width: int
    height: int


PHONE = Viewport(390, 844)
DESKTOP = Viewport(1280, 800)


class EvaluationError(Exception):
    """The page's script threw, or its promise was rejected."""


def wait_until(condition: Callable[[], T], seconds: float, what: str | Callable[[], str]) -> T:
    """Asks until the answer is true, and returns it; fails with `what`, as it is then, when the time is over.

    `seconds` are those of a machine with nothing else to do.
    """
    seconds = patient(seconds)
    began = time.monotonic()
    while True:
        answer = condition()
        if answer:
            return answer
        waited = time.monotonic() - began
        if waited > seconds:
            raise TimeoutError(f"not within {seconds:g} s: {what() if callable(what) else what}")
        time.sleep(min(max(POLL_SECONDS, waited / 10), RARE_POLL_SECONDS))


#: Where to click an element once it stands still. What is pressed there is looked at first: nothing but the element is.
AIM = """selector => {
    const element = document.querySelector(selector);
    if (!element || element.disabled) return null;
    element.scrollIntoView({block: 'center', behavior: 'instant'});
    const box = element.getBoundingClientRect();
    if (!box.width || !box.height) return null;
    const x = box.x + box.width / 2, y = box.y + box.height / 2;
    const isMeant = target => target && (element.contains(target) || target.closest('label')?.control === element);
    if (!isMeant(document.elementFromPoint(x, y))) return null;
    const last = globalThis.lastSpot;
    globalThis.lastSpot = {element, x, y};
    if (last?.element !== element || last.x !== x || last.y !== y) return null;

    globalThis.aim?.end.abort();
    const aim = globalThis.aim = {verdict: null, end: new AbortController()};
    const judge = event => {
        if (event.type === 'pointerdown' || event.type === 'click' && aim.verdict === 'pressed') {
            aim.verdict = isMeant(event.target) ? 'pressed' : 'missed';
        }
        if (aim.verdict === 'missed') {
            event.preventDefault();
            event.stopImmediatePropagation();
        }
        if (event.type === 'click') aim.end.abort();
    };
    for (const type of ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click']) {
        addEventListener(type, judge, {capture: true, signal: aim.end.signal});
    }
    return [x, y];
}"""
#: What came of the press: `pressed`, `missed`, or `unheard` where nothing was pressed at all; null in another document.
VERDICT = """() => {
    const {aim} = globalThis;
    aim?.end.abort();
    return aim ? aim.verdict ?? 'unheard' : null;
}"""


class Page(ABC):
    """One window with one document."""

    def __init__(self) -> None:
        #: What the page complained about: console errors, uncaught exceptions, refused resources.
        self.errors: list[str] = []
        #: Everything it wrote to the console, errors included.
        self.console: list[str] = []
        self.is_closed = False

    # What a browser has to provide.

    @abstractmethod
    def goto(self, url: str) -> None:
        """Loads an address and waits for its `load` event."""

    @abstractmethod
    def _evaluate(self, expression: str, seconds: float) -> str | None:
        """Value of an expression that is a promise for a string."""

    @abstractmethod
    def _screenshot(self) -> str:
        """The viewport as a PNG in base64."""

    @abstractmethod
    def _click_at(self, x: float, y: float) -> None: ...

    @abstractmethod
    def press(self, key: str) -> None:
        """Presses and releases one key, by its DOM name (`Tab`, `Enter`, `ArrowLeft`, `a`)."""

    @abstractmethod
    def drag(
        self, start: tuple[float, float], end: tuple[float, float], seconds: float = 0.15, lifts: bool = True,
        rests: bool = False,
    ) -> None:
        """Moves a finger over the screen, evenly; leaves it there if it does not lift.

        One that rests before it lifts flings nothing, however late a busy machine tells of its last movements.
        """

    @abstractmethod
    def lift(self) -> None:
        """Takes the finger away that a drag has left."""

    def tap(self, x: float, y: float) -> None:
        """Touches the screen for a moment."""
        self.drag((x, y), (x, y), seconds=0.02)

    @abstractmethod
    def turn_wheel(self, x: float, y: float, at: tuple[float, float] | None = None) -> None:
        """Turns the mouse's wheel, in pixels to the right and down; in the middle of the page, unless elsewhere."""

    @abstractmethod
    def reduce_motion(self) -> None:
        """From now on the page sees a user who wants less motion."""

    @abstractmethod
    def resize(self, viewport: Viewport) -> None: ...

    @abstractmethod
    def before_load(self, function: str) -> None:
        """Runs a function in every later document of this page, before its own scripts."""

    @abstractmethod
    def _close(self) -> None: ...

    # What follows from it.

    def close(self) -> None:
        """Closes the window like a person does: the page gets its `pagehide`."""
        if not self.is_closed:
            self.is_closed = True
            self._close()

    def evaluate(self, function: str, *arguments: Any, seconds: float = 20) -> Any:
        """Calls a JavaScript function with JSON arguments; waits for its promise.

        Counts as a user gesture, so that media may play with sound.
        """
        given = ", ".join(json.dumps(argument) for argument in arguments)
        answer = self._evaluate(
            f"(async () => JSON.stringify(await ({function})({given})) ?? null)()", seconds)
        return None if answer is None else json.loads(answer)

    def wait_for(
        self, function: str, *arguments: Any, seconds: float = 10, what: str = "", about: str | None = None
    ) -> Any:
        """Waits until a JavaScript function answers something true, and returns it.

        A function that throws is asked again: a page that is being left has neither body nor scripts. Where it is waited
        in vain, the failure tells what the function `about` answers.
        """
        thrown: list[str] = []

        def answer() -> Any:
            thrown.clear()
            try:
                return self.evaluate(function, *arguments)
            except EvaluationError as error:
                thrown.append(str(error))
                return None
        try:
            return wait_until(answer, seconds, what or function)
        except TimeoutError as error:
            told = [f"{error}", f"thrown: {thrown}", f"page errors: {self.errors[-5:]}"]
            if about is not None:
                told.append(f"the page: {self._told(about)}")
            raise TimeoutError("\n".join(told)) from None

    def _told(self, about: str) -> str:
        """What a page says of itself that may not work any more."""
        try:
            return json.dumps(self.evaluate(about, seconds=2), ensure_ascii=False)
        except Exception as error:  # It must not hide what was waited for.
            return f"it does not answer: {error}"

    def text(self, selector: str) -> str:
        """Visible text of the first element that matches; empty when there is none."""
        return self.evaluate("s => document.querySelector(s)?.innerText ?? ''", selector)

    def click(self, selector: str, seconds: float = 5) -> None:
        """Clicks like a person: waits until the element is shown, enabled, not covered, and stands still.

        Where the page moves it away under the finger, nothing else is pressed, and it is tried again; so it is where a
        browser drops the press.
        """
        def hit() -> bool:
            self._click_at(*self.wait_for(AIM, selector, seconds=seconds, what=f"{selector} can be clicked"))
            try:
                return self.evaluate(VERDICT) not in ("missed", "unheard")
            except EvaluationError:
                return True  # The page was left by it.
        wait_until(hit, seconds, f"{selector} is clicked")

    def screenshot(self, path: Path | str) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(base64.b64decode(self._screenshot()))

    def _note(self, level: str, text: str) -> None:
        self.console.append(f"{level}: {text}")
        if level in ("error", "assert"):
            self.errors.append(text)

    def __enter__(self) -> Page:
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        # The window of a failed test stays, to be photographed.
        if failure is None:
            self.close()


class Browser(ABC):
    """One browser process with a fresh profile, fake camera and microphone, and no questions asked."""

    name: str
    #: Of a window that a test wants no certain size of.
    usual_viewport = DESKTOP
    #: Those that were started, for what a failed test tells.
    all: list[Browser] = []

    def __init__(self) -> None:
        Browser.all.append(self)
        self._pages: list[Page] = []

    @property
    def pages(self) -> list[Page]:
        """Windows that are open now."""
        return [page for page in self._pages if not page.is_closed]

    def open(
        self, url: str | None = None, viewport: Viewport | None = None, before_load: str | None = None
    ) -> Page:
        """A new window, optionally of a size that matters, and with a script to run before the page's own."""
        page = self._open()
        self._pages.append(page)
        page.resize(viewport or self.usual_viewport)
        if before_load:
            page.before_load(before_load)
        if url:
            page.goto(url)
        return page

    def close_pages(self) -> None:
        for page in self.pages:
            page.close()
        self._pages.clear()

    @abstractmethod
    def _open(self) -> Page: ...

    @abstractmethod
    def close(self) -> None: ...

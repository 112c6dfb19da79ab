"""Drives Debian's own browsers: Chromium by its DevTools protocol, Firefox by WebDriver BiDi, WebKit by WebDriver.

The first two are JSON over one WebSocket, so neither a driver program (chromedriver, geckodriver) nor a
downloaded browser is needed, and the tests see the browsers people on Debian have. WebKit's driver is Debian's, too.
"""

from .chromium import Chromium, DesktopChromium
from .firefox import Firefox
from .page import Browser, EvaluationError, Page, PHONE, DESKTOP, wait_until
from .webkit import WebKit

__all__ = [
    "Browser", "Chromium", "DESKTOP", "DesktopChromium", "EvaluationError", "Firefox", "PHONE", "Page", "WebKit", "wait_until",
]

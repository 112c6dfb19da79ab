"""What a person does with mouse and keyboard, as WebDriver has it, and BiDi too: sources with their actions.

- Source: https://www.w3.org/TR/webdriver2/#actions
"""

from __future__ import annotations

from typing import Any

# Names of keys that have no character: https://www.w3.org/TR/webdriver2/#keyboard-actions
KEYS = {
    "Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c",
    "ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015",
}


def click(x: float, y: float) -> dict[str, Any]:
    return {
        "type": "pointer", "id": "mouse",
        "actions": [
            {"type": "pointerMove", "x": round(x), "y": round(y)},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        ],
    }


def press(key: str) -> dict[str, Any]:
    """Of a key by its DOM name."""
    value = KEYS.get(key, key)
    return {
        "type": "key", "id": "keyboard",
        "actions": [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}],
    }


def turn_wheel(spot: tuple[float, float], x: float, y: float) -> dict[str, Any]:
    """At that spot, in pixels to the right and down."""
    return {
        "type": "wheel", "id": "wheel",
        "actions": [{
            "type": "scroll", "x": round(spot[0]), "y": round(spot[1]), "deltaX": round(x), "deltaY": round(y),
        }],
    }

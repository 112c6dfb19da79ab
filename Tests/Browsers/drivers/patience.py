"""How long tests wait for what should come."""

from __future__ import annotations

import os

#: By this every time limit is longer than a machine with nothing else to do would need. A limit decides when a failure is
#: told, never whether a test is right: what has to be quick is measured, or is counted in what was sent.
PATIENCE = float(os.environ.get("ROSTRUM_TEST_PATIENCE", "5"))


def patient(seconds: float) -> float:
    """A time limit for a machine that may be busy."""
    return seconds * PATIENCE

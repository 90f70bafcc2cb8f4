"""The messages of a child to its parent: which case it is at, and how the case ended."""

import json
import os
import time
import traceback

from names import Missing, NotApplicable
from values import call_text, sample_size

SECONDS = 60  # seconds for one entry; the rest of its cases is left out


class Gone(Exception):
    """An entry has no function of Tenon after all."""


class Record:
    """The cases of one entry. Those up to number `start` were run by a child that died, and are passed over."""

    def __init__(self, channel, title, start):
        self.channel, self.title, self.start = channel, title, start
        self.number, self.began, self.truncated, self.passed = 0, time.time(), False, False

    def say(self, **message):
        os.write(self.channel, (json.dumps(message, default=str) + "\n").encode())

    def end(self, mapped, where=""):
        self.say(m="end", op=self.title, mapped=mapped, n=self.number, where=where, truncated=self.truncated)

    def differs(self, wanted, given):
        """The classes of an error differ."""
        self.say(m="errclass", op=self.title, want=wanted, got=given)

    def case(self, phase, dtype, sample, body):
        """Runs one case; `body` gives what a check gives (calls.py)."""
        self.number += 1
        if self.number <= self.start:
            return
        if time.time() - self.began > SECONDS:
            self.truncated = True
            return
        here = dict(op=self.title, n=self.number, phase=phase, dtype=str(dtype)[6:] if dtype is not None else "")
        text = _text(sample)
        self.say(m="at", text=text, **here)
        try:
            outcome = body()
        except Missing as error:
            self.say(m="r", r="missing", detail=str(error), **here)
            if not self.passed and phase == "fwd":
                raise Gone(str(error)) from error
        except NotApplicable as error:
            self.say(m="r", r="na", detail=str(error), **here)
        except Exception:
            self.say(m="r", r="harness", detail=traceback.format_exc()[-900:], text=text, **here)
        else:
            self._tell(outcome, text, sample, here)

    def _tell(self, outcome, text, sample, here):
        if not outcome:
            self.passed = True
            self.say(m="r", r="pass", **here)
        elif isinstance(outcome, str):
            self.say(m="r", r=outcome, **here)
        else:
            for kind, detail in outcome[:6]:
                self.say(m="r", r="fault", kind=kind, detail=detail[:700], text=text, w=_size(sample), **here)


def _text(sample):
    try:
        return "" if sample is None else call_text(sample)
    except Exception:  # a sample that cannot be printed
        return ""


def _size(sample):
    try:
        return sample_size(sample)
    except Exception:
        return 0

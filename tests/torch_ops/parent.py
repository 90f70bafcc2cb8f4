"""Runs entries in a child, and starts another child where one dies or hangs."""

import json
import os
import pathlib
import select
import subprocess
import sys
import tempfile
import time

STALL = 40         # seconds without a word from the child: it hangs
START = 180        # seconds until the child must be ready
MOST_DEATHS = 12   # deaths of one entry; its other cases are left out
CHILD = pathlib.Path(__file__).with_name("child.py")


class Child:
    def __init__(self):
        self.reader, writer = os.pipe()
        self.buffer = b""
        self.folder = tempfile.TemporaryDirectory()
        self.stack = pathlib.Path(self.folder.name) / "stack"
        self.errors = open(pathlib.Path(self.folder.name) / "errors", "w+b")
        self.process = subprocess.Popen([sys.executable, "-B", str(CHILD), str(writer), str(self.stack)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                        stderr=self.errors, pass_fds=(writer,), env={"OMP_NUM_THREADS": "1", **os.environ})
        os.close(writer)

    def read(self, seconds):
        """A message; or "hang", or "dead"."""
        end = time.time() + seconds
        while b"\n" not in self.buffer:
            left = end - time.time()
            if left <= 0 or not select.select([self.reader], [], [], left)[0]:
                return "hang"
            got = os.read(self.reader, 1 << 16)
            if not got:
                return "dead"
            self.buffer += got
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def ask(self, *words):
        self.process.stdin.write((" ".join(map(str, words)) + "\n").encode())
        self.process.stdin.flush()

    def end(self):
        """Ends the child and gives its exit status and its last words."""
        self.process.kill()
        self.process.wait()
        os.close(self.reader)
        self.errors.seek(0)
        words = (self.stack.read_text()[:1500] if self.stack.exists() else "") + self.errors.read()[-1500:].decode(errors="replace")
        self.errors.close()
        self.process.stdin.close()
        self.folder.cleanup()
        return self.process.returncode, words


class Runner:
    """Runs one entry after the other, each as a list of messages (record.py)."""

    def __init__(self):
        self.child = None

    def run(self, kind, index):
        messages, start = [], 0
        for _ in range(MOST_DEATHS):
            last, ended = self._until_end(kind, index, start, messages)
            if ended is None:
                return messages
            status, words = self.child.end()
            self.child = None
            fault = "hang" if ended == "hang" else "crash"
            where = last or dict(phase="samples", dtype="", n=0, text="")
            messages.append({**where, "m": "r", "r": "fault", "kind": fault, "detail": f"exit {status} {words}"})
            if last is None:
                return messages
            start = last["n"]
        return messages

    def _until_end(self, kind, index, start, messages):
        """The case at which the child died or hung, and which of the two; None, None if it came to the end."""
        self._require_child()
        self.child.ask(kind, index, start)
        last = None
        while True:
            message = self.child.read(STALL)
            if isinstance(message, str):
                return last, message
            if message["m"] == "done":
                return None, None
            if message["m"] == "at":
                last = message
            else:
                messages.append(message)

    def _require_child(self):
        if self.child is not None:
            return
        self.child = Child()
        first = self.child.read(START)
        if isinstance(first, str):
            status, words = self.child.end()
            self.child = None
            raise SystemExit(f"The child does not start ({first}, exit {status}):\n{words}")

    def close(self):
        if self.child is not None:
            self.child.end()

"""Ops called with nonsense give a result or an error of Python: no crash, no endless call, no leak.

usage: nonsense_test.py [OP_RUNNER]                  the tests
       nonsense_test.py --seconds N [--seed N]       calls by hand, seed after seed; tells what fails
       nonsense_test.py --call TEXT                  one call again"""

import mmap
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import warnings
from pathlib import Path

import numpy as np
import tenon
from nonsense import Caller

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import unittest_report

LONGEST = 60            # seconds that a call may take on a loaded machine
ADDRESSES = 8 << 30     # bytes of address space for a process that calls
MEMORY = 192 << 20      # bytes that tensors of the device may take
ROOM = 1 << 16          # bytes in which a process notes the call that it makes
EXPECTED = (tenon.Error, TypeError, ValueError, OverflowError, MemoryError, BufferError, AttributeError, IndexError)


def read(result):
    """Reads every element of what a call gave."""
    for each in result if isinstance(result, tuple) else (result,):
        if isinstance(each, tenon.Tensor) and each.numel() < 1 << 20:
            repr(each)
            each.wait()
            if each.dtype.bits in (8, 16, 32, 64) and "f8" not in each.dtype.name and each.dtype != tenon.bf16:
                np.asarray(each)


def make(text, known):
    """The failure of a call, or None."""
    try:
        read(eval(text, dict(known)))
    except EXPECTED as error:
        if not str(error) and not isinstance(error, MemoryError):
            return f"{type(error).__name__} without a word"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return None


def calls(seed, count, noted):
    """Makes `count` calls, and prints those that fail. `noted` holds the number of the call and its text meanwhile."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    caller = Caller(seed)
    with open(noted, "r+b") as file:
        note = mmap.mmap(file.fileno(), ROOM)
    for i in range(count):
        text = caller.text()
        line = f"{i} {text}".encode()[:ROOM - 1]
        note[:len(line) + 1] = line + b"\0"
        failure = make(text, caller.known)
        if failure is not None:
            print(f"{text}\n    {failure}", flush=True)
    note[:5] = b"done\0"


def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()


def growth(seed, count, rounds):
    """By how many bytes the process grows in `rounds` rounds of the same calls, after as many that warm it up."""
    warnings.simplefilter("ignore")
    for half in range(2):
        before = resident()
        for _ in range(rounds):
            tenon.manual_seed(seed)
            caller = Caller(seed)
            for _ in range(count):
                make(caller.text(), caller.known)
    return resident() - before


class Process:
    """Another process that makes calls."""

    def __init__(self, seed, count):
        self.noted = tempfile.NamedTemporaryFile()
        self.noted.write(bytes(ROOM))
        self.noted.flush()
        environment = {**os.environ, "TENON_MEMORY_LIMIT": str(MEMORY)}
        self.process = subprocess.Popen([sys.executable, "-B", __file__, "--process", str(seed), str(count), self.noted.name],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)

    def call(self):
        return Path(self.noted.name).read_bytes().partition(b"\0")[0].decode(errors="replace")

    def failures(self):
        """The failure as text; empty if there is none."""
        last, since, said = "", time.monotonic(), ""
        while True:
            try:
                said = self.process.communicate(timeout=1)[0]
                break
            except subprocess.TimeoutExpired:
                now = self.call()
                if now != last:
                    last, since = now, time.monotonic()
                elif time.monotonic() - since > LONGEST:
                    self.process.kill()
                    said = self.process.communicate()[0] + f"{now}\n    takes longer than {LONGEST} s\n"
                    break
        last = self.call()
        if self.process.returncode != 0 or last != "done":
            code = self.process.returncode
            how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
            said += f"{last}\n    {how}\n"
        return said


class Nonsense(unittest.TestCase):
    def test_no_call_ends_the_process_or_another_exception_than_python_knows(self):
        processes = [Process(seed, 3000) for seed in (1, 2)]
        self.assertEqual([each.failures() for each in processes], ["", ""])

    def test_no_call_leaves_memory_behind(self):
        self.assertLess(growth(3, 400, 4), 4 << 20)


def by_hand(seconds, seed):
    end, failed = time.monotonic() + seconds, False
    while time.monotonic() < end:
        said = Process(seed, 4000).failures()
        failed = failed or bool(said)
        print(f"seed {seed}: {said or 'nothing'}", flush=True)
        seed += 1
    return failed


if __name__ == "__main__":
    if "--process" in sys.argv:
        calls(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    elif "--call" in sys.argv:
        print(make(sys.argv[2], Caller(0).known))
    elif "--seconds" in sys.argv:
        options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
        sys.exit(by_hand(float(options["--seconds"]), int(options.get("--seed", 100))))
    else:
        del sys.argv[1:2]
        unittest_report.main()

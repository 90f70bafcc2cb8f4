"""Builds targets in a build folder of Ninja, shows how many minutes are left, and lists the slowest files.

Usage: build.py [--jobs N] --log FILE BUILD_FOLDER [TARGET...]

On a terminal one line shows the progress. Elsewhere a line appears after five seconds, and then one per minute. The
output of Ninja is appended to the log. If a step fails, its output is shown at once. Afterwards
BUILD_FOLDER/slowest.txt names the files that took longest. The exit status is Ninja's.

The minutes left follow from the expected seconds of the steps that are left, and from the speed of this build so far. A
file takes the seconds that it took in the last build in this folder, or an estimate from its size if there was none.
"""
import argparse
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

STATUS = re.compile(r"\[(\d+)/(\d+)\] (?=[A-Z])")  # Ninja's default NINJA_STATUS
SECONDS_OF_OTHER_STEP = 0.3  # a link, an archive, a generated header
# Until this share of the work is done, the estimate relies more on expected seconds than on the speed of this build.
TRIAL = 0.05
MOST_LINES = 300  # lines of failed steps on the screen
ROWS = 30  # rows of slowest.txt


def ninja(build):
    """The Ninja that CMake chose for the build folder."""
    found = re.search(r"^CMAKE_MAKE_PROGRAM:\w+=(.+)$", (build / "CMakeCache.txt").read_text(), re.MULTILINE)
    return found[1] if found else "ninja"


def seconds_of_last_build(build):
    """By output, from the log of Ninja. A step with several outputs has only its first one here."""
    steps = {}
    try:
        lines = (build / ".ninja_log").read_text().splitlines()
    except OSError:
        return {}
    for line in lines:
        fields = line.split("\t")
        if len(fields) == 5 and fields[0].isdigit() and fields[1].isdigit():
            begin, end, _, output, command = fields
            steps[output] = (int(end) - int(begin)) / 1000, command
    commands = set()
    return {output: seconds for output, (seconds, command) in steps.items()
            if (build / output).exists() and not (command in commands or commands.add(command))}


def size_of_source(path):
    """The bytes of a source, and of the sources that a unity source includes by their absolute paths."""
    try:
        included = re.findall(r'^#include "(/[^"]+)"$', path.read_text(errors="replace"), re.MULTILINE)
        return sum(os.path.getsize(file) for file in (path, *included))
    except OSError:
        return 0


def expected_seconds(build, targets):
    """By object file, for all objects of the targets, also those that are up to date."""
    last = seconds_of_last_build(build)
    listed = subprocess.run([ninja(build), "-C", str(build), "-t", "commands", *targets], capture_output=True, text=True)
    expected = {}
    for output, source in re.findall(r" -o (\S+\.(?:o|gch)) -c (\S+)", listed.stdout):
        expected[output] = last.get(output) or 3 + size_of_source(build / source) / 8000
    return expected


class Progress:
    def __init__(self, waiting, jobs):
        self.waiting, self.jobs = waiting, jobs
        self.begin, self.finished, self.total, self.done = time.monotonic(), 0, 0, 0.0
        self.trial = TRIAL * sum(waiting.values())

    def finish(self, line):
        """Reads a status line, which Ninja prints after a step."""
        self.finished, self.total = map(int, STATUS.match(line).groups())
        self.done += self.waiting.pop(line.split()[-1], SECONDS_OF_OTHER_STEP)

    def seconds_left(self, elapsed):
        steps, objects = self.total - self.finished, len(self.waiting)
        left = sum(self.waiting.values())
        left = left * steps / objects if objects > steps else left + SECONDS_OF_OTHER_STEP * (steps - objects)
        return left * (elapsed + self.trial / self.jobs) / (self.done + self.trial)

    def __str__(self):
        minutes = round(self.seconds_left(time.monotonic() - self.begin) / 60)
        left = f"about {minutes} minute{'s' if minutes > 1 else ''} left" if minutes else "less than a minute left"
        return f"{self.finished} of {self.total} steps, {left}"


class Screen:
    """Shows the progress now and then, and the output of failed steps."""

    def __init__(self, progress):
        self.progress, self.is_terminal = progress, sys.stdout.isatty()
        self.failed_lines = 0
        self.lock, self.ended = threading.Lock(), threading.Event()
        self.ticker = threading.Thread(target=self.tick, daemon=True)

    def tick(self):
        begin, end = ("\r\033[K", "") if self.is_terminal else ("", "\n")
        seconds = 1 if self.is_terminal else 5
        while not self.ended.wait(seconds):
            with self.lock:
                if self.progress.total and not self.failed_lines:
                    print(f"{begin}  {self.progress}", end=end, flush=True)
                    seconds = 1 if self.is_terminal else 60

    def read(self, line, log):
        """A line of Ninja's output, which also ends in the log."""
        if STATUS.match(line):
            self.progress.finish(line)
            return
        with self.lock:
            if not self.failed_lines and not line.startswith(("FAILED: ", "ninja: error: ", "ninja: fatal: ")):
                return
            if not self.failed_lines:
                self.clear()
            self.failed_lines += 1
            if self.failed_lines <= MOST_LINES:
                print(line, flush=True)
            elif self.failed_lines == MOST_LINES + 1:
                print(f"... the rest is in {log}", flush=True)

    def clear(self):
        if self.is_terminal:
            print("\r\033[K", end="", flush=True)

    def end(self):
        self.ended.set()
        self.ticker.join()
        self.clear()


def run(build, targets, jobs, log):
    environment = {key: value for key, value in os.environ.items() if key != "NINJA_STATUS"}
    screen = Screen(Progress(expected_seconds(build, targets), jobs))
    with open(log, "a") as file, subprocess.Popen(
            [ninja(build), "-C", str(build), "-j", str(jobs), *targets], env=environment, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace") as process:
        screen.ticker.start()
        try:
            for line in process.stdout:
                file.write(line)
                screen.read(line.rstrip("\n"), log)
            return process.wait()
        except KeyboardInterrupt:  # the terminal interrupts Ninja too
            process.wait()
            return 130
        finally:
            screen.end()


def write_slowest(build):
    seconds = seconds_of_last_build(build)
    if not seconds:
        return
    slowest = sorted(seconds.items(), key=lambda item: -item[1])[:ROWS]
    names = [re.sub(r"CMakeFiles/[^/]+\.dir/|\.o$", "", output) for output, _ in slowest]
    head = f"Seconds that each file took when it was last built; all {len(seconds)} steps took {sum(seconds.values()):.0f} s.\n"
    rows = [f"{took:8.1f}  {name}\n" for name, (_, took) in zip(names, slowest)]
    (build / "slowest.txt").write_text(head + "".join(rows))


def main():
    parser = argparse.ArgumentParser(usage="build.py [--jobs N] --log FILE BUILD_FOLDER [TARGET...]")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--log", required=True)
    parser.add_argument("build", type=Path)
    parser.add_argument("targets", nargs="*")
    options = parser.parse_args()
    status = run(options.build, options.targets, options.jobs, options.log)
    write_slowest(options.build)
    return status


if __name__ == "__main__":
    sys.exit(main())

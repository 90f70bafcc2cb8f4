#!/usr/bin/env python3
"""Compares the ops of ops.yaml with PyTorch, a sample of dtypes, layouts and shapes, and prints the ratios of the times.

    ./dev sweep [--minutes 10] [--seed 0] [--room order] [--op REGEX] [--dtype f16] [--row REGEX]
    VENV/bin/python benchmarks/sweep/sweep.py BUILD ...

A ratio is Tenon's time over PyTorch's. The exit status is 1 if a row is over its bar, differs, is refused or crashes.
"""

import argparse
import collections
import datetime
import faulthandler
import json
import multiprocessing
import os
import pathlib
import random
import re
import sys
import time
import traceback
import warnings

sys.dont_write_bytecode = True

import report  # noqa: E402
from calls_of_ops import ops  # noqa: E402
from rows import DTYPES, Rows, other_names  # noqa: E402

SECONDS = 120   # until a row without an answer counts as hung
HOPELESS = 3    # refusals of a call with a dtype, after which it is not drawn any more
USELESS = 8     # the same, with any dtype
ELSEWHERE = 12  # rows of an op in other rooms, after which it is left out


def child(pipe, stack, threads):
    """Answers each row of the pipe with what is to be added to it."""
    faulthandler.enable(open(stack, "w"))
    warnings.filterwarnings("ignore")
    import tenon
    import torch

    import sides
    from rooms import Rooms

    torch.set_num_threads(threads)
    all_ops = ops()
    others, rooms, intended = other_names(all_ops), Rooms(all_ops), sides.intended()
    pipe.send({"torch": torch.__version__.split("+")[0]})
    with torch.inference_mode(), tenon.no_grad():
        while True:
            row, room = pipe.recv()
            path = row.path or sides.path_of([row.op, *others.get(row.op, ())])
            try:
                pipe.send(answer(row, path, room, rooms, intended, sides, threads) if path else {"skip": "no peer"})
            except sides.NoPeer:
                pipe.send({"skip": "refused"})
            except Exception:
                pipe.send({"error": traceback.format_exc()[-700:]})


def answer(row, path, room, rooms, intended, sides, threads):
    try:
        both = sides.Sides(row, path)
    except sides.NO_ROW:  # the shape or the dtype does not fit the arguments
        raise sides.NoPeer() from None
    faults = both.faults(intended)
    try:
        ours, theirs = both.bound()
        found = rooms.of(ours)
    except Exception as error:
        return {"refused": f"{type(error).__name__}: {error}"[:300]}
    if room and not re.fullmatch(room, found):
        return {"skip": "room"}
    seconds = sides.measure(ours, theirs, threads)
    return {"ours": seconds[0], "theirs": seconds[1], "ratio": seconds[0] / seconds[1], "room": found} | ({"faults": faults} if faults else {})


class Child:
    """The process that calls both sides, started again after a crash."""

    def __init__(self, stack, threads):
        self.stack, self.threads, self.process = stack, threads, None
        self.start()

    def start(self):
        context = multiprocessing.get_context("spawn")
        self.pipe, end = context.Pipe()
        self.process = context.Process(target=child, args=(end, self.stack, self.threads), daemon=True)
        self.process.start()
        end.close()
        self.peer = self.pipe.recv()["torch"]

    def ask(self, row, room):
        self.pipe.send((row, room))
        try:
            if self.pipe.poll(SECONDS):
                return self.pipe.recv()
            self.process.kill()
            why = f"no answer within {SECONDS} s"
        except (EOFError, ConnectionResetError):
            why = ""
        self.process.join()
        why = why or f"exit status {self.process.exitcode}"
        self.start()
        return {"died": f"{why} {self.stack.read_text()[:1500]}".strip()}


class Sample:
    """Draws rows of the wanted ops in turns, and leaves out what proves useless."""

    def __init__(self, args):
        self.row, self.dtypes, self.seed, self.room = re.compile(args.row), args.dtype.split(","), args.seed, args.room
        self.refusals, self.elsewhere, self.no_peer = collections.Counter(), collections.Counter(), []
        self.rows = [Rows(op, args.seed) for op in ops() if re.search(args.op, op.name) and not op.same_as]
        self.no_rule = [rows.op.name for rows in self.rows if not rows.calls]

    def __iter__(self):
        order = random.Random(self.seed)
        while self.rows:
            order.shuffle(self.rows)
            for rows in list(self.rows):
                row = self._next(rows)
                if row is None:
                    self.rows.remove(rows)
                else:
                    yield row

    def _next(self, rows):
        if rows.op.name in self.no_peer or self.elsewhere[rows.op.name] >= ELSEWHERE:
            return None
        while (row := rows.next()) is not None:
            hopeless = self.refusals[row.op, row.text, row.dtype] >= HOPELESS or self.refusals[row.op, row.text] >= USELESS
            if row.dtype in self.dtypes and self.row.search(row.name) and not hopeless:
                return row
        return None

    def skipped(self, row, why):
        if why == "no peer":
            self.no_peer.append(row.op)
        elif why == "room":
            self.elsewhere[row.op] += 1
        else:
            self.refusals.update([(row.op, row.text, row.dtype), (row.op, row.text)])

    def measured(self, row):
        for counts, key in ((self.refusals, (row.op, row.text, row.dtype)), (self.refusals, (row.op, row.text)), (self.elsewhere, row.op)):
            counts[key] = -1_000_000


def machine():
    names = re.findall(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return f"{os.cpu_count()} processors of {names[0] if names else os.uname().machine}"


def run(args, file):
    """Measures rows until the time is over; the first line of the file says where and when."""
    child, sample, end = Child(args.out.with_suffix(".stack"), args.threads), Sample(args), time.time() + 60 * args.minutes
    about = (f"{datetime.date.today()}, {machine()}, {args.threads} thread{'s' * (args.threads > 1)}, seed {args.seed}: Tenon's time over that of "
             f"PyTorch {child.peer}")
    file.write(json.dumps({"about": about}) + "\n")
    for number, row in enumerate(sample):
        if time.time() > end:
            break
        if sys.stderr.isatty():
            print(f"\r{number:6} {row.name:100.100}", end="", file=sys.stderr)
        found = child.ask(row, args.room)
        if "skip" in found:
            sample.skipped(row, found["skip"])
            continue
        sample.measured(row)
        file.write(json.dumps({"name": row.name, "op": row.op, "dtype": row.dtype} | found) + "\n")
        file.flush()
    if sys.stderr.isatty():
        print(f"\r{'':107}\r", end="", file=sys.stderr)
    child.process.kill()
    child.stack.unlink()
    for title, names in (("PyTorch has no such function", sorted(sample.no_peer)), ("no rule for the arguments", sample.no_rule)):
        if names:
            print(f"{title}: {' '.join(names)}")


def main():
    parser = argparse.ArgumentParser(prog="./dev sweep", description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--minutes", type=float, default=10, help="how long rows are drawn")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the sample")
    parser.add_argument("--room", default="", metavar="REGEX", help="only rows that this folder of providers/cpu computes")
    parser.add_argument("--op", default="", metavar="REGEX", help="only ops whose name contains a match")
    parser.add_argument("--dtype", default=",".join(DTYPES), help="dtypes, separated by commas")
    parser.add_argument("--row", default="", metavar="REGEX", help="only rows whose printed name contains a match")
    parser.add_argument("--threads", type=int, default=1, help="of each side; with 1 the times are processor times")
    parser.add_argument("--least", type=float, default=0, metavar="RATIO", help="prints only rows with at least this ratio")
    parser.add_argument("--out", type=pathlib.Path, metavar="FILE", help="the file of the rows; BUILD/sweep.json")
    parser.add_argument("--again", action="store_true", help="prints the rows of the file; measures nothing")
    parser.add_argument("--readme", action="store_true", help="writes the newest table into benchmarks/sweep/README.md")
    args = parser.parse_args()
    args.build = args.build.resolve()
    args.out = args.out or args.build / "sweep.json"
    if not args.again:
        os.environ |= {"TENON_PLUGIN_PATH": str(args.build / "lib/tenon"), "TENON_THREADS": str(args.threads), "OMP_NUM_THREADS": str(args.threads),
                       "TENON_DEVICE": "cpu", "TENON_PROVIDERS": "cpu"}
        sys.path.insert(0, str(args.build / "lib/python"))
        with open(args.out, "w") as file:
            run(args, file)
    about, *found = map(json.loads, args.out.read_text().splitlines())
    print(report.text(found, about["about"], args.least))
    if args.readme:
        report.write_readme(found, about["about"])
    return 1 if any(map(report.over, report.worst_first(found))) or any(some for _, some in report.titled(found)) else 0


if __name__ == "__main__":
    sys.exit(main())

"""Measures every row of ops.yaml against PyTorch and prints the ratios of their times, worst first.

usage: sweep.py PROGRAM [--ops REGEX] [--sizes 4,1024] [--dtypes f32,f16] [--threads N] [--batches N] [--least RATIO] [--json FILE]

A ratio is Tenon's time over PyTorch's. `equal` is true if the values agree. The exit status is 1 if a row was over
1.05 (of 4 elements: 0.3), if values differed, or if a call failed.
"""

import argparse
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True

from cases import NARROW, SIZES, cases  # noqa: E402

BAR, TINY_BAR = 1.05, 0.3


class Program:
    """The measuring program, started again after a crash."""

    def __init__(self, path, threads, batches):
        self.path, self.threads, self.batches, self.process, self.peer = path, threads, batches, None, ""

    def start(self):
        """Limits the process to as many processors as threads are wanted, because Tenon uses every processor it may use."""
        few = sorted(os.sched_getaffinity(0))[:self.threads]
        self.process = subprocess.Popen([self.path, str(self.threads), str(self.batches)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        preexec_fn=lambda: os.sched_setaffinity(0, few))
        first = json.loads(self.process.stdout.readline())
        self.peer = f"{first['peer']}, {first['threads']} threads"

    def rows(self, line):
        if self.process is None:
            self.start()
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()
        rows = []
        for answer in self.process.stdout:
            row = json.loads(answer)
            if "done" in row:
                return rows
            rows.append(row)
        self.process = None
        return rows + [{"case": line["case"], "mode": "fresh", "error": "the program died"}]


def bar(row):
    return TINY_BAR if row["size"] <= 4 else BAR


def text(row):
    times = [f"{row[key] / 1e3:12.2f}" if key in row else " " * 12 for key in ("ours_ns", "peer_ns")]
    ratio = f"{row['ratio']:8.3f}" if "ratio" in row else " " * 8
    note = row.get("error", "").split("\n")[0] or row.get("why_not") or ("" if row["equal"] is True else f"differs: {row['equal']}")
    return f"{ratio} {times[0]} {times[1]}  {row['mode']:5} {row['case']}  {note}".rstrip()


def main():
    parser = argparse.ArgumentParser(prog="./dev sweep", description=__doc__.splitlines()[0])
    parser.add_argument("program", help=argparse.SUPPRESS)
    parser.add_argument("--ops", default="", help="a regular expression: run only ops whose case contains a match")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of elements, separated by commas")
    parser.add_argument("--dtypes", default=",".join(("f32", *NARROW)), help="dtypes, separated by commas")
    parser.add_argument("--threads", type=int, default=2, help="threads of each side")
    parser.add_argument("--batches", type=int, default=7, help="batches of each side; the fastest one counts")
    parser.add_argument("--least", type=float, default=0, help="print only rows with at least this ratio")
    parser.add_argument("--json", help="append a line per row to this file")
    args = parser.parse_args()
    program, rows, left_out = Program(args.program, args.threads, args.batches), [], {}
    wanted = [(op, case) for op, case in cases([int(s) for s in args.sizes.split(",")], args.dtypes.split(","))
              if re.search(args.ops, case["case"] if isinstance(case, dict) else op)]
    if not wanted:
        parser.error(f"no case has {args.ops!r} in its name, one of the sizes {args.sizes} and of the dtypes {args.dtypes}")
    file = open(args.json, "w") if args.json else None
    for done, (op, case) in enumerate(wanted):
        if isinstance(case, str):
            left_out[op] = case
            continue
        if sys.stderr.isatty():
            print(f"\r{done * 100 // len(wanted):3}% {case['case']:60}", end="", file=sys.stderr)
        measured = [row | {"op": op, "size": case["size"], "dtype": case["dtype"]} for row in program.rows(case)]
        rows += measured
        if file:  # immediately, since a whole sweep takes an hour
            file.writelines(json.dumps(row) + "\n" for row in measured)
            file.flush()
    if sys.stderr.isatty():
        print(f"\r{'':66}\r", end="", file=sys.stderr)
    if file:
        file.close()
    sys.exit(report(rows, left_out, program.peer, args.least))


def report(rows, left_out, peer, least):
    compared = sorted((row for row in rows if "ratio" in row), key=lambda row: -row["ratio"])
    differing = [row for row in compared if row["equal"] is not True]
    failed = [row for row in rows if "error" in row]
    alone = [row for row in rows if "why_not" in row]
    over = [row for row in compared if row["ratio"] > bar(row)]
    print(f"Tenon's time over that of {peer}; microseconds\n   ratio        tenon      PyTorch  mode  case")
    for row in compared:
        if row["ratio"] >= least:
            print(text(row))
    for title, some in (("without a peer", alone), ("failed", failed), ("different values", differing)):
        if some:
            print(f"\n{title}:")
            print("\n".join(text(row) for row in some))
    for op, why in left_out.items():
        print(f"not measured: {op}: {why}")
    print(f"\n{len(compared)} rows compared, {len(over)} over their bar ({BAR}; {TINY_BAR} at 4 elements), "
          f"{len(differing)} with other values, {len(alone)} without a peer, {len(failed)} failed")
    return 1 if over or differing or failed else 0


if __name__ == "__main__":
    main()

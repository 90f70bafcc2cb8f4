"""ONNX's own node cases: the pinned number passes, only wrong cases fail, none crashes or hangs, and the rest is skipped.

Usage: node_cases_test.py TENON CASES [OPTION...]      the options go to `tenon onnx-test`

The counts are pinned. So a family of operators that is no longer translated fails, and so does a new one until the counts
include it. The counts are those of Debian 12's libonnx-testdata.
"""
import json
import pathlib
import subprocess
import sys

PINNED = {"passed": 931, "failed": 1, "skipped": 0}
# Cases that are wrong themselves: {case: why}. They fail, and no other does.
WRONG = {"test_adam_multiple": "the expected values are of an epsilon that the model does not have"}


def differences(counts, pinned):
    return [f"{counts[verdict]} cases {verdict}, but {pinned[verdict]} are pinned" for verdict in pinned
            if counts[verdict] != pinned[verdict]]


def run_cases(command):
    """The counts of the run, and a line for each case that failed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    if not rows or "passed" not in rows[-1]:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}, no counts\n{done.stdout[-2000:]}")
    failed = [f"{row['case']}: {row['sentence']}" for row in rows[:-1]
              if row["verdict"] == "failed" and row["case"] not in WRONG]
    told = {verdict: sum(row["verdict"] == verdict for row in rows[:-1]) for verdict in PINNED}
    counts = {verdict: rows[-1][verdict] for verdict in PINNED}
    if told != counts or (done.returncode == 0) != (counts["failed"] == 0):
        sys.exit(f"the lines of the cases say {told}, the last line {counts}, the exit code {done.returncode}")
    return counts, failed


def main():
    tenon, cases, options = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    # The pins must notice four lost families of operators when everything else passes.
    if not differences({"passed": 733, "failed": 1, "skipped": 198}, PINNED):
        sys.exit("129 cases fewer would go unnoticed")
    counts, failed = run_cases([tenon, "onnx-test", "--json", *options, str(cases)])
    for line in failed:
        print(line)
    wrong = differences(counts, PINNED)
    for line in wrong:
        print(line)
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return 1 if wrong or failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Counts the instructions of tiny ops, or of programs of them, with callgrind and compares them with the record.

usage: instructions.py BENCH_INSTRUCTIONS RECORD COMPILER OP... [--write]

RECORD has one line per op and compiler: `gcc relu 754`. More than 1 % above it fails; --write rewrites the record. Counts
are stable, while times are not. valgrind has no AVX-512, so every machine with AVX2 runs the same kernels.
"""
import re
import subprocess
import sys

RUNS = (2000, 12000)  # the first few calls of an op prepare it
COUNTED = "tenon_counted"  # the function of BENCH_INSTRUCTIONS that calls the op
LIMIT = 1.01


def instructions(program, op, runs):
    output = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
                             f"--toggle-collect={COUNTED}", program, op, str(runs)], capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", output.stderr)
    if output.returncode != 0 or not found:
        sys.exit(f"{op}: callgrind did not count:\n{output.stderr[-2000:]}")
    return int(found.group(1))


def main():
    program, record, compiler, *ops = (word for word in sys.argv[1:] if word != "--write")
    counts = {op: (instructions(program, op, RUNS[1]) - instructions(program, op, RUNS[0])) // (RUNS[1] - RUNS[0])
              for op in ops}
    lines = [line.split() for line in open(record, encoding="utf-8") if line.strip() and not line.startswith("#")]
    recorded = {(name, op): int(count) for name, op, count in lines}
    if "--write" in sys.argv:
        recorded.update({(compiler, op): count for op, count in counts.items()})
        with open(record, "w", encoding="utf-8") as file:
            file.write("# Instructions per op: compiler, op, count. Written by tests/e2e/instructions.py --write.\n")
            file.writelines(f"{name} {op} {count}\n" for (name, op), count in sorted(recorded.items()))
    failed = 0
    for op, count in counts.items():
        limit = recorded.get((compiler, op))
        good = limit is not None and count <= limit * LIMIT
        failed += not good
        print(f"{'ok  ' if good else 'FAIL'} {compiler} {op}: {count} instructions, recorded {limit}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

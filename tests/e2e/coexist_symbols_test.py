"""Plug-ins bind to their own libraries, whatever else the process has loaded, and use the allocator of the process.

Usage: coexist_symbols_test.py HOST_PROGRAM FIXED_HOST TENON_GUEST POISON ONEDNN_GUEST ALLOCATOR TOOL PLUGIN_FOLDER ONEDNN

POISON traps when one of oneDNN's weak symbols is called. With it loaded, the cpu provider must compute the same bits,
with the C library's allocator and with a preloaded one, in a program at any address and in one at a fixed address.
oneDNN itself, without a plug-in around it, must hit the poison; otherwise the test would prove nothing.
"""
import itertools
import os
import subprocess
import sys


def run(*command, **environment):
    kept = {key: value for key, value in os.environ.items() if key != "GTEST_OUTPUT"}
    return subprocess.run(command, capture_output=True, text=True, timeout=200, env={**kept, **environment})


def bits(result):
    return sorted({line for line in result.stdout.splitlines() if line.startswith("bits ")})


def threads(result):
    """The number of threads after the third call. By then each run time that computes has started its threads."""
    counts = [int(line.split()[1]) for line in result.stdout.splitlines() if line.startswith("threads ")]
    return counts[2] if len(counts) > 2 else None


def main():
    host, fixed, tenon, poison, onednn, allocator, tool, plugins, library = sys.argv[1:10]
    failures = []
    alone = run(host, tenon)
    if alone.returncode != 0 or len(bits(alone)) != 1:
        failures.append(f"alone it ended with {alone.returncode}: {alone.stdout}{alone.stderr}")
    for preloaded in ("", allocator):
        for program, order in itertools.product((host, fixed), ((tenon,), (poison, tenon), (tenon, poison))):
            beside = run(program, *order, LD_PRELOAD=preloaded)
            if beside.returncode != 0 or bits(beside) != bits(alone):
                names = [os.path.basename(path) for path in (program, *order)]
                failures.append(f"{names} (preloaded: '{preloaded}') ended with {beside.returncode}, {bits(beside)} and not "
                                f"{bits(alone)}: {beside.stdout[-500:]}{beside.stderr[-500:]}")
        listed = run(tool, "devices", LD_PRELOAD=preloaded, TENON_PLUGIN_PATH=plugins, TENON_PROVIDERS="copies_text,cpu")
        if listed.returncode != 0 or "copies_text:0" not in listed.stdout:
            failures.append(f"copies_text (preloaded: '{preloaded}'): {listed.returncode}, {listed.stdout}{listed.stderr}")
    # If the program loads a oneDNN before the provider, it keeps the width that the provider sets and gives the same
    # bits. Its OpenMP run time then belongs to the program and has workers of its own in addition to the provider's.
    for limit in (1, 2):
        ours, programs = (run(host, tenon, LD_PRELOAD=preloaded, TENON_THREADS=str(limit)) for preloaded in ("", library))
        alone_threads, beside_threads = threads(ours), threads(programs)
        more = None if None in (alone_threads, beside_threads) else beside_threads - alone_threads
        if more not in range(limit) or bits(programs) != bits(alone):
            failures.append(f"at a limit of {limit}: {alone_threads} threads alone and {beside_threads} beside the program's oneDNN (at most "
                            f"{limit - 1} more), with {bits(programs)}: {programs.stdout[-500:]}{programs.stderr[-500:]}{ours.stderr[-500:]}")
    if run(host, onednn).returncode != 0:
        failures.append("oneDNN alone does not work")
    if run(host, poison, onednn).returncode == 0:
        failures.append("oneDNN does not meet the poison, so this test shows nothing")
    for failure in failures:
        print(failure)
    print(f"{bits(alone)} alone, beside poisoned symbols and with a preloaded allocator; {len(failures)} things wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

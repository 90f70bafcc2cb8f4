"""libtenon shares a process with libtorch, another protobuf and another OpenMP run-time library.

Usage: coexist_test.py HOST_PROGRAM NAME=LIBRARY...      an empty LIBRARY: not installed here

Every guest library gives correct results in every order of loading, alone and at the same time as the others.
"""
import os
import subprocess
import sys


def main():
    host, guests = sys.argv[1], dict(pair.split("=", 1) for pair in sys.argv[2:])
    missing = sorted(name for name, path in guests.items() if not path)
    others = sorted(name for name, path in guests.items() if path and name != "tenon")
    if missing:
        print(f"not installed, so not tried: {', '.join(missing)}")
    if not others:
        return 77
    orders = [["tenon", *others], [*others, "tenon"], [*reversed(others), "tenon"], *(["tenon", name] for name in others),
              *([name, "tenon"] for name in others)]
    failures = 0
    environment = {key: value for key, value in os.environ.items() if key != "GTEST_OUTPUT"}
    for order in orders:
        result = subprocess.run([host, *(guests[name] for name in order)], capture_output=True, text=True, timeout=200,
                                env=environment)
        right = result.returncode == 0
        failures += not right
        print("  ok  " if right else "  FAIL", ", ".join(order), "" if right else f"({result.returncode})")
        if not right:
            print(result.stdout[-2000:], result.stderr[-2000:])
    print(f"{len(orders) - failures} orders work, {failures} do not")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

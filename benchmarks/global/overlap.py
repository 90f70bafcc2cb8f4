"""overlap.py BUILD [RANKS]: runs bench_overlap on the asynchronous fake and the fake of pipes, with given delays.

A launch takes 4 ms and computes nothing, and a rank sends 64 MB per second; so backward takes longer than its reductions.
Two processors cannot show overlap otherwise: the thread that moves bytes would take time from the one that computes."""

import pathlib
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests/unit/global"))
import ranks  # noqa: E402

SETTINGS = """
[provider.async]
reference = 1
shadow = 0
memory = 268435456
launch_us = 4000
computes = 0
[provider.pipes]
mb_per_s = 64
"""


def main(build, count="2"):
    build = pathlib.Path(build).resolve()
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as config:
        config.write(SETTINGS)
        config.flush()
        code, out, err = ranks.run("pipes", int(count), [str(build / "bin/bench/bench_overlap"), "async"], TENON_CONFIG=config.name,
                                   TENON_PLUGIN_PATH=f"{build}/lib/fakes:{build}/lib/tenon", TENON_DEVICE="cpu",
                                   TENON_PROVIDERS="async,cpu")
    sys.stdout.write(out)
    sys.stderr.write(err)
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

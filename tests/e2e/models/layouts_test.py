"""Models that run on a device with its own layouts give the bits of their plain runs, for all layouts that it draws.

Usage: layouts_test.py TOOL ASYNC_PLUGIN_FOLDER FOLDER    (FOLDER: the cases of make_models.py, made there if empty)

The device is the asynchronous fake with the primitives of the reference. A seed draws which operands it prefers in
which layout, which mixtures it refuses, and where each element lies; odd seeds have images. Values in layouts store
their token, so that the fake ends the process when a value is read under another token.
"""
import pathlib
import sys

from runner import Runner, make_models

SEEDS = 7


def conversions_of(executions):
    """The number of conversions to a layout and from one that the report lists."""
    rows = [one["reason"] for one in executions if one["op"] == "copy (layout)"]
    return sum(row.startswith("to ") for row in rows), sum(row.startswith("from ") for row in rows)


def check(runner, model):
    wanted, report = runner.run(model, f"{model.name}_plain", {})
    failures, all_to, all_from, moved = 0, 0, 0, 0
    if not wanted or conversions_of(report) != (0, 0):
        print(f"FAIL {model.name}: the plain run has {len(wanted)} outputs and {conversions_of(report)} conversions")
        failures += 1
    for seed in range(1, SEEDS + 1):
        validate = {"TENON_VALIDATE": "1"} if seed in (1, 2) else {}
        graphs = {"graphs": 1, "graph_seed": seed} if seed == SEEDS else {}  # together with whole graphs
        fake = {"layouts": seed, "images": seed % 2, **graphs}
        outputs, report = runner.run(model, f"{model.name}_layouts_{seed}", fake, **validate)
        if outputs != wanted:
            print(f"FAIL {model.name}: the outputs of seed {seed} have other bits")
            failures += 1
        to, back = conversions_of(report)
        all_to, all_from, moved = all_to + to, all_from + back, moved + (to + back > 0)
        print(f"{model.name} seed {seed}: {len(report)} rows, {to} conversions to layouts, {back} from layouts")
    failures += all_to * all_from == 0 or moved < SEEDS - 2  # a draw may prefer no operand of a model
    print(f"{'FAIL' if failures else 'ok  '} {model.name}: {SEEDS} draws, {all_to} conversions to and {all_from} from layouts")
    return failures


def main():
    tool, plugins, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    models = make_models(folder)
    failures = 0 if len(models) == 5 else 1
    runner = Runner(tool, plugins, folder)
    for model in models:
        failures += check(runner, model)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

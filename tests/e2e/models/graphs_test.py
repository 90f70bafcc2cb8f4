"""Models that run as whole graphs give the bits of their plain runs, for all islands that the device claims.

Usage: graphs_test.py TOOL ASYNC_PLUGIN_FOLDER FOLDER    (FOLDER: the cases of make_models.py, made there if empty)

The device is the asynchronous fake with the primitives of the reference, which claims islands at random from a seed.
Seed 0 claims every node that it knows, as one island.
"""
import pathlib
import sys

from runner import Runner, make_models

SEEDS = 7


def graphs_of(executions):
    """The number of launched graphs, and the number of nodes in them."""
    sizes = [int(one["op"].split()[2]) for one in executions if one["op"].startswith("graph of ")]
    return len(sizes), sum(sizes)


def alone_of(executions):
    return sum("alone: " in one["reason"] for one in executions)


def check(runner, model):
    wanted, report = runner.run(model, f"{model.name}_plain", {"graphs": 0})
    failures, launched, nodes, alone = 0, 0, 0, 0
    if not wanted or graphs_of(report) != (0, 0) or alone_of(report) != 0:
        print(f"FAIL {model.name}: the plain run has {len(wanted)} outputs and {graphs_of(report)} graphs")
        failures += 1
    off, report = runner.run(model, f"{model.name}_off", {"graphs": 1, "graph_seed": 0}, TENON_GRAPHS="off")
    if off != wanted or graphs_of(report) != (0, 0):
        print(f"FAIL {model.name}: TENON_GRAPHS=off changes the outputs, or ran {graphs_of(report)} graphs")
        failures += 1
    for seed in range(SEEDS):
        validate = {"TENON_VALIDATE": "1"} if seed in (0, 1) else {}
        outputs, report = runner.run(model, f"{model.name}_{seed}", {"graphs": 1, "graph_seed": seed}, **validate)
        if outputs != wanted:
            print(f"FAIL {model.name}: the outputs of seed {seed} have other bits")
            failures += 1
        count, size = graphs_of(report)
        failures += count == 0
        launched, nodes, alone = launched + count, nodes + size, alone + alone_of(report)
        print(f"{model.name} seed {seed}: {count} graphs of {size} nodes, {alone_of(report)} nodes alone")
    print(f"{'FAIL' if failures else 'ok  '} {model.name}: {SEEDS} draws, {launched} graphs of {nodes} nodes, {alone} alone")
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

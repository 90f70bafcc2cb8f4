"""Models run in whole graphs give the bits of their plain runs, whatever islands the device claims.

Usage: graphs_test.py TOOL ASYNC_PLUGIN_FOLDER FOLDER    (FOLDER: the cases of make_models.py, made there if empty)

The device is the asynchronous fake with the primitives of the reference, which claims islands at random from a seed.
Seed 0 claims every node it knows, under one number.
"""
import json
import os
import pathlib
import subprocess
import sys

SEEDS = 7
CONFIG = """[provider.async]
reference = "1"
memory = "268435456"
delay_us = "20"
graphs = "{graphs}"
graph_seed = "{seed}"
"""


class Runner:
    def __init__(self, tool, plugins, folder):
        self.tool, self.folder = tool, folder
        inherited = os.environ.get("TENON_PLUGIN_PATH", "")
        self.path = plugins + (":" + inherited if inherited else "")

    def run(self, model, name, graphs, seed, **settings):
        """The bytes of each output, and the report, of one run in a process of its own."""
        place = self.folder / "runs" / name
        place.mkdir(parents=True, exist_ok=True)
        config = place / "tenon.toml"
        config.write_text(CONFIG.format(graphs=graphs, seed=seed))
        config.chmod(0o600)
        inputs = [f"--input={self.name_of(file)}={file}" for file in sorted((model / "test_data_set_1").glob("input_*.pb"))]
        environment = {**os.environ, "TENON_CONFIG": str(config), "TENON_PLUGIN_PATH": self.path,
                       "TENON_PROVIDERS": "async,cpu", **settings}
        done = subprocess.run([self.tool, "run", str(model / "model.onnx"), "--device", "async:0", "--output", str(place),
                               "--report", "--json", *inputs], capture_output=True, text=True, timeout=300,
                              env=environment)
        if done.returncode != 0 or not done.stdout.startswith("{"):
            sys.exit(f"{model.name} {name}: {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        outputs = {file.name: file.read_bytes() for file in sorted(place.glob("*.npy"))}
        return outputs, json.loads(done.stdout)["executions"]

    @staticmethod
    def name_of(file):
        import onnx

        return onnx.load_tensor(str(file)).name


def graphs_of(executions):
    """How many graphs were launched, and how many nodes they have."""
    sizes = [int(one["op"].split()[2]) for one in executions if one["op"].startswith("graph of ")]
    return len(sizes), sum(sizes)


def alone_of(executions):
    return sum("alone: " in one["reason"] for one in executions)


def check(runner, model):
    wanted, report = runner.run(model, f"{model.name}_plain", 0, 0)
    failures, launched, nodes, alone = 0, 0, 0, 0
    if not wanted or graphs_of(report) != (0, 0) or alone_of(report) != 0:
        print(f"FAIL {model.name}: the plain run has {len(wanted)} outputs and {graphs_of(report)} graphs")
        failures += 1
    off, report = runner.run(model, f"{model.name}_off", 1, 0, TENON_GRAPHS="off")
    if off != wanted or graphs_of(report) != (0, 0):
        print(f"FAIL {model.name}: TENON_GRAPHS=off changes the outputs, or ran {graphs_of(report)} graphs")
        failures += 1
    for seed in range(SEEDS):
        validate = {"TENON_VALIDATE": "1"} if seed in (0, 1) else {}
        outputs, report = runner.run(model, f"{model.name}_{seed}", 1, seed, **validate)
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
    make = pathlib.Path(__file__).resolve().with_name("make_models.py")
    subprocess.run([sys.executable, "-B", str(make), str(folder)], check=True)
    models = sorted(path.parent for path in folder.glob("small_*/model.onnx"))
    failures = 0 if len(models) == 5 else 1
    runner = Runner(tool, plugins, folder)
    for model in models:
        failures += check(runner, model)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""Models give the CPU's results on vulkan:0, node by node, and leave it only for kinds that it lacks.

Usage: agreement_test.py TOOL MODEL_FOLDER DEMO_MODEL    (MODEL_FOLDER: the cases of tests/e2e/models, made here if empty)
"""
import json
import os
import pathlib
import subprocess
import sys

# ONNX operators whose kinds this provider has. The host rung must not run them.
NATIVE = {"Add", "Sub", "Mul", "Div", "Sqrt", "Erf", "Tanh", "Pow", "Relu", "HardSigmoid", "Clip", "MatMul", "Gemm",
          "Softmax", "ReduceMean", "ReduceSum", "Where", "Cast", "GlobalAveragePool", "Transpose", "Expand"}


# Sizes that a model takes; where it names none, its open sizes are 1.
SIZES = {"small_unet": ["--dim", "height=8", "--dim", "width=12"]}


def main():
    tool, folder, demo = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    made = pathlib.Path(__file__).resolve().parents[3] / "e2e" / "models" / "make_models.py"
    subprocess.run([sys.executable, "-B", str(made), str(folder)], check=True)
    models = [pathlib.Path(demo), *sorted(folder.glob("*/model.onnx"))]
    failures = 0 if len(models) == 6 else 1
    for model in models:
        done = subprocess.run([tool, "compare", str(model), "--device", "cpu", "--device", "vulkan:0", "--json",
                               *SIZES.get(model.parent.name, [])],
                              capture_output=True, text=True, timeout=240, env=os.environ)
        if not done.stdout.startswith("{"):
            print(f"{model}: {done.stdout}{done.stderr}")
            failures += 1
            continue
        report = json.loads(done.stdout)
        largest = max(node["max_relative"] for node in report["nodes"])
        print(f"{model}: {len(report['nodes'])} nodes, largest relative error {largest:.3g}")
        failures += report["diverges"]
        for node in report["nodes"]:
            if "host" in node["rung_b"] and node["op_type"] in NATIVE:
                print(f"  node {node['node']} ({node['op_type']}) went to the host: {node['rung_b']}")
                failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

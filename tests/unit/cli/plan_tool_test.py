"""`tenon plan`: the plan of a model, as a table and as JSON, and what it refuses.

Usage: plan_tool_test.py TOOL
"""

import json
import pathlib
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tool import Tool

TOPOLOGY = "rank: 50 GFLOP/s, 10 GB/s, 80 GB\nnode: 2 ranks, 20 us, 3 GB/s\ncluster: 3 nodes, 90 us, 1 GB/s\n"


def make_model(path):
    random = np.random.default_rng(1)

    def weight(name, *dims):
        return numpy_helper.from_array(random.normal(size=dims).astype(np.float32), name)

    nodes = [helper.make_node("MatMul", ["x", "up"], ["a"]), helper.make_node("Add", ["a", "bias"], ["b"]),
             helper.make_node("Relu", ["b"], ["c"]), helper.make_node("MatMul", ["c", "down"], ["y"])]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 32])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 16])
    weights = [weight("up", 32, 48), weight("bias", 48), weight("down", 48, 16)]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", [x], [y], weights), opset_imports=[helper.make_opsetid("", 13)]), path)


def planned(tool, model, topology):
    def plan(*arguments):
        return json.loads(tool.run("plan", model, "-t", topology, "--dim", "rows=600", "--json", *arguments).stdout)

    made = plan()
    tool.claim(made["ranks"] == 6 and np.prod(made["grid"]) == 6 and made["best"] and made["fits"], f"all ranks: {made}")
    tool.claim(made["inputs"][0]["type"] == "f32[600, 32]" and "S(0)" in made["inputs"][0]["spread"], f"rows are split: {made}")
    tool.claim(made["exchanges"] == 0 and made["bytes"] == 0, f"rows need no exchange: {made}")
    tool.claim([call["op"] for call in made["calls"]] == ["matmul", "add", "relu", "matmul"], f"calls: {made}")

    # Columns and then rows: each rank has a partial sum of all 600 x 16 numbers.
    up, bias, down = (f"%{each['name'].rpartition('%')[2]}" for each in made["inputs"][1:])
    wide = plan("-n", "2", "--grid", "2", "--spread", f"{up}=S(1)", "--spread", f"{bias}=S(0)", "--spread", f"{down}=S(0)", "--spread", "0=B")
    tool.claim([each["spread"] for each in wide["inputs"]] == ["B", "S(1)", "S(0)", "S(0)"], f"as given: {wide}")
    tool.claim(wide["exchanges"] == 1 and wide["bytes"] in (600 * 16 * 4 // 2, 600 * 16 * 4), f"a sum: {wide}")
    tool.claim(wide["levels"]["cluster"] == 0 and wide["levels"]["node"] == wide["bytes"], f"inside a node: {wide}")

    trained = plan("-n", "2", "--grid", "2", "--train")
    tool.claim(all(each["parameter"] for each in trained["inputs"][1:]) and not trained["inputs"][0]["parameter"], f"parameters: {trained}")
    tool.claim(trained["computing"] > wide["computing"] and trained["exchanges"] > 0, f"gradients are summed: {trained}")

    table = tool.run("plan", model, "-t", topology, "--dim", "rows=600").stdout
    for words in ("6 ranks as a grid", "time of a step", "memory of a rank", "over cluster", "spread", "f32[600, 32]"):
        tool.claim(words in table, f"'{words}' in the table: {table}")


def measured(tool, model):
    """Without a launcher the one rank runs the plan."""
    made = json.loads(tool.run("plan", model, "--dim", "rows=6", "--measure", "--json").stdout)
    tool.claim(made["ranks"] == 1 and made["measured"]["exchanges"] == 0 and made["measured"]["seconds"] > 0, f"one rank: {made}")


def refused(tool, model, topology, folder):
    wrong = folder / "wrong.txt"
    wrong.write_text("rank: 1 GFLOP/s\n")
    tight = folder / "tight.txt"
    tight.write_text(TOPOLOGY.replace("80 GB", "1 kB"))
    for arguments, code, words in ((("-t", topology, "-n", "7"), 1, "the topology has 1 to 6"),
                                   (("-t", topology, "--grid", "4x2"), 1, "does not have 6 ranks"),
                                   (("-t", topology, "--grid", "2x"), 1, "'2x' is not a grid"),
                                   (("-t", topology, "--spread", "0=S(0)"), 1, "so the grid must be given too"),
                                   (("-t", topology, "--grid", "6", "--spread", "9=B"), 1, "there is no such input"),
                                   (("-t", topology, "--grid", "6", "--spread", "0=Q"), 1, "is not an SBP"),
                                   (("-t", topology, "--grid", "6", "--spread", "0=P"), 1, "cannot be spread as P"),
                                   (("-t", topology, "-n", "0"), 2, "--ranks"),
                                   (("-t", wrong), 1, "line 1: a rank needs"),
                                   (("-t", folder / "none.txt"), 1, "cannot be read"),
                                   ((), 1, "A plan needs a topology")):
        said = tool.run("plan", model, *arguments, code=code).stderr
        tool.claim(words in said, f"'{words}' for {arguments}: {said}")
    said = tool.run("plan", model, "-t", tight, code=1).stdout
    tool.claim("It does not fit in the memory of a rank." in said, f"too little memory: {said}")


def main():
    tool = Tool(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model, topology = folder / "model.onnx", folder / "cluster.txt"
        make_model(model)
        topology.write_text(TOPOLOGY)
        planned(tool, model, topology)
        measured(tool, model)
        refused(tool, model, topology, folder)
    return tool.verdict()


if __name__ == "__main__":
    sys.exit(main())

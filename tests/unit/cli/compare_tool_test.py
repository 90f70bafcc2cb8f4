"""`tenon compare` from outside finds the node that uses the one wrong kernel of a device.

Usage: compare_tool_test.py TOOL PLUGIN_FOLDER MIRROR_FOLDER
"""

import json
import pathlib
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tool import Tool


def make_model(path, rng):
    """x -> MatMul -> LayerNormalization -> Relu -> Add -> Softmax, and a shape that stays on the host."""
    weight = numpy_helper.from_array(rng.standard_normal((6, 5)).astype(np.float32), "weight")
    scale = numpy_helper.from_array(rng.uniform(0.5, 2, 5).astype(np.float32), "scale")
    nodes = [
        helper.make_node("MatMul", ["x", "weight"], ["product"], name="/matmul"),
        helper.make_node("LayerNormalization", ["product", "scale"], ["normal"], name="/norm", axis=-1, epsilon=1e-5),
        helper.make_node("Relu", ["normal"], ["positive"], name="/relu"),
        helper.make_node("Shape", ["positive"], ["shape"], name="/shape"),
        helper.make_node("Reshape", ["positive", "shape"], ["same"], name="/reshape"),
        helper.make_node("Add", ["same", "product"], ["sum"], name="/add"),
        helper.make_node("Softmax", ["sum"], ["y"], name="/softmax", axis=-1),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 6])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 5])
    graph = helper.make_graph(nodes, "g", [x], [y], [weight, scale])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


def make_unsupported(path):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])
    nodes = [helper.make_node("Relu", ["x"], ["z"], name="/relu"),
             helper.make_node("Frobnicate", ["z"], ["y"], name="/strange", domain="nowhere")]
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("nowhere", 1)]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", [x], [y]), opset_imports=opsets), path)


def main():
    tool = Tool(sys.argv[1], "compare", TENON_PLUGIN_PATH=":".join(sys.argv[2:4]))
    run, claim = tool.run, tool.claim

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model = folder / "model.onnx"
        make_model(model, np.random.default_rng(7))
        config = folder / "tenon.toml"
        config.write_text('[provider.mirror]\nmode = "wrong_epsilon"\n')
        wrong = {"TENON_CONFIG": str(config)}
        pair = ("--device", "cpu", "--device", "mirror", "--dim", "batch=4")

        alone = Tool(sys.argv[1], "run", TENON_PLUGIN_PATH=":".join(sys.argv[2:4]))
        for device in "cpu", "mirror":
            said = alone.run(model, "--device", device, "-i", "x=random").stdout
            claim("ran on the host" not in said, f"no launch of {device} ran on the host: {said}")

        right = json.loads(run(model, *pair, "--json").stdout)
        claim(right["first_divergence"] is None and not right["diverges"], f"two right devices agree: {right['verdict']}")
        claim([n["name"] for n in right["nodes"]] ==
              ["/matmul", "/norm", "/relu", "/shape", "/reshape", "/add", "/softmax"], "every node is listed in order")
        claim(all(n["max_relative"] < 1e-5 and n["differing"] <= n["elements"] for n in right["nodes"]), "errors are small")
        claim(any(n["max_ulp"] > 0 for n in right["nodes"]), "two implementations of f32 differ somewhere")

        report = json.loads(run(model, *pair, "--json", code=1, **wrong).stdout)
        first = report["first_divergence"]
        claim((first["node"], first["name"], first["op_type"], first["value"]) ==
              (1, "/norm", "LayerNormalization", "normal"), f"the wrong kernel is found at its node: {first}")
        diverging = [n["name"] for n in report["nodes"] if n["diverges"]]
        claim(diverging == ["/norm", "/relu", "/reshape", "/add", "/softmax"], f"and is carried along: {diverging}")
        claim(first["worst"]["a"] != first["worst"]["b"] and first["beyond"] > 0, "with the element that is worst")
        report = json.loads(run(model, *pair, "--json", "--isolate", code=1, **wrong).stdout)
        claim([n["name"] for n in report["nodes"] if n["diverges"]] == ["/norm"], "isolated, it is the only one")

        text = run(model, *pair, code=1, **wrong).stdout
        claim("The first node that diverges is node 1 (/norm, LayerNormalization), value 'normal': element [" in text
              and " on cpu:0 and " in text and " on mirror:0, a relative error of " in text, "the sentence: " + text)
        claim("where 0.0001 is allowed on tier full (" in text, "the tolerance is that of f32: " + text)
        run(model, *pair, "--tolerance", "1e6", **wrong)

        # The tier that the devices state decides what is allowed; a demand above it takes another rung.
        config.write_text('[provider.mirror]\nmode = "portable"\n')
        report = json.loads(run(model, *pair, "--json", **wrong).stdout)
        tiers = {n["name"]: (n["tier"], n["tolerance"]) for n in report["nodes"]}
        claim(tiers["/matmul"] == tiers["/softmax"] == ("portable", 1e-3), f"a portable device is held to its tier: {tiers}")
        run(model, *pair, "--precision", "half", code=2, **wrong)
        report = json.loads(run(model, *pair, "--json", "--precision", "full", **wrong).stdout)
        claim(all(n["tier"] == "full" and n["tolerance"] in (1e-4, 0) for n in report["nodes"]) and
              "host" in report["nodes"][0]["rung_b"], f"tier full, on the host: {report['nodes'][0]}")
        done = alone.run(model, "--device", "mirror", "-i", "x=random", "--json", "--report", "--precision", "full", **wrong)
        product = [e for e in json.loads(done.stdout)["executions"] if e["op"] == "matmul" and e["device"] == "mirror:0"]
        claim(product and all(e["rung"] == "host" and "f32 is of tier portable, and the program demands full" in e["reason"]
                              for e in product), f"the report says why: {product}")
        listed = json.loads(Tool(sys.argv[1], "devices", TENON_PLUGIN_PATH=":".join(sys.argv[2:4])).run("--json", **wrong).stdout)
        stated = {d["device"]: d["portable"] for d in listed["devices"]}
        claim("f32" in stated["mirror:0"] and stated["cpu:0"] == [], f"devices says what each states: {stated}")
        config.write_text('[provider.mirror]\nmode = "wrong_epsilon"\n')

        x = np.zeros((2, 6), np.float32)
        x[0, 0], x[1, 1] = np.nan, np.inf
        np.save(folder / "x.npy", x)
        report = json.loads(run(model, "-d", "cpu", "-d", "mirror", "--input", f"x={folder / 'x.npy'}", "--json").stdout)
        claim(not report["diverges"], f"NaN equals NaN: {report['verdict']}")

        report = json.loads(run(model, "-d", "cpu", "-d", "null", "--json").stdout)
        claim({n["rung_b"] for n in report["nodes"]} >= {"native, host"} or
              any("host" in n["rung_b"] for n in report["nodes"]), "what ran on the host rung says so")
        done = run(model, "-d", "cpu", "-d", "null", code=1, TENON_FALLBACK="native")
        claim("null:0" in done.stderr and "MatMul" in done.stderr, "a node no rung takes is named: " + done.stderr)
        make_unsupported(folder / "strange.onnx")
        done = run(folder / "strange.onnx", "-d", "cpu", "-d", "mirror", code=1)
        claim("node 1 (/strange)" in done.stderr and "Frobnicate" in done.stderr and "while loading it for cpu:0" in done.stderr,
              "an operator that is not known is named: " + done.stderr)
        run(model, "-d", "cpu", code=2)
        done = run(model, "-d", "cpu", "-d", "nowhere", code=1)
        claim("there is no device 'nowhere'" in done.stderr, "a device that is not there is named: " + done.stderr)

    tool.failures += alone.failures
    return tool.verdict()


if __name__ == "__main__":
    sys.exit(main())

"""`tenon profile`: its figures hold together, its files are what they say; `tenon ops` and what providers answer;
completion names every command and option.

Usage: profile_test.py TOOL
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tool import Tool

RANDOM = np.random.default_rng(20261123)


def weight(name, *shape):
    return numpy_helper.from_array(RANDOM.standard_normal(shape).astype(np.float32), name)


def make_network(path):
    """Launches whose work is known: sin of 1024, a convolution of 4 to 8 channels, a product of [1, 2048] by [2048, 100]."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 16, 16])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 100])
    nodes = [helper.make_node("Sin", ["x"], ["s"], name="/sin"), helper.make_node("Conv", ["s", "w"], ["c"], name="/conv", pads=[1, 1, 1, 1]),
             helper.make_node("Flatten", ["c"], ["f"], name="/flatten"), helper.make_node("MatMul", ["f", "m"], ["p"], name="/matmul"),
             helper.make_node("Softmax", ["p"], ["y"], name="/soft<max>&")]
    graph = helper.make_graph(nodes, "g", [x], [y], [weight("w", 8, 4, 3, 3), weight("m", 2048, 100)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), path)


class Net:
    """Convolutions with activations and residuals, as in the blocks of YOLO and CSP nets."""

    def __init__(self):
        self.nodes, self.weights, self.count = [], [], 0

    def op(self, kind, *inputs, **attributes):
        self.count += 1
        self.nodes.append(helper.make_node(kind, inputs, [f"v{self.count}"], name=f"/{kind}_{self.count}", **attributes))
        return f"v{self.count}"

    def conv(self, x, act, into, out, kernel=1, group=1):
        for name, shape in (f"w{self.count}", (out, into // group, kernel, kernel)), (f"b{self.count}", (out,)):
            scale = np.float32(1 / np.sqrt(into // group * kernel * kernel))
            self.weights.append(numpy_helper.from_array(RANDOM.standard_normal(shape).astype(np.float32) * scale, name))
        y = self.op("Conv", x, *(each.name for each in self.weights[-2:]), pads=[kernel // 2] * 4, group=group)
        return act(self, y)

    def save(self, y, path):
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16, 40, 40])
        y = helper.make_tensor_value_info(y, TensorProto.FLOAT, [1, 32, 40, 40])
        graph = helper.make_graph(self.nodes, "net", [x], [y], self.weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)]), path)


def silu(net, x):
    return net.op("Mul", x, net.op("Sigmoid", x))


def leaky(net, x):
    return net.op("LeakyRelu", x, alpha=0.1)


def hard_swish(net, x):
    return net.op("HardSwish", x)


def c2f_net(net):
    """YOLOv8: a part of the channels runs through residual blocks, and all parts are joined."""
    x = net.conv("x", silu, 16, 32)
    a, b = net.op("Slice", x, *net_slices(net, 0, 16)), net.op("Slice", x, *net_slices(net, 16, 32))
    c = net.op("Add", b, net.conv(net.conv(b, silu, 16, 16, 3), silu, 16, 16, 3))
    return net.conv(net.op("Concat", a, b, c, axis=1), silu, 48, 32)


def net_slices(net, first, last):
    names = [f"s{net.count}_{i}" for i in range(3)]
    for name, value in zip(names, (first, last, 1)):
        net.weights.append(numpy_helper.from_array(np.array([value], np.int64), name))
    return names


def csp_net(net):
    """YOLOX and Darknet: the residual is added after the activation, in a row of blocks."""
    x = net.conv("x", leaky, 16, 32, 3)
    for _ in range(2):
        x = net.op("Add", net.conv(net.conv(x, leaky, 32, 16), leaky, 16, 32, 3), x)
    return net.conv(net.op("Relu", net.op("Add", x, net.conv(x, leaky, 32, 32))), silu, 32, 32)


def depthwise_net(net):
    """Depthwise convolutions between pointwise ones, with a residual around them."""
    x = net.conv("x", hard_swish, 16, 32)
    y = net.conv(net.conv(x, hard_swish, 32, 32, 5, group=32), hard_swish, 32, 32)
    return net.op("Add", y, x)


def check_blocks(tool, folder):
    """Blocks with activations and residuals run on fast kernels, and give what their ops give one by one."""
    x = folder / "x.npy"
    np.save(x, RANDOM.standard_normal((1, 16, 40, 40)).astype(np.float32))
    for block in c2f_net, csp_net, depthwise_net:
        net, model = Net(), folder / f"{block.__name__}.onnx"
        net.save(block(net), model)
        results = []
        for how in [], ["--eager"]:
            out = folder / "out"
            shutil.rmtree(out, ignore_errors=True)
            command = ["run", model, "-d", "cpu", "-i", f"x={x}", "--report", "--json", "-o", out, *how]
            executions = json.loads(tool.run(*command).stdout)["executions"]
            slow = [each for each in executions if each["plain"] or each["rung"] in ("decomposed", "host")]
            tool.claim(how or not slow, f"{block.__name__}: {slow}")
            results.append(np.load(next(out.glob("*.npy"))))
        difference = np.abs(results[0] - results[1]).max()
        tool.claim(np.allclose(*results, rtol=1e-4, atol=1e-5), f"{block.__name__}: {difference}")


def check_relaxed(tool, folder):
    """Under precision relaxed products round their factors where the processor multiplies bf16; reports mark them."""
    rounds = "avx512_bf16" in pathlib.Path("/proc/cpuinfo").read_text()
    net, model, x = Net(), folder / "relaxed.onnx", folder / "x.npy"
    net.save(csp_net(net), model)
    np.save(x, RANDOM.standard_normal((1, 16, 40, 40)).astype(np.float32))
    results = {}
    for precision in "stated", "relaxed":
        out = folder / precision
        command = ["run", model, "-d", "cpu", "-i", f"x={x}", "--report", "--precision", precision]
        report = json.loads(tool.run(*command, "--json", "-o", out).stdout)
        results[precision] = np.load(next(out.glob("*.npy")))
        marked = [each for each in report["executions"] if each["tier"] == "relaxed"]
        wanted = rounds and precision == "relaxed"
        tool.claim(report["precision"] == precision and bool(marked) == wanted, f"{precision}: {marked}")
        tool.claim(all(each["implementation"] == "bf16" for each in marked), f"{precision}: {marked}")
        line = f"precision relaxed: {len(marked)} of {len(report['executions'])} launches compute products with rounded factors"
        tool.claim((line in tool.run(*command).stdout) == (precision == "relaxed"), f"{precision}: no '{line}'")
    difference = np.abs(results["relaxed"] - results["stated"]).max() / np.abs(results["stated"]).max()
    tool.claim(difference < 0.05 and (difference > 1e-5) == rounds, f"relaxed differs from stated by {difference}")
    profile = json.loads(tool.run("profile", model, "-d", "cpu", "--repeat", 5, "--precision", "relaxed", "--json").stdout)
    tool.claim(any(each["tier"] == "relaxed" for each in profile["nodes"]) == rounds, f"profile: {profile['nodes']}")
    text = tool.run("profile", model, "-d", "cpu", "--repeat", 5, "--precision", "relaxed").stdout
    tool.claim("precision relaxed: " in text and " tier " in text, text)
    wrong = tool.run("profile", model, "--precision", "half", code=2).stderr
    tool.claim("half not in {stated,relaxed,portable,full}" in wrong, wrong)


def check_plain(tool, folder):
    """Launches of loops that are not optimised are marked, in the table and in JSON, by `profile` and by `run`."""
    model = folder / "plain.onnx"
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [64, 4, 8])
    y = helper.make_tensor_value_info("y", TensorProto.INT64, [64, 1, 8])
    nodes = [helper.make_node("Sin", ["x"], ["s"]), helper.make_node("ArgMax", ["s"], ["y"], axis=1)]
    graph = helper.make_graph(nodes, "g", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), model)
    commands = (["profile", model, "--repeat", 5], "nodes"), (["run", model, "-i", "x=random", "--report"], "executions")
    for command, key in commands:
        nodes = json.loads(tool.run(*command, "--json").stdout)[key]
        for node in nodes:
            tool.claim(node["plain"] == (node["implementation"] == "plain"), f"{node}")
        text = tool.run(*command).stdout
        plain = sum(node["plain"] for node in nodes)
        tool.claim(text.count("plain *") == plain, f"{plain} marked: {text}")
        tool.claim(("* a loop that is not optimised" in text) == (plain > 0), text)


def check_profile(tool, folder):
    run, claim = tool.run, tool.claim
    model = folder / "network.onnx"
    make_network(model)
    plot, trace = folder / "out.svg", folder / "trace.json"
    report = json.loads(run("profile", model, "--repeat", 20, "--json", "--plot", plot, "--trace", trace).stdout)
    runs = sorted(report["runs_ms"])
    claim(len(runs) == 20 and runs[0] <= report["median_ms"] <= report["p90_ms"] <= report["p99_ms"] <= runs[-1], f"{report}")
    nodes = {node["name"]: node for node in report["nodes"]}
    claim({"/conv", "/sin", "/matmul", "/soft<max>&"} <= set(nodes), f"each node that launches is named: {list(nodes)}")
    claim([n["ms"] for n in report["nodes"]] == sorted((n["ms"] for n in report["nodes"]), reverse=True), "the slowest stands first")
    claim(nodes["/matmul"]["flops"] == 2 * 2048 * 100, f"{nodes['/matmul']}")
    claim(nodes["/matmul"]["bytes"] == 4 * (2048 + 2048 * 100 + 100), f"{nodes['/matmul']}")
    claim(nodes["/conv"]["flops"] == 2 * 8 * 256 * 4 * 9, f"{nodes['/conv']}")
    claim(nodes["/sin"]["bytes"] == 2 * 4 * 1024, f"{nodes['/sin']}")
    for node in report["nodes"]:
        claim(node["ms"] > 0 and abs(node["bytes_per_second"] - node["bytes"] / node["ms"] * 1e3) <= 1, f"{node}")
    claim(report["limits"]["bytes_per_second"] > 1e8 and report["limits"]["flops_per_second"] > 1e8, f"{report['limits']}")
    claim(sum(node["ms"] for node in report["nodes"]) <= report["timed_run_ms"] * 1.5 + 0.1, "parts are no more than the whole")
    claim(report["peak_bytes"] >= report["weight_bytes"] > 4 * 2048 * 100, f"{report['peak_bytes']} {report['weight_bytes']}")

    drawn = ElementTree.parse(plot).getroot()
    words = "".join(drawn.itertext())
    claim(drawn.tag.endswith("svg") and "/soft<max>&" in words and "network.onnx" in words, words)
    claim(len(drawn.findall(".//{*}circle")) == len(report["nodes"]), "each launch is a circle under the roof")
    spans = [e for e in json.loads(trace.read_text())["traceEvents"] if e.get("cat") == "launch"]
    claim(any("/matmul" in e["args"]["detail"] for e in spans), "the trace names nodes")

    text = run("profile", model, "--repeat", 5, "--top", 2).stdout
    claim("p99" in text and "GFLOP/s" in text and "2 more; --top" in text, text)
    claim("cannot be written" in run("profile", model, "--plot", folder / "no" / "x.svg", code=1).stderr, "a file that cannot be written")
    claim("no_such" in run("profile", folder / "no_such.onnx", code=1).stderr, "a model that is not there")


def check_ops(tool):
    run, claim = tool.run, tool.claim
    ops = {op["name"]: op for op in json.loads(run("ops", "--json", "--device", "cpu").stdout)["ops"]}
    served = lambda name, dtype: ops[name]["devices"]["cpu:0"]["dtypes"][dtype]["served"]
    claim(all(served(name, "f32") == "native" for name in ("add", "exp", "softmax", "matmul", "conv", "sum", "layer_norm")), "the cpu computes these")
    claim(served("bitwise_and", "f32") == "refused" and served("bitwise_and", "i32") == "native", "bits of floats are refused")
    claim("bitwise_and" in ops["bitwise_and"]["devices"]["cpu:0"]["dtypes"]["f32"]["reason"], "and why is said")
    unknown = [name for name, op in ops.items() if not op["devices"]["cpu:0"]["call"]]
    claim(len(unknown) * 10 <= len(ops), f"no call was found of {unknown}")
    text = run("ops", "matmul", "--device", "cpu").stdout
    claim("asked about matmul(f32" in text and re.search(r"f32 +native", text), text)
    claim(re.search(r"^exp +elementwise +[ndh.]{15}$", run("ops", "--device", "cpu").stdout, re.MULTILINE), "a letter per dtype")


def check_completion(tool):
    run, claim = tool.run, tool.claim
    commands = re.findall(r"^  ([a-z-]+) {2,}", run("--help").stdout.partition("Subcommands:")[2], re.MULTILINE)
    claim({"run", "profile", "completion"} <= set(commands), f"{commands}")
    for shell in ("bash", "zsh", "fish"):
        script = run("completion", shell).stdout
        for command in commands:
            claim(re.search(rf"\b{command}\b", script), f"{shell} completes {command}")
            for option in set(re.findall(r"--([a-z][a-z-]+)", run(command, "--help").stdout if command != "conform" else "")) - {"help"}:
                claim(re.search(rf"(--|-l ){option}\b", script), f"{shell} completes {command} --{option}")
        if shutil.which(shell):
            done = subprocess.run([shell, "-n", "/dev/stdin"], input=script, capture_output=True, text=True)
            claim(done.returncode == 0, f"{shell} reads it: {done.stderr}")
    claim("did you mean" in run("completion", "bsh", code=2).stderr or "bsh" in run("completion", "bsh", code=2).stderr, "an unknown shell")
    program = run("completion", "bash").stdout + "COMP_WORDS=(tenon {}); COMP_CWORD={}; _tenon; echo ${{COMPREPLY[@]}}\n"
    bash = lambda words, place: subprocess.run(["bash"], input=program.replace("{}", words, 1).replace("{}", str(place), 1).replace("{{", "{").replace("}}", "}"),
                                               capture_output=True, text=True).stdout.split()
    claim(bash("pro", 1) == ["profile"], f"{bash('pro', 1)}")
    claim(bash("profile --pl", 2) == ["--plot"], f"{bash('profile --pl', 2)}")


def main():
    tool = Tool(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        check_plain(tool, pathlib.Path(name))
        check_blocks(tool, pathlib.Path(name))
        check_relaxed(tool, pathlib.Path(name))
        check_profile(tool, pathlib.Path(name))
    check_ops(tool)
    check_completion(tool)
    return tool.verdict()


if __name__ == "__main__":
    sys.exit(main())

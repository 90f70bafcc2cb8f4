"""Kernels from outside: the stages of the compiler, what is written of them, the settings, and the cache of several
processes.

Usage: kernels_tool_test.py TOOL
"""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tool import Tool

def make_model(path):
    """Two kernels, with a product between them."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 48])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 48])
    weights = np.random.default_rng(1).standard_normal((48, 48), np.float32)
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["square"]),
        helper.make_node("Softmax", ["square"], ["rows_of_one"], axis=-1, name="/evil*/\n\\\"name"),
        helper.make_node("MatMul", ["rows_of_one", "w"], ["product"]),
        helper.make_node("Softmax", ["product"], ["shares"], axis=-1),
        helper.make_node("Add", ["shares", "x"], ["sum"]),
        helper.make_node("Sigmoid", ["sum"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", [x], [y], [numpy_helper.from_array(weights, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), path)


def stages(tool, model, folder):
    run, claim = tool.run, tool.claim
    before = run("compile", model, "--stage", "graph").stdout
    claim("softmax(" in before and "fused(" not in before, "the graph before fusion: " + before)
    fused = run("compile", model, "--stage", "fuse").stdout
    claim("fuse {%" in fused and "fused(" in fused, "each decision, and the graph: " + fused)
    loops = run("compile", model, "--stage", "loop").stdout
    claim(loops.count("\nkernel fused_") == 2 and "\n  items " not in loops, "kernels without loops: " + loops)
    schedule = run("compile", model, "--stage", "schedule").stdout
    claim("// kernel 1: mul softmax\nkernel fused_2" in schedule and "\n  items " in schedule, "kernels with loops: " + schedule)
    text = run("compile", model).stdout
    claim(text.count("void k_fused_") >= 2 and "evil" not in text, "two texts in C: " + text)
    claim(text == run("compile", model, "--emit", "c", "--stage", "text").stdout, "a text is the same again")
    wrong = run("compile", model, "--stage", "lop", code=2).stderr
    claim("lop" in wrong and "schedule" in wrong, "an unknown stage: " + wrong)
    claim("cannot be opened" in run("compile", folder / "no.onnx", code=1).stderr, "a model that is not there")


def cached(tool, model, folder):
    """A second start compiles nothing; neither does one beside others that are killed while they write."""
    def start(cache, **more):
        return subprocess.Popen([*tool.command, "run", str(model), "--input", "x=random", "--dim", "rows=7", "--json"],
                                env={**os.environ, **tool.environment, "XDG_CACHE_HOME": str(cache), "TENON_FUSE": "on",
                                     "TENON_COMPILE": "wait", "TENON_LOG": "compile=debug", **more},
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(process):
        out, err = process.communicate(timeout=60)
        tool.claim(process.returncode == 0, f"exit code {process.returncode}: {err}")
        return json.loads(out)["outputs"], err

    claim = tool.claim
    expected, said = finish(start(folder / "cache"))
    claim(said.count("compiled by") == 2, "the first start compiles two kernels: " + said)
    again, said = finish(start(folder / "cache"))
    claim(said.count("read from the cache") == 2 and "compiled by" not in said, "the second start compiles nothing: " + said)
    claim("starts the compile helper" not in said, "the second start starts no compiler: " + said)
    claim(again == expected, "kept kernels give the same results")
    for round_of in range(3):
        cache = folder / f"shared{round_of}"
        processes = [start(cache) for _ in range(3)]
        time.sleep(random.Random(round_of).uniform(0.05, 0.4))
        processes[2].send_signal(signal.SIGKILL)
        processes[2].communicate()
        for process in processes[:2]:
            claim(finish(process)[0] == expected, "processes that share a cache give the same results")
        outputs, said = finish(start(cache))
        claim(outputs == expected and "compiled by" not in said, "what they leave is whole: " + said)
    for kept in (folder / "cache").rglob("cpu-*"):
        kept.write_bytes(kept.read_bytes()[:-100])
    outputs, said = finish(start(folder / "cache"))
    claim(outputs == expected and said.count("compiled by") == 2, "cut files are compiled again: " + said)
    outputs, said = finish(start(folder / "model.onnx"))
    claim(outputs == expected and said.count("compiled by") == 2, "without the folder only time is lost: " + said)


def refused(tool, model, folder):
    """A compiler that refuses texts, or hangs: the ops run one by one, and the log says why, once for each kernel."""
    arguments = ["run", model, "--input", "x=random", "--dim", "rows=7", "--repeat", "3", "--json"]
    expected = json.loads(tool.run(*arguments, "--no-fuse").stdout)["outputs"]
    cases = {"refuses": ("echo 'kernel:7:3: error: no such thing' >&2; exit 1", "line 7:3: error: no such thing"),
             "hangs": ("sleep 60", "did not end within 1 s and was killed")}
    for name, (does, says) in cases.items():
        compiler = folder / name
        compiler.write_text('#!/bin/sh\ncase "$*" in *--version*) echo "cc 1.0"; exit;; esac\n' + does + "\n")
        compiler.chmod(0o700)
        config = folder / f"{name}.toml"
        config.write_text(f'[provider.cpu]\ncompiler = "{compiler}"\ncompile_seconds = "1"\n')
        config.chmod(0o600)
        done = tool.run(*arguments, TENON_CONFIG=config, TENON_FUSE="on", TENON_COMPILE="wait", TENON_DUMP=folder / "refused")
        claim = tool.claim
        claim(json.loads(done.stdout)["outputs"] == expected, f"a compiler that {name} changes no result: " + done.stdout)
        claim(done.stderr.count(says) == 2, f"a compiler that {name} is reported once for each kernel: " + done.stderr)
        claim("one by one" in done.stderr and "/text-0.c" in done.stderr, "the log names the text: " + done.stderr)


def main():
    tool = Tool(sys.argv[1])
    run, claim = tool.run, tool.claim
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tool.environment["XDG_CACHE_HOME"] = str(folder / "own")
        model = folder / "model.onnx"
        make_model(model)
        stages(tool, model, folder)

        arguments = ["run", model, "--input", "x=random", "--dim", "rows=7"]
        report = run(*arguments, "--report", TENON_FUSE="on").stdout
        claim("fused (mul softmax)" in report and "fused (softmax add sigmoid)" in report, "a report names what was fused: " + report)
        claim("reads and writes 2688 bytes" in report, "a report has the bytes of a kernel: " + report)
        plain = run(*arguments, "--report", "--no-fuse", TENON_FUSE="on").stdout
        claim("fused" not in plain and "softmax" in plain, "--no-fuse runs the ops one by one: " + plain)
        checked = run(*arguments, TENON_FUSE="on", TENON_COMPILE="wait", TENON_CHECK="compile").stdout
        claim("worst difference" in checked and "softmax add sigmoid" in checked, "TENON_CHECK compares each kernel: " + checked)
        wrong = run(*arguments, TENON_COMPILE="later", code=1).stderr
        claim("TENON_COMPILE" in wrong and "beside" in wrong and "wait" in wrong, "a wrong setting: " + wrong)

        run(*arguments, TENON_FUSE="on", TENON_COMPILE="wait", TENON_DUMP=folder / "dump")
        written = sorted(str(path.relative_to(folder / "dump")).split("/", 1)[1] for path in (folder / "dump").glob("*/*"))
        for file in ("-fuse.log", "graph.txt", "loops.txt", "schedule-0.txt", "text-0.c"):
            claim(any(path.endswith(file) for path in written), f"a dump has {file}: {written}")
        cached(tool, model, folder)
        refused(tool, model, folder)
    return tool.verdict()


if __name__ == "__main__":
    sys.exit(main())

"""`tenon tune`, and what TENON_TUNE makes of what it keeps.

Usage: tune_tool_test.py TOOL
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import onnx
from onnx import TensorProto, helper

from tool import Tool


def make_model(path, kernels=True):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 160])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 160])
    nodes = [helper.make_node("Softmax", ["x"], ["shares"], axis=-1), helper.make_node("Add", ["shares", "x"], ["sum"]),
             helper.make_node("Sigmoid", ["sum"], ["y"])]
    if not kernels:
        nodes = [helper.make_node("Relu", ["x"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), path)


def tuned(tool, model, folder):
    """The table, and the file."""
    run, claim = tool.run, tool.claim
    done = run("tune", model, "--dim", "rows=64", "--budget", "3000", "--json", TENON_TUNE="on").stdout
    told = json.loads(done)
    kernel = told["kernels"][0]
    claim(len(told["kernels"]) == 1 and kernel["ops"] == "softmax add sigmoid" and kernel["sizes"] == [64], "one kernel: " + done)
    claim(kernel["default_us"] > 0 and kernel["tried"] > 0 and kernel["kept"] and kernel["why_not"] == "", "its times: " + done)
    claim(kernel["best_us"] <= kernel["default_us"], "no worse than the default: " + done)
    claim((kernel["tiles"] == "default") == (kernel["gain"] == 0), "a gain comes of tiles: " + done)
    file = pathlib.Path(told["file"])
    claim(file.parent == folder / "own" / "tenon" / "tune", "the file lies in the cache folder: " + str(file))
    lines = file.read_text().splitlines()
    claim(len(lines) == 2 and json.loads(lines[0])["tenon_tune"] == 1, "a head and a line: " + str(lines))
    claim(json.loads(lines[1])["sizes"] == "64" and "max f32" in json.loads(lines[1])["space"], "the line: " + lines[1])
    table = run("tune", model, "--dim", "rows=64", "--budget", "1").stdout
    claim("kernel" in table and "gain" in table and "softmax add sigmoid" in table and str(file) in table, "a table: " + table)
    return file


def loaded(tool, model, folder, file):
    """A line that we write ourselves is taken, seen in the report and in the dump, and changes no bit."""
    run, claim = tool.run, tool.claim
    head, line = file.read_text().splitlines()[:2]
    known = json.loads(line)
    ours = {**known, "tiles": {"unroll": 2}}

    def report(lines, **environment):
        file.write_text("\n".join([head, *lines]) + "\n")
        done = run("run", model, "--input", "x=random", "--dim", "rows=64", "--report", "--json", TENON_COMPILE="wait", **environment)
        told = json.loads(done.stdout)
        return told["executions"][0]["reason"], done.stderr, told["outputs"]

    plain, _, expected = report([json.dumps(ours)])
    claim("reads and writes" in plain and "tuned" not in plain, "off takes nothing: " + plain)
    took, _, outputs = report([json.dumps(ours)], TENON_TUNE="load", TENON_DUMP=folder / "dump")
    claim(took.endswith(", tuned: unroll 2"), "load takes what is kept: " + took)
    claim(outputs == expected, "other tiles give the same results")
    schedules = [path.read_text() for path in (folder / "dump").glob("*/schedule-0.txt")]
    claim(len(schedules) == 1 and schedules[0].endswith("vector a1 unroll 2\n      s0\n"), "the dump has its loops: " + str(schedules))
    for what, lines in {
        "damaged": [json.dumps(ours)[:-7], "\x00\x01", "[" * 10000],
        "beyond its bounds": [json.dumps({**ours, "tiles": {"unroll": 1 << 40}})],
        "of another kernel": [json.dumps({**ours, "space": ours["space"] + " "})],
    }.items():
        took, said, outputs = report(lines, TENON_TUNE="load")
        claim("tuned" not in took and outputs == expected and "rror" not in said, f"a line that is {what}: " + took + said)
    took, _, _ = report(["junk", json.dumps(ours), "more junk"], TENON_TUNE="load")
    claim("tuned: unroll 2" in took, "junk around a line: " + took)
    file.chmod(0o666)
    took, _, outputs = report([json.dumps(ours)], TENON_TUNE="load")
    claim("tuned" not in took and outputs == expected, "a file that others may write: " + took)
    file.chmod(0o600)
    claim(file.read_text() == "\n".join([head, json.dumps(ours)]) + "\n", "load writes nothing")


def at_once(tool, model, folder):
    """Two processes that tune at once keep both of their lines."""
    environment = {**os.environ, **tool.environment, "XDG_CACHE_HOME": str(folder / "two")}
    processes = [subprocess.Popen([*tool.command, "tune", str(model), "--dim", "rows=8", "--budget", "1", "--json"], env=environment,
                                  stdout=subprocess.PIPE, text=True) for _ in range(2)]
    told = [json.loads(process.communicate(timeout=120)[0]) for process in processes]
    lines = pathlib.Path(told[0]["file"]).read_text().splitlines()
    tool.claim(len(lines) == 3, "both lines are kept: " + str(lines))


def beside(tool, model, folder):
    """TENON_TUNE=on, beside a program that rests: it ends as ever, whatever was done by then."""
    done = tool.run("run", model, "--input", "x=random", "--dim", "rows=64", "--repeat", "50", TENON_TUNE="on",
                    TENON_COMPILE="wait", XDG_CACHE_HOME=folder / "beside")
    tool.claim(done.stderr == "", "nothing is said: " + done.stderr)


def refused(tool, model, folder):
    run, claim = tool.run, tool.claim
    for arguments, word in ((["--budget", "0"], "above 0"), (["--budget", "soon"], "soon"), (["--budget", "nan"], "above 0"),
                            (["--budgt", "3"], "--budget"), (["--dim", "rows=-1"], "rows"), (["--device", "toaster"], "toaster"),
                            (["--input", "z=random"], "z")):
        code = 2 if arguments[0].startswith("--bud") else 1
        said = run("tune", model, *arguments, code=code).stderr
        claim(word in said, f"{arguments}: " + said)
    claim("MODEL" in run("tune", code=2).stderr, "no model")
    claim("cannot be opened" in run("tune", folder / "no.onnx", code=1).stderr, "a model that is not there")
    wrong = run("run", model, "--input", "x=random", code=1, TENON_TUNE="fast").stderr
    claim("TENON_TUNE" in wrong and "load" in wrong, "a wrong setting: " + wrong)
    make_model(folder / "none.onnx", kernels=False)
    none = run("tune", folder / "none.onnx").stdout
    claim("No ops of the model become one kernel" in none, "no kernels: " + none)
    (folder / "file").write_text("")
    nowhere = run("tune", model, "--dim", "rows=8", "--budget", "1", code=1, XDG_CACHE_HOME=folder / "file")
    claim("cannot be stored" in nowhere.stderr and "softmax" in nowhere.stdout, "nowhere to keep it: " + nowhere.stderr)
    claim("tune)" in run("completion", "bash").stdout, "completion knows it")
    claim("TENON_TUNE" in run("help", "env").stdout, "so does the help")


def main():
    tool = Tool(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tool.environment["XDG_CACHE_HOME"] = str(folder / "own")
        model = folder / "model.onnx"
        make_model(model)
        file = tuned(tool, model, folder)
        loaded(tool, model, folder, file)
        at_once(tool, model, folder)
        beside(tool, model, folder)
        refused(tool, model, folder)
    return tool.verdict()


if __name__ == "__main__":
    sys.exit(main())

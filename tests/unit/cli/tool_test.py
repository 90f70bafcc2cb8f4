"""The tool from outside: exit codes, messages about wrong arguments, valid JSON.

Usage: tool_test.py TOOL
"""

import json
import pathlib
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tool import Tool


def make_model(path):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"], name="/relu")], "g", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), path)


def make_gather(path):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])
    i = helper.make_tensor_value_info("i", TensorProto.INT64, [1])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("Gather", ["x", "i"], ["y"])], "g", [x, i], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), path)


def make_product(path):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 3])
    nodes = [helper.make_node("MatMul", ["x", "x"], ["product"]), helper.make_node("Relu", ["product"], ["y"])]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", [x], [y]), opset_imports=[helper.make_opsetid("", 13)]), path)


def make_case(folder, source, factor):
    folder.mkdir()
    (folder / "model.onnx").write_bytes(source.read_bytes())
    data = folder / "test_data_set_0"
    data.mkdir()
    x = np.array([[1, -2, 3]], np.float32)
    (data / "input_0.pb").write_bytes(numpy_helper.from_array(x, "x").SerializeToString())
    (data / "output_0.pb").write_bytes(numpy_helper.from_array(factor * np.maximum(x, 0), "y").SerializeToString())


def make_labels(path):
    """Strings to numbers and back, a bias that is an input with a value, and maps."""
    x = helper.make_tensor_value_info("x", TensorProto.STRING, ["n", 1])
    b = helper.make_tensor_value_info("b", TensorProto.FLOAT, [1])
    maps = onnx.TypeProto()
    maps.sequence_type.elem_type.map_type.key_type = TensorProto.STRING
    maps.sequence_type.elem_type.map_type.value_type.tensor_type.elem_type = TensorProto.FLOAT
    nodes = [helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_strings=["a", "é"], values_floats=[4.0, 5.0], default_float=0.0),
             helper.make_node("Add", ["y", "b"], ["sum"]), helper.make_node("ZipMap", ["sum"], ["z"], domain="ai.onnx.ml", classlabels_strings=["one"]),
             helper.make_node("Identity", ["x"], ["same"])]
    outputs = [helper.make_tensor_value_info("sum", TensorProto.FLOAT, None), helper.make_value_info("z", maps), helper.make_tensor_value_info("same", TensorProto.STRING, None)]
    graph = helper.make_graph(nodes, "g", [x, b], outputs, [numpy_helper.from_array(np.array([0.5], np.float32), "b")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 2)], ir_version=8), path)


def check_strings(folder, run, claim, refused):
    model = folder / "labels.onnx"
    make_labels(model)
    words = np.array([["é"], ["a"], ["?"]])
    np.save(folder / "words.npy", words)
    (folder / "words.txt").write_text("é\na\n?\n")
    (folder / "words.pb").write_bytes(numpy_helper.from_array(words.astype(object), "x").SerializeToString())
    for ending in ("npy", "txt", "pb"):
        made = json.loads(run("run", model, "--input", f"x={folder / 'words'}.{ending}", "--output", folder / "labels", "--json").stdout)["outputs"]
        claim([each.get("values") for each in made] == [[5.5, 4.5, 0.5], None, ["é", "a", "?"]], f"strings in .{ending}: {made}")
        claim(made[1]["elements"][0] == {"keys": {"values": ["one"]}, "values": {"greatest": 5.5, "least": 5.5, "mean": 5.5, "nan": 0, "values": [5.5]}}, f"maps: {made[1]}")
    claim((np.load(folder / "labels" / "same.npy") == words).all() and (np.load(folder / "labels" / "z.npy") == [[5.5], [4.5], [0.5]]).all(), "strings and maps should be saved")
    np.save(folder / "b.npy", np.array([1], np.float32))
    text = run("run", model, "--input", f"x={folder / 'words.txt'}", "--input", f"b={folder / 'b.npy'}").stdout
    claim("values 6, 5, 1" in text and "'é', 'a', '?'" in text and "a map of 1: keys 'one'; value 6" in text, f"the text of strings and maps: {text}")
    claim("input  b: f32[1], which has a value" in run("check", model).stdout, "check should list inputs with a value")
    refused(["Input 'x' is string[n, 1]; only tensors of numbers can be random", "FILE.txt"], "run", model, "--input", "x=random")


EVIL = "\n\x1b[31m\u202e\x07"


def make_evil(path, op):
    """A model whose names command the terminal."""
    given, made = onnx.helper.make_tensor_value_info(f"x{EVIL}", onnx.TensorProto.FLOAT, [f"d{EVIL}", 3]), f"y{EVIL}"
    node = onnx.helper.make_node(op, [given.name], [made], name=f"node{EVIL}")
    graph = onnx.helper.make_graph([node], "g", [given], [onnx.helper.make_tensor_value_info(made, onnx.TensorProto.FLOAT, None)])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path)


def main():
    tool = Tool(sys.argv[1])
    run, claim = tool.run, tool.claim

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model = folder / "model.onnx"
        make_model(model)
        x = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
        np.save(folder / "x.npy", x)

        report = json.loads(run("run", model, "--input", f"x={folder / 'x.npy'}", "--output", folder / "out", "--report", "--repeat", 3, "--json").stdout)
        claim(np.array_equal(np.load(folder / "out" / "y.npy"), np.maximum(x, 0)), "the output file should hold relu(x)")
        claim(len(report["runs_ms"]) == 2 and report["executions"][0]["name"] == "/relu", "the report should hold times and executions")
        run("run", model, "--input", f"x={folder / 'x.npy'}", "--output", folder / "out", "--format", "pb")
        back = numpy_helper.to_array(onnx.load_tensor(folder / "out" / "y.pb"))
        claim(np.array_equal(back, np.maximum(x, 0)), "the .pb should hold relu(x)")
        run("run", model, "--input", f"x={folder / 'out' / 'y.pb'}")
        text = run("run", model, "--input", "x=random", "--dim", "batch=4").stdout
        claim("y: f32[4, 3]" in text, "a named dim should be what --dim says: " + text)
        claim("y: f32[2, 3]" in run("run", model, "--input", "x=random:2x3").stdout, "a random input should have the shape given")

        claim("\n    values 1, 0, 3, 0, 5, 0\n" in run("run", model, "--input", f"x={folder / 'x.npy'}").stdout, "few values should be shown")
        output = report["outputs"][0]
        claim((output["values"], output["least"], output["greatest"], output["mean"], output["nan"]) == ([1, 0, 3, 0, 5, 0], 0, 5, 1.5, 0),
              f"the JSON should hold what an output holds: {output}")
        large = np.linspace(-1, 1, 3000, dtype=np.float32).reshape(1000, 3)
        large[0, 0] = large[5, 1] = np.nan
        large[999, 2] = np.inf
        np.save(folder / "large.npy", large)
        claim("\n    least 0, greatest inf, mean inf, 2 of 3000 NaN\n" in run("run", model, "-i", f"x={folder / 'large.npy'}").stdout,
              "an output with NaNs should say how many")
        claim("\n    no elements\n" in run("run", model, "-i", "x=random:0x3").stdout, "an empty output should be called empty")

        count = "launches ran on the host; --report says which and why"
        claim(count not in run("run", model, "-i", "x=random").stdout, "the host itself leaves nothing to the host")
        if "null:0" in run("devices").stdout:
            product = folder / "product.onnx"
            make_product(product)
            given = ("run", product, "--device", "null", "-i", "x=random")
            claim(f"\n1 of 2 {count}\n" in run(*given).stdout, "a device that leaves work to the host should be reported")
            claim(count not in run(*given, "--report").stdout + run(*given, "--json").stdout, "but not beside the report")

        unnamed = folder / "unnamed.onnx"
        make_gather(unnamed)
        np.save(folder / "seven.npy", np.array([7], np.int64))
        failed = run("run", unnamed, "-i", "x=random", "-i", f"i={folder / 'seven.npy'}", code=1).stderr
        claim(f"while running '{unnamed}'" in failed, "an error of a run should name the model: " + failed)

        def refused(words, *arguments, code=1):
            done = run(*arguments, code=code)
            claim(all(word in done.stderr for word in words), f"{arguments}: should say {words}, said: {done.stderr}")

        claim("It can run on cpu:0." in run("check", model).stdout, "check should say that the model can run")
        claim('"refusals": []' in run("check", model, "--json").stdout, "check should say so in JSON")
        check_strings(folder, run, claim, refused)
        alone = run("run", model)
        claim("input 'x', f32[batch, 3], is random; --input x=FILE.npy gives it, --dim batch=N sets" in alone.stderr, "run without inputs: " + alone.stderr)
        claim("y: f32[1, 3]" in alone.stdout, "run without inputs: " + alone.stdout)
        refused(["must be f32[batch, 3], but f32[3, 4] was given"], "run", model, "--input", "x=random:3x4")
        refused(["The model has no input 'q'; its inputs are 'x'. Input 'x', f32[batch, 3], is missing.", "--input x=random"],
                "run", model, "--input", "q=random")
        refused(["The model has no input 'q'; its inputs are 'x'.\n"], "run", model, "--input", "q=no.npy", "--input", "x=random")
        refused(["--input gives 'x' more than once: 'one.npy', then 'two.npy'."], "run", model, "-i", "x=one.npy", "-i", "x=two.npy")
        refused(["--device: must not be empty"], "run", model, "--device", "", code=2)
        refused(["no dim named 'bacth'; their named dims are 'batch'."], "run", model, "--input", "x=random", "--dim", "bacth=7")
        refused(["--dim gives 'batch' more than once"], "run", model, "-i", "x=random", "--dim", "batch=7", "--dim", "batch=8")
        refused(["Input 'x' of shape [1000000000000, 3] takes 12000000000000 bytes, but this machine has "],
                "run", model, "--input", "x=random:1000000000000x3")
        refused(["'10000000000000000000' in the shape '10000000000000000000x3' is too large"],
                "run", model, "--input", "x=random:10000000000000000000x3")
        refused(["cannot be of shape [9000000000000000000, 3]"], "run", model, "--input", "x=random:9000000000000000000x3")
        refused(["'-1' in the shape '-1x3' is not a whole number of at least 0"], "run", model, "--input", "x=random:-1x3")
        refused(["'x' is not of the form NAME=FILE.npy"], "run", model, "--input", "x")
        refused(["ends neither in .npy nor in .pb"], "run", model, "--input", "x=x.txt")
        refused(["'x.npy' cannot be read: No such file"], "run", model, "--input", "x=x.npy")
        refused(["'three' in the shape"], "run", model, "--input", "x=random:threex3")
        refused(["nothing.onnx' cannot be opened: No such file"], "run", folder / "nothing.onnx")
        refused(["not an ONNX model"], "run", folder / "x.npy")
        refused(["no_such_device"], "run", model, "--device", "no_such_device", "--input", "x=random")
        refused(["MODEL is required"], "run", code=2)
        refused(["--precision: best not in {stated,relaxed,portable,full}"], "run", model, "--precision", "best", code=2)
        foreign = folder / "no_utf8_\udcff.onnx"  # a byte that is not UTF-8
        make_model(foreign)
        for arguments in (("run", "-i", "x=random"), ("check",), ("profile", "--repeat", "2", "-i", "x=random")):
            report = json.loads(run(arguments[0], foreign, "--json", *arguments[1:]).stdout)
            claim(report["model"].endswith("no_utf8_\ufffd.onnx"), f"{arguments}: JSON of a file whose name is not UTF-8: {report['model']!r}")
        for op, code in (("Relu", 0), (f"No{EVIL}", 1)):
            evil = folder / f"evil{code}.onnx"
            make_evil(evil, op)
            given = ("-i", f"x{EVIL}=random", "--dim", f"d{EVIL}=2")
            for arguments in (("run", evil, "--report", *given), ("check", evil), ("profile", evil, "--repeat", "2", *given)):
                done = run(*arguments, code=code)
                shown = done.stdout + done.stderr
                claim(not any(c in shown for c in "\x1b\u202e\x07") and "\\n\\x1b[31m\\u202e\\x07" in shown,
                      f"{arguments}: names should only show, but: {shown!r}")
            named = ["input 'x\\n\\x1b[31m\\u202e\\x07', f32", "--dim d\\n\\x1b[31m\\u202e\\x07=N"] if code == 0 else ["node 0 (node\\n"]
            refused(named, "run", evil, code=code)
        product = folder / "graph_product.onnx"
        make_product(product)
        plain = run("graph", product, "--pass", "none").stdout
        claim("matmul(%1, %1) : f32[3, 3]" in plain and "relu(%2) : f32[3, 3]" in plain, "the graph without passes: " + plain)
        joined = run("graph", product, "--output", folder / "graph").stdout
        claim("graph.txt: 1 nodes" in joined, "a graph in a folder: " + joined)
        claim("matmul(%1, %1) then relu" in (folder / "graph" / "graph.txt").read_text(), "the product should take the relu")
        direct = run("graph", product, "--pass", "none", "--run").stdout
        claim(direct.startswith("output 0: f32 [3, 3]: least 0, "), "a graph that runs: " + direct)
        claim(run("graph", folder / "graph" / "graph.txt", "--run").stdout == direct, "a text should run as its graph does")
        dumped = run("graph", product, "--run", TENON_DUMP=folder / "dumps").stdout
        stages = sorted((folder / "dumps").glob("*/*.txt"))
        claim([stage.name[3:] for stage in stages] == ["recorded.txt", "epilogues.txt"], f"the stages of a dump: {stages}")
        for stage in stages:
            claim(run("graph", stage, "--run").stdout == dumped, f"{stage} should run as its graph does")
        refused(["There is no pass 'epilogue', perhaps 'epilogues'; the passes are quantised, fold_constants,"], "graph", product, "-p", "epilogue")
        open_sizes = run("graph", model, "--pass", "none", "--output", folder / "open").stdout
        text = (folder / "open" / "graph.txt").read_text()
        claim("relu(%1) : f32[S0, 3]" in text, "a dynamic dim should be a symbol: " + open_sizes + text)
        claim("relu(%1) : f32[4, 3]" in run("graph", model, "--sizes", "batch=4", "--pass", "none").stdout, "--sizes gives numbers")
        again = run("graph", folder / "open" / "graph.txt", "--sizes", "S0=5", "--run").stdout
        claim(again.startswith("output 0: f32 [5, 3]: "), "a text with a symbol runs at a size: " + again)
        refused(["was made for 1 < S0", "but S0 (batch, axis 0 of input 'x') is 1."],
                "graph", folder / "open" / "graph.txt", "--sizes", "S0=1", "--run")
        (folder / "wrong.txt").write_text('graph "g"\n%1 = input f32[2] on cpu:0\n%2 = relo(%1)\nreturn %2\n')
        refused(["The text is not a graph: line 3: at position 9 there is no op 'relo'.", "while reading '", "wrong.txt'"],
                "graph", folder / "wrong.txt")
        refused(["no.txt' cannot be read"], "graph", folder / "no.txt")
        refused(["tenon: there is no command 'runn'; did you mean run?\nThe commands are run, profile, tune, compare, check, graph, compile, plan, devices, "], "runn", model, code=2)
        refused(["tenon: there is no command 'frobnicate'.\n"], "frobnicate", code=2)
        refused(["tenon run: the argument 'b.onnx' is one too many.\n  `tenon help run` says what it takes."],
                "run", model, "b.onnx", "c.onnx", code=2)
        refused(["tenon run: the option '--devcie' is unknown; did you mean --device?"], "run", model, "--devcie", "cpu", code=2)
        refused(["tenon devices: the option '--frobnicate=1' is unknown.\n"], "devices", "--frobnicate=1", code=2)
        refused(["there is no command 'version'; did you mean --version?"], "version", code=2)
        refused(["--tolerance: must be a number of at least 0, but is -1.\n"],
                "compare", model, "-d", "cpu", "-d", "cpu", "--tolerance", -1, code=2)
        refused(["--time-limit: must be a number above 0, but is 0.\n"], "onnx-test", folder, "--time-limit", 0, code=2)
        refused(["the value 'x' of --seed is not an allowed number."], "run", model, "--seed", "x", code=2)
        refused(["--external-data: there is no folder 'nowhere'"], "run", model, "--external-data", "nowhere", code=2)
        for empty in ("empty.npy", "empty.pb"):
            (folder / empty).touch()
            refused([f"{empty}' is empty."], "run", model, "-i", f"x={folder / empty}")
        (folder / "folder.npy").mkdir()
        refused(["folder.npy' is a folder, not a file."], "run", model, "-i", f"x={folder / 'folder.npy'}")
        refused(["--repeat", "0"], "run", model, "--repeat", 0, code=2)
        refused(["is not a folder"], "onnx-test", folder / "none")

        cases = folder / "cases"
        cases.mkdir()
        make_case(cases / "right", model, 1)
        make_case(cases / "wrong", model, 2)
        make_case(cases / "loose", model, 1.01)
        (cases / "loose" / "data.json").write_text('{"rtol": 0.1}')
        done = run("onnx-test", cases, code=1)
        claim(done.stdout.splitlines()[-2] == "2 passed, 1 failed, 0 skipped", "the last line but one should count the cases: " + done.stdout)
        claim("element [0, 0] is 1 where 2 is expected" in done.stdout, "a case that differs should say where: " + done.stdout)
        claim(done.stderr == "", "no progress in a pipe: " + done.stderr)
        lines = run("onnx-test", cases, "--json", "--jobs", 2, code=1).stdout.splitlines()
        verdicts = {row["case"]: row["verdict"] for row in map(json.loads, lines[:-1])}
        claim(verdicts == {"right": "passed", "wrong": "failed", "loose": "passed"}, f"one JSON object per case: {lines}")
        summary = json.loads(lines[-1])
        claim((summary["passed"], summary["failed"], summary["skipped"]) == (2, 1, 0) and summary["launches"]["native"] == 3,
              f"and one that counts them: {summary}")
        claim("3 passed, 0 failed, 0 skipped\n" in run("onnx-test", cases, "--rtol", 2).stdout, "an option decides the tolerance")
        for kind, number in (("output", 1), ("output", 7), ("input", 1)):
            surplus = folder / f"surplus_{kind}_{number}"
            make_case(surplus, model, 1)
            given = surplus / "test_data_set_0"
            (given / f"{kind}_{number}.pb").write_bytes((given / "output_0.pb").read_bytes())
            done = run("onnx-test", surplus, code=1)
            claim(f"it has 1 {kind}s, but test_data_set_0 holds 2" in done.stdout, f"a surplus {kind} should fail the case: {done.stdout}")

    alone = run(code=2)
    claim("Run an ONNX model" in alone.stdout and not alone.stderr, f"without arguments the tool shows its help: {alone}")
    claim("cpu:0" in run("devices").stdout, "devices should list cpu:0")
    claim(any(d["device"] == "cpu:0" for d in json.loads(run("devices", "--json").stdout)["devices"]), "so should its JSON")
    report = json.loads(run("doctor", "--json").stdout)
    claim({"key": "device", "variable": "TENON_DEVICE", "value": "cpu", "level": "environment"}.items()
          <= next(s for s in report["settings"] if s["key"] == "device").items(), "doctor should name the level that won")
    claim("What to do" in run("doctor", code=1, TENON_DEVICE="nothing").stdout
          or "nothing" in run("doctor", code=1, TENON_DEVICE="nothing").stdout, "doctor should say what is wrong")
    claim("softmax" in run("ops").stdout and "Softmax" in run("ops", "--onnx").stdout, "ops should list the ops")
    claim(any(op["name"] == "matmul" for op in json.loads(run("ops", "--json").stdout)["ops"]), "ops should list them as JSON")
    claim("commit" in run("--version").stdout and "TENON_DEVICE" in run("help", "env").stdout, "version and help env")
    claim("\n  env " in run("help").stdout, "help alone should name the topics")
    claim("no command or topic 'nothing'.\nTopics" in run("help", "nothing", code=2).stderr, "for an unknown topic the topics should be listed")
    claim("or topic 'env_'; did you mean env?" in run("help", "env_", code=2).stderr, "and which is near")
    for command in ("run", "devices", "help"):
        claim(run("help", command).stdout == run(command, "--help").stdout, f"help {command} should be {command} --help")

    text = run("ops", "softmax").stdout
    claim(text.startswith("softmax(Tensor ") and "\n  Exponentials along an axis" in text, "an op should show how it is called: " + text)
    claim(len(json.loads(run("ops", "add", "--json").stdout)["signatures"]) == 3, "each signature of an op should be shown")
    claim("no op called 'sotfmax'; the nearest is 'softmax'." in run("ops", "sotfmax", code=1).stderr, "for an unknown op the nearest should be named")
    rows = run("ops", "--onnx", "ConvTranspose").stdout.splitlines()
    claim(len(rows) == 2 and rows[1].startswith("ConvTranspose "), f"one operator should be one row: {rows}")
    claim("'Covn' that models may use; did you mean Conv?" in run("ops", "--onnx", "Covn", code=1).stderr, "for an unknown operator, too")

    done = run("devices", code=1, TENON_DEVICE="cpv")
    claim("cpu:0" in done.stdout, "devices should list what it can, whatever the settings: " + done.stdout)
    claim("the value 'cpv' of the environment variable TENON_DEVICE names no device that is there. Did you mean cpu?" in done.stderr, done.stderr)
    claim("TENON_DEVICE names no device" in json.loads(run("devices", "--json", code=1, TENON_DEVICE="cpv").stdout)["settings_error"],
          "the JSON should say so, too")

    return tool.verdict()


if __name__ == "__main__":
    sys.exit(main())

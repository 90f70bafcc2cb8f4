"""Tests the installed package from outside.

Usage: package_test.py SOURCE_ROOT BUILD_FOLDER CMAKE CXX_COMPILER

Installs the build into a folder with a space in its name and moves that folder. Everything else uses the moved folder and
copies of two examples only: headers alone, find_package, pkg-config, the tool, a plug-in added by copying one file, and
the project that `tenon new-provider` writes.
"""
import concurrent.futures
import glob
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

EXPECTED = ["0.9959 0.0041", "0.7549 0.2451"]  # softmax(relu(x) @ w), computed with NumPy


# Prints the results of the sample's model, which is softmax(relu(x) @ w).
RUNS_A_MODEL = """
#include <tenon/onnx.h>
#include <tenon/tenon.h>

#include <iostream>
#include <vector>

int main(int, char** arguments) {
  const tenon::onnx::Model model = tenon::onnx::load(arguments[1]);
  tenon::onnx::Inputs inputs;
  for (const tenon::onnx::ValueInfo& info : model.inputs()) {
    std::vector<int64_t> dims;
    for (const tenon::onnx::Dim& dim : info.dims) dims.push_back(dim.value < 0 ? 1 : dim.value);
    inputs[info.name] = tenon::full(dims, 0.5, info.dtype);
  }
  for (const tenon::Tensor& output : model.run(inputs)) std::cout << output.elements() << " elements" << std::endl;
}
"""

# The lines of README.md that run a model.
LOADS_A_MODEL = """
#include <tenon/onnx.h>
#include <tenon/tenon.h>

#include <iostream>

int main(int, char** arguments) {
%s}
"""


# The ops of the example, from Python.
PYTHON = """
import copy, math, pickle, sys
import tenon

curves = tenon.ops.load(sys.argv[1])
assert tenon.ops.load(sys.argv[1]) is curves and tenon.ops.curves is curves
x = tenon.tensor([-1.0, 0.5, 2.0]).requires_grad_()
y = curves.soft_clip(x, limit=2.0)
y.backward(tenon.tensor([1.0, 1.0, 1.0]))
def at(tensor, i):
    return tenon.select(tensor.detach(), 0, i).item()
for i, v in enumerate([-1.0, 0.5, 2.0]):
    assert abs(at(y, i) - 2 * math.tanh(v / 2)) < 1e-6, (v, y)
    assert abs(at(x.grad, i) - (1 - math.tanh(v / 2) ** 2)) < 1e-6, (v, x.grad)
distance, number = curves.nearest_point(tenon.tensor([[0.0, 0.0], [3.0, 4.0]]), tenon.tensor([[3.0, 3.0]]))
assert at(distance, 0) == 1 and at(number, 0) == 1
assert not hasattr(tenon.ops, "curve")
assert repr(curves.swish2) == "<op curves::swish2>" and "beta" in curves.swish2.__doc__
assert copy.copy(curves.swish2) is curves.swish2 and pickle.loads(pickle.dumps(curves.swish2)) is curves.swish2
try:
    curves.staircase(x.detach(), "many")
except tenon.Error as error:
    assert "curves::staircase(): argument 'levels' must be int, not str" in str(error), error
else:
    raise AssertionError("a wrong argument was taken")
print("all of it")
"""


# The step of the README that is compiled; prints a loss per line.
TRAINS = """
#include <tenon/tenon.h>

#include <iostream>
#include <vector>

int main() {
  const std::vector<float> numbers = {1, 0, 2, 0, 1, 1, 2, 1, 0, 1, 1, 1};
  const tenon::Tensor x = tenon::Tensor::from<float>(numbers, {4, 3}), y = tenon::sum(x, 1, true);
%s}
"""


class Package:
    def __init__(self, source, build, cmake, compiler, work):
        self.source, self.build, self.cmake, self.compiler, self.work = source, build, cmake, compiler, work
        first = os.path.join(work, "first place")
        self.run(cmake, "--install", build, "--prefix", first)
        self.prefix = os.path.join(work, "moved to here")
        os.rename(first, self.prefix)
        self.lib = os.path.dirname(glob.glob(os.path.join(self.prefix, "lib*", "**", "libtenon.so"), recursive=True)[0])
        self.plugins = os.path.join(self.lib, "tenon")
        self.tool = os.path.join(self.prefix, "bin", "tenon")
        self.include = os.path.join(self.prefix, "include")
        self.failures = 0

    # A clean environment: no setting of Tenon, no library path, a home without configuration.
    def environment(self, **extra):
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("TENON_", "LD_", "GTEST_"))}
        return {**kept, "HOME": self.work, "XDG_CONFIG_HOME": self.work, "XDG_DATA_HOME": self.work, **extra}

    def run(self, *command, **extra):
        result = subprocess.run(command, capture_output=True, text=True, env=self.environment(**extra), cwd=self.work)
        if result.returncode != 0:
            raise RuntimeError(f"{shlex.join(command)} ended with {result.returncode}:\n{result.stdout}\n{result.stderr}")
        return result.stdout

    def build_example(self, name):
        source = os.path.join(self.work, name + " source")
        shutil.copytree(os.path.join(self.source, "sdk/app/examples", name), source)
        folder = os.path.join(self.work, name + " build")
        self.run(self.cmake, "-S", source, "-B", folder, "-G", "Ninja", "-DCMAKE_PREFIX_PATH=" + self.prefix,
                 "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_COMPILER=" + self.compiler)
        self.run(self.cmake, "--build", folder)
        return folder

    def devices(self):
        return self.run(self.tool, "devices")

    def refusal(self, *command, **extra):
        """Runs a command that must fail, and returns its stderr."""
        result = subprocess.run(command, capture_output=True, text=True, env=self.environment(**extra), cwd=self.work)
        assert result.returncode != 0, f"{shlex.join(command)} should fail: {result.stdout}"
        return result.stderr

    # ---- the claims ----

    def holds_what_readme_says(self):
        for path in (self.tool, os.path.join(self.lib, "libtenon-onnx.so"), os.path.join(self.plugins, "libtenon_cpu.so"),
                     os.path.join(os.path.dirname(self.tool), "tenon-conform"),
                     os.path.join(self.prefix, "libexec", "tenon", "tenon-probe"),
                     os.path.join(self.include, "tenon/tenon.h"), os.path.join(self.include, "tenon/onnx.h"),
                     os.path.join(self.include, "tenon/ep_api/ep_api.h")):
            assert os.path.isfile(path), f"{path} is missing"
        assert not glob.glob(os.path.join(self.prefix, "**", "*.a"), recursive=True), "a static library was installed"

    def names_no_folder_of_this_machine(self):
        for folder, _, files in os.walk(self.prefix):
            for name in files:
                path = os.path.join(folder, name)
                content = open(path, "rb").read()
                is_text = b"\0" not in content
                if is_text:
                    assert self.source.encode() not in content, f"{path} names {self.source}"
                elif content[:4] == b"\x7fELF":
                    for line in self.run("readelf", "-d", path).splitlines():
                        if "RUNPATH" in line or "RPATH" in line:
                            folders = line.split("[")[1].rstrip("]").split(":")
                            assert all(f.startswith("$ORIGIN") for f in folders if f), f"{path}: {line}"

    def headers_compile_alone(self):
        headers = [os.path.relpath(path, self.include)
                   for path in glob.glob(os.path.join(self.include, "**", "*.h*"), recursive=True)]
        assert len(headers) > 10, f"only {len(headers)} headers were installed"

        def compile_alone(header):
            source = os.path.join(self.work, header.replace("/", "_") + ".cpp")
            with open(source, "w") as file:
                file.write(f"#include <{header}>\n")
            self.run(self.compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", self.include, source)

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(compile_alone, headers))

    def an_older_language_gets_one_error(self):
        for header in sorted(glob.glob(os.path.join(self.include, "tenon", "*.h"))):
            name = os.path.basename(header)
            if name in ("tenon_c.h", "language.h"):
                continue
            source = os.path.join(self.work, "older.cpp")
            with open(source, "w") as file:
                file.write(f"#include <tenon/{name}>\nint main() {{ return no_such_name; }}\n")
            done = subprocess.run([self.compiler, "-std=c++17", "-fsyntax-only", "-I", self.include, source], capture_output=True, text=True)
            errors = [line for line in done.stderr.splitlines() if "error:" in line]
            assert "Tenon needs C++20" in errors[0] and len(errors) == 2, f"{name}: {done.stderr}"

    def hello_runs(self):
        self.hello = os.path.join(self.build_example("hello"), "hello")
        lines = self.run(self.hello).splitlines()
        assert lines[1:] == EXPECTED, lines
        assert " on cpu:0" in lines[0], lines

    def a_program_in_c_runs_a_model(self):
        program = os.path.join(self.build_example("c"), "run_model")
        model = os.path.join(self.source, "sdk", "app", "examples", "demo", "shapes.onnx")
        printed = self.run(program, model, "cpu")
        assert re.fullmatch(r"\S+: f32\[batch, 8\] on cpu:0, begins with [-+.e\d]+\n", printed), printed
        assert "absent.onnx" in self.refusal(program, "absent.onnx")
        if shutil.which("pkg-config") is None:
            return
        flags = shlex.split(self.run("pkg-config", "--cflags", "--libs", "tenon-c",
                                     PKG_CONFIG_PATH=os.path.join(self.lib, "pkgconfig")))
        again = os.path.join(self.work, "by pkg-config of tenon-c")
        self.run("cc", "-std=c11", "-pedantic", "-Wall", "-Werror", os.path.join(self.work, "c source", "run_model.c"), *flags,
                 f"-Wl,-rpath-link,{self.lib}", "-o", again)
        assert self.run(again, model, LD_LIBRARY_PATH=self.lib, TENON_DEVICE="cpu") == printed

    def ops_from_outside_give_the_numbers_of_their_formulas(self):
        self.ops_build = self.build_example("ops")
        self.curves = os.path.join(self.ops_build, "libtenon_ops_curves.so")
        self.dumped = os.path.join(self.work, "dumped")
        printed = self.run(os.path.join(self.ops_build, "use_curves"), "cpu", TENON_DUMP=self.dumped)
        self._check_curves(dict(line.split(": ", 1) for line in printed.splitlines() if not line.startswith("refused")))
        refused = re.findall("^refused: (.*)$", printed, re.MULTILINE)
        for sentence, found in zip((
                "curves::staircase: levels is 1; it must be 2 or more.",
                "curves::soft_clip: input is i64; it may be f32, f64.",
                "There is no op called 'curves::soft_clop'; the nearest is 'curves::soft_clip'.",
                "There is no op called 'curve::soft_clip': no library of ops 'curve' is loaded, but 'curves'."), refused, strict=True):
            assert sentence in found, (sentence, found)

    def ops_from_outside_serve_an_asynchronous_device(self):
        folder = os.path.join(self.work, "asynchronous fake")  # alone: the ladder must not use the other fakes
        os.makedirs(folder)
        shutil.copy(os.path.join(self.build, "lib", "fakes", "libtenon_async.so"), folder)
        printed = self.run(os.path.join(self.ops_build, "use_curves"), "async", TENON_PLUGIN_PATH=folder)
        self._check_curves(dict(line.split(": ", 1) for line in printed.splitlines() if not line.startswith("refused")))

    def _check_curves(self, printed):
        x = [[-2, -0.75, 0.25], [0.5, 1, 3]]
        flat, points = [v for row in x for v in row], x
        def sigmoid(v):
            return 1 / (1 + math.exp(-v))
        def swish(v, beta):
            return v * sigmoid(beta * v)
        def softmax(row):
            total = sum(math.exp(v) for v in row)
            return [math.exp(v) / total for v in row]
        def slope(function, v, step=1e-5):
            return (function(v + step) - function(v - step)) / (2 * step)
        def stairs(v, levels):
            return min((-1 + 2 * i / (levels - 1) for i in range(levels)), key=lambda level: abs(level - v))
        queries = [[0, 1, 2], [-3, -1, 0]]
        apart = [[sum((a - b) ** 2 for a, b in zip(q, p)) for p in points] for q in queries]
        def near(row, i, v):
            moved = [list(p) for p in points]
            moved[row][i] = v
            return sum(min(sum((a - b) ** 2 for a, b in zip(q, p)) for p in moved) ** 2 for q in queries)
        def log_row(row, i, v):
            row = row[:i] + [v] + row[i + 1:]
            return sum(math.log(s) ** 2 for s in softmax(row))
        expected = {
            "swish2": [swish(v, 1.5) for v in flat],
            "by name": [swish(v, 1.5) for v in flat],
            "soft_clip": [2 * math.tanh(row[i] / 2) for i in range(3) for row in x],
            "staircase": [stairs(v, 5) for v in flat],
            "row_softmax": softmax(x[0]) + softmax(x[1]),
            "distance": [min(row) for row in apart],
            "number": [row.index(min(row)) for row in apart],
            "gradient of swish2": [slope(lambda u: swish(u, 1.5) ** 2, v) for v in flat],
            "gradient of soft_clip": [slope(lambda u: (2 * math.tanh(u / 2)) ** 2, v) for v in flat],
            "gradient of row_softmax": [slope(lambda u, row=row, i=i: log_row(row, i, u), row[i]) for row in x for i in range(3)],
            "gradient of nearest_point": [slope(lambda u, row=row, i=i: near(row, i, u), x[row][i]) for row in range(2) for i in range(3)],
        }
        rows = [softmax([3 * swish(v, 1) for v in row]) for row in x]
        expected["eager"] = [0.5 * math.tanh(s / 0.5) + stairs(v, 9) for s, v in zip(rows[0] + rows[1], flat)]
        expected["compiled"] = expected["eager"]
        expected["compiled, another size"] = expected["eager"][3:]
        assert set(expected) == set(printed), set(expected) ^ set(printed)
        for name, numbers in expected.items():
            found = [float(word) for word in printed[name].split()]
            assert len(found) == len(numbers), (name, found)
            assert all(abs(a - b) <= 2e-5 * max(1, abs(b)) for a, b in zip(found, numbers)), (name, found, numbers)

    def a_graph_with_ops_from_outside_is_printed_and_read(self):
        texts = [path for path in glob.glob(os.path.join(self.dumped, "**", "*.txt"), recursive=True)
                 if "curves::staircase(" in open(path).read()]
        assert texts, "no text of a graph names an op of the library"
        text = open(texts[0]).read()
        assert "curves::soft_clip(" in text and "curves::row_softmax(" in text and "curves::swish2" not in text, text
        known = self.run(self.tool, "graph", texts[0], "--run", "--device", "cpu", TENON_OPS_PATH=self.ops_build)
        assert re.search(r"^output 0: f32 \[[12], 3\]: values", known, re.MULTILINE), known
        unknown = self.refusal(self.tool, "graph", texts[0], "--run", "--device", "cpu")
        assert "there is no op 'curves::" in unknown, unknown

    def the_tool_lists_ops_from_outside(self):
        for extra in ({"TENON_OPS_PATH": self.ops_build}, {}):
            option = [] if extra else ["--ops", self.curves]
            listed = json.loads(self.run(self.tool, "ops", "--json", "--device", "cpu", *option, **extra))["ops"]
            found = {op["name"]: op["devices"]["cpu:0"]["dtypes"] for op in listed if op["name"].startswith("curves::")}
            assert sorted(found) == [f"curves::{name}" for name in ("nearest_point", "row_softmax", "silu2", "soft_clip", "staircase", "swish2")], found
            assert found["curves::soft_clip"]["f64"]["served"] == "native", found["curves::soft_clip"]
            assert found["curves::soft_clip"]["i32"]["served"] == "refused", found["curves::soft_clip"]
        shown = self.run(self.tool, "ops", "curves::staircase", "--ops", self.curves, "--device", "cpu")
        assert "curves::staircase(Tensor input, int levels = 16)" in shown, shown
        assert "no library of ops 'curves' is loaded" in self.refusal(self.tool, "ops", "curves::staircase")

    def a_library_of_ops_that_does_not_fit_is_refused(self):
        other = os.path.join(self.work, "libtenon_ops_other.so")
        with open(self.curves, "rb") as file:
            content = file.read()
        version = self.run(self.tool, "--version").split()[1].encode()
        with open(other, "wb") as file:
            file.write(content.replace(version + b"\0", b"9" * len(version) + b"\0"))
        refused = self.refusal(self.tool, "ops", "--ops", other)
        assert f"was made for Tenon {'9' * len(version)}, and this is Tenon {version.decode()}." in refused, refused
        shutil.copy(self.curves, other)
        refused = self.refusal(self.tool, "ops", "--ops", self.curves, "--ops", other)
        assert "holds the ops 'curves', and another library of this name was loaded before." in refused, refused
        plugin = os.path.join(self.plugins, "libtenon_cpu.so")
        assert "holds no ops" in self.refusal(self.tool, "ops", "--ops", plugin)
        assert os.path.join(self.work, "none.so") in self.refusal(self.tool, "ops", "--ops", os.path.join(self.work, "none.so"))

    def a_row_without_a_meaning_gets_the_sentence_of_the_generator(self):
        source = os.path.join(self.work, "ops source")
        path = os.path.join(source, "ops.yaml")
        with open(path) as file:
            text = file.read()
        with open(path, "w") as file:
            file.write(text.replace("infer: like_input", "infer: like_input\n    method: true", 1))
        refused = subprocess.run([self.cmake, "--build", self.ops_build], capture_output=True, text=True, env=self.environment())
        assert refused.returncode != 0 and "soft_clip: `method` is for Tenon's own ops" in refused.stdout, refused.stdout
        with open(path, "w") as file:
            file.write(text.replace("library: curves", "ours: curves"))
        refused = self.refusal(self.cmake, "-S", source, "-B", self.ops_build)
        assert "has no line `library: name`" in " ".join(refused.split()), refused
        with open(path, "w") as file:
            file.write(text)

    def python_has_ops_from_outside(self):
        with open(os.path.join(self.build, "CMakeCache.txt")) as file:
            python = dict(re.findall(r"^(\w+):\w+=(.*)$", file.read(), re.MULTILINE)).get("TENON_PYTHON_USED")
        if python is None:
            print("    the Python package is not built, so tenon.ops is not tried")
            return
        program = os.path.join(self.work, "curves.py")
        with open(program, "w") as file:
            file.write(PYTHON)
        extra = {"PYTHONPATH": os.path.join(self.build, "lib", "python"), "TENON_PLUGIN_PATH": self.plugins, "TENON_DEVICE": "cpu"}
        assert self.run(python, program, self.curves, **extra) == "all of it\n"
        listed = self.run(python, "-c", "import tenon; print(tenon.ops.curves.silu2)", TENON_OPS_PATH=self.ops_build, **extra)
        assert listed == "<op curves::silu2>\n", listed

    def _by_pkg_config(self, package, source):
        """Compiles `source` with the flags of the package and returns the program; None without pkg-config."""
        if shutil.which("pkg-config") is None:
            print(f"    pkg-config is not installed, so {package}.pc is not tried")
            return None
        where = os.path.join(self.lib, "pkgconfig")
        flags = shlex.split(self.run("pkg-config", "--cflags", "--libs", package, PKG_CONFIG_PATH=where))
        program = os.path.join(self.work, f"by pkg-config of {package}")
        self.run(self.compiler, "-std=c++20", source, *flags, "-o", program)
        return program

    def pkg_config_builds_hello(self):
        program = self._by_pkg_config("tenon", os.path.join(self.work, "hello source", "hello.cpp"))
        if program is not None:
            assert self.run(program, LD_LIBRARY_PATH=self.lib).splitlines()[1:] == EXPECTED

    def pkg_config_builds_the_step_that_the_readme_compiles(self):
        with open(os.path.join(self.source, "README.md")) as file:
            blocks = re.findall(r"^```cpp\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)
        [block] = [block for block in blocks if "tenon::compile(" in block]
        source = os.path.join(self.work, "trains.cpp")
        with open(source, "w") as file:
            file.write(TRAINS % block)
        program = self._by_pkg_config("tenon", source)
        if program is None:
            return
        losses = [float(line) for line in self.run(program, LD_LIBRARY_PATH=self.lib, TENON_DEVICE="cpu").splitlines()]
        assert len(losses) == 100 and losses[-1] < 0.01 * losses[0], losses

    def pkg_config_builds_a_program_that_runs_a_model(self):
        source = os.path.join(self.work, "runs a model.cpp")
        with open(source, "w") as file:
            file.write(RUNS_A_MODEL)
        program = self._by_pkg_config("tenon-onnx", source)
        if program is None:
            return
        model = glob.glob(os.path.join(self.prefix, "**", "provider", "model.onnx"), recursive=True)[0]
        printed = self.run(program, model, LD_LIBRARY_PATH=self.lib)
        assert re.fullmatch(r"(\d+ elements\n)+", printed), printed

    def pkg_config_builds_the_lines_of_the_readme_that_run_a_model(self):
        with open(os.path.join(self.source, "README.md")) as file:
            blocks = re.findall(r"^```cpp\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)
        [block] = [block for block in blocks if "tenon::onnx::load(" in block]
        source = os.path.join(self.work, "loads a model.cpp")
        with open(source, "w") as file:
            file.write(LOADS_A_MODEL % block.replace('"model.onnx"', "arguments[1]"))
        program = self._by_pkg_config("tenon-onnx", source)
        if program is not None:
            model = os.path.join(self.source, "sdk", "app", "examples", "demo", "shapes.onnx")
            printed = self.run(program, model, LD_LIBRARY_PATH=self.lib, TENON_DEVICE="cpu")
            assert "f32 [1, 8] cpu:0" in printed, printed

    def the_prefix_says_what_lies_where(self):
        path = glob.glob(os.path.join(self.prefix, "**", "doc", "tenon", "README.md"), recursive=True)[0]
        text = open(path).read()
        named = re.findall(r"^\| `([^`]+)`", text, re.MULTILINE)
        assert len(named) > 5, named
        for place in named:
            assert os.path.exists(os.path.join(self.prefix, place)), f"{path} names {place}, which is not there"
        for command in re.findall(r"^    \S*/tenon (\S+)", text, re.MULTILINE):
            assert command in self.run(self.tool, "--help-all"), f"{path} names tenon {command}"

    def tool_lists_the_cpu(self):
        assert "cpu:0" in self.devices()
        assert "sample:0" not in self.devices()

    def a_provider_that_crashes_is_left_out_by_the_moved_helper(self):
        broken = os.path.join(self.work, "broken plugins")
        os.mkdir(broken)
        shutil.copy(os.path.join(self.build, "lib", "probed", "libtenon_traps.so"), broken)
        result = subprocess.run([self.tool, "devices", "--probe"], capture_output=True, text=True,
                                env=self.environment(TENON_PLUGIN_PATH=broken))
        assert result.returncode == 0 and "cpu:0" in result.stdout, result
        assert "'traps' was not loaded: the child process that probed it died of signal 5 (SIGTRAP)." in result.stderr, result.stderr
        assert "without having been probed" not in result.stderr, result.stderr

    def without_the_helper_a_provider_is_loaded_unprobed_and_told(self):
        helper = os.path.join(self.prefix, "libexec", "tenon", "tenon-probe")
        os.rename(helper, helper + ".away")
        alone = {**self.environment(), "TENON_PROVIDERS": "cpu"}  # a driver of another provider may end the process
        result = subprocess.run([self.tool, "devices", "--probe"], capture_output=True, text=True, env=alone)
        os.rename(helper + ".away", helper)
        assert result.returncode == 0 and "cpu:0" in result.stdout, result
        assert ("'cpu' is loaded without having been probed in a child process: the program tenon-probe is not "
                "installed with this library.") in result.stderr, result.stderr

    def a_plugin_is_taken_by_copying_one_file(self):
        built = os.path.join(self.build_example("provider"), "libtenon_sample.so")
        needed = [line for line in self.run("readelf", "-d", built).splitlines() if "(NEEDED)" in line]
        assert not any("tenon" in line for line in needed), needed
        shutil.copy(built, self.plugins)
        assert "sample:0" in self.devices(), self.devices()

    def the_kit_passes_the_new_plugin_and_needs_no_source(self):
        text = self.run(self.tool, "conform", os.path.join(self.work, "provider build", "libtenon_sample.so"))
        assert ", 0 failed, 0 crashed, 0 hung, " in text and "No file of expectations" not in text, text

    def every_op_runs_on_the_new_device(self):
        lines = self.run(self.hello, "sample:0").splitlines()
        assert lines[0].endswith(" on sample:0"), lines
        assert lines[1:] == EXPECTED, lines
        assert self.run(self.hello, TENON_DEVICE="sample:0").splitlines() == lines

    def the_new_device_is_not_picked_unasked(self):
        assert " on cpu:0" in self.run(self.hello)

    def the_ladder_can_be_forbidden(self):
        result = subprocess.run([self.hello, "sample:0"], capture_output=True, text=True,
                                env=self.environment(TENON_FALLBACK="native"))
        assert result.returncode == 1 and "sample" in result.stderr, (result.returncode, result.stderr)

    def an_unknown_device_is_an_error_that_lists_what_there_is(self):
        result = subprocess.run([self.hello, "toaster:0"], capture_output=True, text=True, env=self.environment())
        assert result.returncode == 1, result
        assert "toaster" in result.stderr and "cpu:0" in result.stderr and "sample:0" in result.stderr, result.stderr

    def doctor_speaks_of_the_plugin_in_json(self):
        assert "sample" in json.dumps(json.loads(self.run(self.tool, "doctor", "--json")))

    def new_provider_writes_the_sample_under_another_name(self):
        self.project = os.path.join(self.work, "my npu")
        printed = self.run(self.tool, "new-provider", "npu2", "--to", self.project)
        self._holds_the_template(self.project, "sample", ["provider"])
        assert "tenon conform" in printed and self.prefix in printed, printed

    def _holds_the_template(self, project, word, folders):
        """Each file of the project equals a file of the examples in `folders` with npu2 in place of `word`."""
        before = {}
        for folder in folders:
            for path in glob.glob(os.path.join(self.source, "sdk/app/examples", folder)):
                paths = [os.path.join(path, name) for name in os.listdir(path)] if os.path.isdir(path) else [path]
                before.update({os.path.basename(path).replace(word, "npu2"): path for path in paths})
        assert sorted(os.listdir(project)) == sorted(before), (os.listdir(project), before)
        for name, path in before.items():
            with open(path, "rb") as given, open(os.path.join(project, name), "rb") as after:
                text = given.read()
                if not name.endswith(".onnx"):
                    for old, new in ((word, "npu2"), (word.capitalize(), "Npu2"), (word.upper(), "NPU2")):
                        text = text.replace(old.encode(), new.encode())
                assert after.read() == text, name

    def new_provider_refuses_in_a_sentence(self):
        file = os.path.join(self.work, "a file")
        open(file, "w").close()
        for words, expected in ((("npu2", "--to", self.project), "my npu is not empty (it holds '"),
                                (("Npu", "--to", "x"), "'Npu' is not a name for a provider"),
                                (("a" * 32, "--to", "x"), "at most 31"), (("9a", "--to", "x"), "begins with a lower-case letter"),
                                (("tenon", "--to", "x"), "'tenon' is a reserved name of Tenon"),
                                (("host", "--to", "x", "--force"), "'host' is a reserved name of Tenon"),
                                (("cpu", "--to", "x"), "there is a provider 'cpu' already (" + self.plugins + "/libtenon_cpu.so, beside the library)"),
                                (("../a", "--to", "x"), "'../a' is not a name"), (("", "--to", "x"), "'' is not a name"),
                                (("npu", "--to", file), "a file is a file, not a folder"),
                                (("npu", "--to", file + "/below"), "below cannot be made: Not a directory"),
                                (("npu", "--to", "/proc/npu"), "/proc/npu cannot be made")):
            result = subprocess.run([self.tool, "new-provider", *words], capture_output=True, text=True, cwd=self.work,
                                    env=self.environment())
            assert result.returncode == 1 and expected in result.stderr, (words, result.returncode, result.stderr)
            assert "What to do: " in result.stderr, result.stderr
        assert not os.path.exists(os.path.join(self.work, "x"))
        self.run(self.tool, "new-provider", "cpu", "--force", "--to", os.path.join(self.work, "another cpu"))

    def an_unknown_provider_is_told_of_every_way_to_be_found(self):
        result = subprocess.run([self.tool, "run", os.path.join(self.project, "model.onnx"), "--device", "npu2"],
                                capture_output=True, text=True, env=self.environment())
        assert result.returncode == 1 and "Copy libtenon_npu2.so into one of the folders searched: " in result.stderr, result.stderr
        assert "TENON_PLUGIN_PATH" in result.stderr, result.stderr

    def the_readme_of_a_new_provider_holds_word_by_word(self):
        with open(os.path.join(self.project, "README.md")) as file:
            self.commands = file.read().split("```\n")[1].splitlines()
        assert self.commands[-1].startswith("cmake --install build "), self.commands
        self.project_build = os.path.join(self.project, "build")
        parts = "\necho ----\n".join(["exec 2>&1", *self.commands[:-1]])
        printed = self.run("bash", "-euc", f"cd {shlex.quote(self.project)}\n{parts}", tenon=self.prefix).split("----\n")
        _, built, _, devices, conform, report, compared, validated = printed
        assert not glob.glob(os.path.join(self.project_build, "*.new")), os.listdir(self.project_build)
        assert "npu2:0" in devices, devices
        assert ", 0 failed, 0 crashed, 0 hung," in conform and "No file of expectations" not in conform, conform
        assert re.search(r"first_relu +Relu +relu +npu2:0 +plain \* +native", report), report
        assert re.search(r"MatMul +matmul +npu2:0 .*host .*native: npu2 has relu and add, not matmul", report), report
        assert "broken by the" not in validated, validated

    def the_model_of_a_new_provider_is_what_its_script_writes(self):
        folder = os.path.join(self.work, "a model")
        os.mkdir(folder)
        made = subprocess.run([sys.executable, os.path.join(self.project, "make_model.py")], cwd=folder, capture_output=True, text=True)
        if "ModuleNotFoundError" in made.stderr:
            print("    Python's onnx or NumPy is not installed, so make_model.py is not tried")
            return
        with open(os.path.join(folder, "model.onnx"), "rb") as again, open(os.path.join(self.project, "model.onnx"), "rb") as given:
            assert again.read() == given.read(), made.stderr

    def new_provider_writes_the_asynchronous_skeleton_under_another_name(self):
        self.asynchronous = os.path.join(self.work, "my asynchronous npu")
        words = (self.tool, "new-provider", "npu2", "--async", "--to", self.asynchronous)
        printed = self.run(*words)
        self._holds_the_template(self.asynchronous, "skeleton",
                                 ["async_provider", "provider/model.onnx", "provider/make_model.py"])
        assert "tenon conform" in printed and self.prefix in printed, printed
        again = subprocess.run(words, capture_output=True, text=True, env=self.environment())
        assert again.returncode == 1 and "my asynchronous npu is not empty (it holds '" in again.stderr, again
        for name, sentence in (("Npu", "'Npu' is not a name for a provider"), ("cpu", "there is a provider 'cpu' already")):
            refused = subprocess.run([self.tool, "new-provider", name, "--async", "--to", "y"], capture_output=True, text=True,
                                     cwd=self.work, env=self.environment())
            assert refused.returncode == 1 and sentence in refused.stderr, refused
        assert not os.path.exists(os.path.join(self.work, "y"))

    def the_readme_of_an_asynchronous_provider_holds_word_by_word(self):
        with open(os.path.join(self.asynchronous, "README.md")) as file:
            commands = file.read().split("```\n")[1].splitlines()
        assert commands[-1].startswith("cmake --install build "), commands
        parts = "\necho ----\n".join(["exec 2>&1", *commands[:-1]])
        printed = self.run("bash", "-euc", f"cd {shlex.quote(self.asynchronous)}\n{parts}", tenon=self.prefix)
        _, built, _, devices, conform, shown, report, validated = printed.split("----\n")
        assert "warning" not in built, built
        assert "npu2:0" in devices, devices
        assert ", 0 failed, 0 crashed, 0 hung," in conform and "No file of expectations" not in conform, conform
        for name in ("events/record_replaces", "events/wait_captures", "events/outlive_stream", "faults/in_order",
                     "primitives/gather/slices/f32/out_of_range_i64_above"):
            assert re.search(rf"^passed +{name}", shown, re.MULTILINE), shown
        assert re.search(r"first_relu +Relu +relu +npu2:0 +plain \* +native", report), report
        assert re.search(r"MatMul +matmul +npu2:0 .*host .*native: npu2 has no implementation of kind", report), report
        assert "broken by the" not in validated, validated
        print("   ", conform.splitlines()[-1])

    def a_network_on_an_asynchronous_provider_gives_the_cpus_numbers(self):
        model = os.path.join(self.source, "sdk/app/examples/demo/shapes.onnx")
        same = json.loads(self.run(self.tool, "compare", model, "--input", "image=random", "--device", "cpu", "--device", "npu2",
                                   "--json", TENON_PLUGIN_PATH=os.path.join(self.asynchronous, "build")))
        assert same["first_divergence"] is None and len(same["nodes"]) > 5, same

    def a_claim_that_a_new_provider_cannot_keep_is_a_failure(self):
        library = os.path.join(self.project_build, "libtenon_npu2.so")
        expect = os.path.join(self.project_build, "libtenon_npu2.expect")
        with open(expect, "a") as file:
            file.write("supports matmul/f32/odd\n")
        result = subprocess.run([self.tool, "conform", library], capture_output=True, text=True, env=self.environment())
        assert result.returncode == 1 and "npu2 has relu and add, not matmul" in result.stdout, result.stdout

    def a_network_on_a_new_provider_gives_the_cpus_numbers(self):
        model = os.path.join(self.source, "sdk/app/examples/demo/shapes.onnx")
        same = json.loads(self.run(self.tool, "compare", model, "--input", "image=random", "--device", "cpu", "--device", "npu2",
                                   "--json", TENON_PLUGIN_PATH=self.project_build))
        assert same["first_divergence"] is None and len(same["nodes"]) > 5, same

    def a_new_provider_installs_where_programs_find_it(self):
        assert "npu2:0" not in self.devices()
        self.run("bash", "-euc", f"cd {shlex.quote(self.project)}\n{self.commands[-1]}", tenon=self.prefix)
        assert "npu2:0" in self.devices()


def main():
    source, build, cmake, compiler = sys.argv[1:5]
    claims = [name for name in vars(Package) if name[0] != "_" and name not in ("environment", "run", "build_example", "devices", "refusal")]
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        package = Package(source, build, cmake, compiler, work)
        for claim in claims:
            try:
                getattr(package, claim)()
                print("  ok  ", claim.replace("_", " "))
            except Exception as problem:
                failed += 1
                print("  FAIL", claim.replace("_", " "), "\n", problem)
    print(f"{len(claims) - failed} claims hold, {failed} do not")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

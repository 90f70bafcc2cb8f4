#!/usr/bin/env python3
"""Changes ONNX models at random, loads and runs them, and reports each crash, hang and excess of memory.

Usage: mutate_models.py PACKAGE [--count N] [--first SEED] [--seconds N] [--jobs N] [--out FOLDER] [--seeds FOLDER]...
       mutate_models.py PACKAGE --attributes         every integer attribute of every operator with numbers at limits
       mutate_models.py PACKAGE [--attributes] --write SEED FILE    writes the model of a seed, and prints the changes

PACKAGE is the folder that holds the Python package `tenon`. The changes are of values, shapes, attributes, the graph or
bytes; a seed always gives the same model. Each child process runs one seed after the other. It may use 4 GiB, and 20 s
per model. Loading a model of a few bytes may not use a gigabyte, because the check of a model computes nothing large.
A finding is a line with the seed, and the model in FOLDER.
"""
import argparse
import glob
import os
import queue
import random
import re
import resource
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from protobuf_wire import varint

SECONDS_PER_MODEL = 20
CHILD_BYTES = 4 << 30
LOAD_BYTES = 1 << 30
SEED_FOLDERS = ["/usr/share/libonnx-testdata/data/" + kind for kind in ("node", "simple", "pytorch-operator", "pytorch-converted")]
LARGEST_SEED = 1 << 16

# By message: the fields that are messages. The numbers are those of onnx.proto.
MESSAGES = {"Model": {7: "Graph", 8: "Opset", 25: "Function"},
            "Graph": {1: "Node", 5: "Tensor", 11: "Info", 12: "Info", 13: "Info"}, "Function": {7: "Node"},
            "Node": {5: "Attribute"}, "Attribute": {5: "Tensor", 6: "Graph"}, "Info": {2: "Type"}, "Type": {1: "TensorType"},
            "TensorType": {2: "Shape"}, "Shape": {1: "Dim"}, "Tensor": {}, "Dim": {}, "Opset": {}}
VARINT, BYTES = 0, 2
INTEGERS = [0, 1, -1, 2, 3, 7, 8, 255, 256, -2, 1 << 16, (1 << 31) - 1, 1 << 31, -(1 << 31), 1 << 32, 1 << 40, 1 << 62, (1 << 63) - 1, -(1 << 63)]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, float("nan"), float("inf"), -float("inf"), 1e-45, 3e38, -1e10]
TEXTS = [b"", b"mean", b"none", b"sum", b"add", b"linear", b"cubic", b"nearest", b"SAME_UPPER", b"VALID", b"bidirectional",
         b"reverse", b"constant", b"wrap", b"\xff\xfe", b"relu", b"half_pixel", b"tf_crop_and_resize", b"ij,jk->ik"]


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value & (1 << 64) - 1, at


class Message:
    """A message as a list of fields: [number, wire type, value]. The value of a known message is a Message."""

    def __init__(self, kind, data=b""):
        self.kind, self.fields, at = kind, [], 0
        while at < len(data):
            key, at = read_varint(data, at)
            number, wire = key >> 3, key & 7
            if wire == VARINT:
                value, at = read_varint(data, at)
            elif wire == BYTES:
                size, at = read_varint(data, at)
                value, at = data[at:at + size], at + size
                if number in MESSAGES[kind]:
                    value = Message(MESSAGES[kind][number], value)
            else:
                size = 8 if wire == 1 else 4
                value, at = data[at:at + size], at + size
            self.fields.append([number, wire, value])

    def encode(self):
        out = bytearray()
        for number, wire, value in self.fields:
            out += varint(number << 3 | wire)
            if wire == VARINT:
                out += varint(value)
            else:
                value = value.encode() if isinstance(value, Message) else value
                out += (varint(len(value)) if wire == BYTES else b"") + value
        return bytes(out)

    def all(self, number):
        return [field for field in self.fields if field[0] == number]

    def get(self, number, default=None):
        found = self.all(number)
        return found[-1][2] if found else default

    def drop(self, field):
        self.fields = [each for each in self.fields if each is not field]

    def add(self, number, wire, value):
        self.fields.append([number, wire, value])

    def walk(self, kind):
        """All messages of a kind, at any depth."""
        for _, _, value in self.fields:
            if isinstance(value, Message):
                if value.kind == kind:
                    yield value
                yield from value.walk(kind)


class Mutation:
    """One random change of a model; `what` describes it."""

    def __init__(self, chance, model, others):
        self.chance, self.model, self.others = chance, model, others
        self.what = []

    def pick(self, items):
        items = list(items)
        return self.chance.choice(items) if items else None

    def values(self):
        tensor = self.pick(self.model.walk("Tensor"))
        if tensor is None:
            return self.attributes()
        data = self.pick([field for field in tensor.fields if field[0] in (4, 5, 7, 9, 10, 11) and field[1] == BYTES and field[2]])
        if data is None:
            return self.shapes()
        size = {1: 4, 2: 1, 3: 1, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8}.get(tensor.get(2, 1), 4)
        forms = [struct.pack("<q", self.pick(INTEGERS))[:size]]
        if size >= 4:
            forms.append(struct.pack("<f" if size == 4 else "<d", self.pick(FLOATS)))
        if size == 2:
            forms.append(self.pick([b"\x00\x7c", b"\x00\x7e", b"\xff\x7b", b"\x01\x00"]))
        content = bytearray(data[2])
        at = self.chance.randrange(max(1, len(content) // size)) * size
        every = self.chance.random() < 0.2
        content = bytearray(forms[-1] * (len(content) // size)) if every else content
        content[at:at + size] = self.pick(forms)[:max(0, len(content) - at)]
        data[2] = bytes(content)
        self.what.append(f"an element of a tensor at byte {at}{' and all others' if every else ''}")

    def shapes(self):
        """Changes dims of declared inputs and of tensors. The tensors' data are resized to match, or not."""
        shape = self.pick(list(self.model.walk("Shape")) + list(self.model.walk("Tensor")))
        if shape is None:
            return self.bytes()
        if shape.kind == "Tensor":
            dims = shape.all(1)
            dim = self.pick(dims)
            size = self.pick([0, 1, 2, 3, 5, 17, -1, self.pick(INTEGERS)])
            if dim is None or dim[1] != VARINT or self.chance.random() < 0.2:
                shape.add(1, VARINT, size)
            else:
                before, dim[2] = dim[2], size
                data = shape.all(9)
                if data and before and 0 <= size <= 64 and len(data[0][2]) * size // before < 1 << 16:
                    whole = data[0][2] * (size + 1)
                    data[0][2] = whole[:len(data[0][2]) // before * size]
            self.what.append(f"a dim of a tensor becomes {size}")
        else:
            dims = shape.all(1)
            dim = self.pick(dims)
            size = self.pick([0, 1, 2, 3, 5, 17, 64, -1, "n", "?", self.pick(INTEGERS)])
            if dim is None or self.chance.random() < 0.2:
                shape.add(1, BYTES, Message("Dim"))
                dim = shape.all(1)[-1]
            elif self.chance.random() < 0.1:
                shape.drop(dim)
            dim[2].fields = [[2, BYTES, size.encode()] if isinstance(size, str) else [1, VARINT, size]]
            self.what.append(f"a declared dim becomes {size}")

    def attributes(self):
        node = self.pick(self.model.walk("Node"))
        attribute = self.pick([field for field in node.all(5)]) if node else None
        if attribute is None or self.chance.random() < 0.15:
            return self.borrow(node)
        content, name = attribute[2], attribute[2].get(1, b"").decode("latin1")
        if self.chance.random() < 0.1:
            node.drop(attribute)
            self.what.append(f"without the attribute {name}")
            return None
        field = self.pick([field for field in content.fields if field[0] in (2, 3, 4, 7, 8, 9)])
        if field is None:
            return self.graph()
        number, wire, _ = field
        if number in (8, 9, 7) and self.chance.random() < 0.3:
            if self.chance.random() < 0.5:
                content.drop(field)
            else:
                content.fields.append(list(field))
            self.what.append(f"the attribute {name} is longer or shorter")
        elif wire == VARINT:
            field[2] = self.pick(INTEGERS)
            self.what.append(f"a number of the attribute {name} becomes {field[2]}")
        elif number in (2, 7) and wire == 5:
            field[2] = struct.pack("<f", self.pick(FLOATS))
            self.what.append(f"a float of the attribute {name}")
        elif number in (4, 9):
            field[2] = self.pick(TEXTS)
            self.what.append(f"the text {name} becomes {field[2]}")
        return None

    def borrow(self, node):
        """An attribute of another model, of a node of that operator if there is one."""
        nodes = [each for other in self.others for each in other.walk("Node") if each.all(5)]
        if node is None or not nodes:
            return self.bytes()
        near = [each for each in nodes if each.get(4) == node.get(4)] or nodes
        given = self.pick(self.pick(near).all(5))
        node.add(5, BYTES, Message("Attribute", given[2].encode()))
        self.what.append(f"with the attribute {given[2].get(1)} of another model")
        return None

    def graph(self):
        graphs = [self.model.get(7)] + list(self.model.walk("Graph"))
        graph = self.pick([each for each in graphs if isinstance(each, Message)])
        node = self.pick([field[2] for field in graph.all(1)]) if graph else None
        if node is None:
            return self.bytes()
        names = [field[2] for each in graph.all(1) for field in each[2].fields if field[0] in (1, 2)]
        names += [each[2].get(8 if each[0] == 5 else 1, b"") for each in graph.fields if each[0] in (5, 11)]
        inputs = node.all(1)
        kind = self.chance.randrange(8)
        if kind == 0 and inputs:
            self.pick(inputs)[2] = self.pick(names)
        elif kind == 1 and inputs:
            self.pick(inputs)[2] = b""
        elif kind == 2:
            node.add(1, BYTES, self.pick(names))
        elif kind == 3 and len(inputs) > 1:
            a, b = self.chance.sample(inputs, 2)
            a[2], b[2] = b[2], a[2]
        elif kind == 4:
            ops = [each for other in self.others for each in other.walk("Node")]
            other = self.pick(ops)
            node.fields = [field for field in node.fields if field[0] not in (4, 5, 7)]
            node.fields += [list(field) for field in Message("Node", other.encode()).fields if field[0] in (4, 5, 7)]
        elif kind == 5:
            self.chance.shuffle(graph.fields)
        elif kind == 6:
            opset = self.pick(self.model.walk("Opset"))
            if opset is not None:
                opset.fields = [field for field in opset.fields if field[0] != 2] + [[2, VARINT, self.chance.randrange(1, 29)]]
        elif inputs:
            node.drop(self.pick(inputs))
        self.what.append(f"the graph ({kind}) at a node {node.get(4)}")
        return None

    def bytes(self):
        data = bytearray(self.model.encode())
        for _ in range(self.chance.randrange(1, 4)):
            at = self.chance.randrange(max(1, len(data)))
            kind = self.chance.randrange(4)
            if kind == 0 and data:
                data[min(at, len(data) - 1)] = self.chance.randrange(256)
            elif kind == 1:
                data[at:at] = self.chance.randbytes(self.chance.randrange(1, 9))
            elif kind == 2:
                del data[at:at + self.chance.randrange(1, 9)]
            else:
                data[at:at] = data[at:at + self.chance.randrange(1, 65)]
        self.what.append("bytes")
        return bytes(data)


class Mutants:
    """The models of seeds: mutants.of(7)."""

    def __init__(self, folders):
        self.files = sorted(path for folder in folders for path in glob.glob(os.path.join(folder, "**", "*.onnx"), recursive=True)
                            if os.path.getsize(path) <= LARGEST_SEED)
        if not self.files:
            sys.exit(f"There are no models in {', '.join(folders)} (Debian: libonnx-testdata).")

    def read(self, path):
        with open(path, "rb") as file:
            return Message("Model", file.read())

    def of(self, seed):
        """(bytes, sentence)"""
        chance = random.Random(seed)
        path = chance.choice(self.files)
        model = self.read(path)
        others = [self.read(chance.choice(self.files)) for _ in range(3)]
        mutation = Mutation(chance, model, others)
        data = None
        for _ in range(chance.choice([1, 1, 1, 2, 2, 3])):
            change = chance.choices([mutation.values, mutation.shapes, mutation.attributes, mutation.graph, mutation.bytes],
                                    [3, 3, 5, 3, 1])[0]
            data = change()
            if data is not None:
                break
        name = os.path.relpath(path, os.path.commonpath(self.files))
        return model.encode() if data is None else data, f"{name}: {'; '.join(mutation.what)}"


class AttributeWalk(Mutants):
    """Models in which one integer attribute has a number of LIMITS. The rules of sdk/onnx/schema list the
    attributes."""

    LIMITS = [0, 1, -1, 1 << 31, (1 << 63) - 1, -(1 << 63)]
    MODELS_PER_ATTRIBUTE = 3
    ROW = re.compile(r'OPERATOR\((?:\.domain = "([\w.]*)", )?\.op_type = "(\w+)",(?:[^"()]|"[^"]*")*?'
                     r'(?:\.attributes = ((?:\s*"[^"]*")+))?\)')

    def __init__(self, folders):
        super().__init__(folders)
        rules, self.cases, count = self.attributes(), [], {}
        for path in self.files:
            for number, node in enumerate(self.read(path).walk("Node")):
                domain = node.get(7, b"").decode("latin1")
                operator = ("" if domain == "ai.onnx" else domain, node.get(4, b"").decode("latin1"))
                for name, kind in sorted(rules.get(operator, ())):
                    count[operator, name] = count.get((operator, name), 0) + 1
                    if count[operator, name] <= self.MODELS_PER_ATTRIBUTE:
                        self.cases += [(path, number, name, kind, value) for value in self.LIMITS]

    @classmethod
    def attributes(cls):
        """{(domain, operator): {(attribute, "int" or "ints")}}, of all versions"""
        folder, rules = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "sdk", "onnx", "schema"), {}
        for table in ("operators.def", "microsoft.def"):
            with open(os.path.join(folder, table)) as file:
                for domain, operator, attributes in cls.ROW.findall(re.sub(r"//.*", "", file.read())):
                    words = [word.split(":") for word in "".join(re.findall('"([^"]*)"', attributes)).split()]
                    found = {(name, kind.split("=")[0].rstrip("!")) for name, kind in words}
                    rules.setdefault((domain, operator), set()).update(each for each in found if each[1] in ("int", "ints"))
        return rules

    def of(self, seed):
        path, number, name, kind, value = self.cases[seed]
        model = self.read(path)
        node = list(model.walk("Node"))[number]
        attribute = next((field[2] for field in node.all(5) if field[2].get(1) == name.encode()), None)
        if attribute is None:
            node.add(5, BYTES, Message("Attribute"))
            attribute = node.all(5)[-1][2]
            attribute.fields = [[1, BYTES, name.encode()], [20, VARINT, 2 if kind == "int" else 7]]
        place = 3 if kind == "int" else 8
        length = max(1, len(attribute.all(place)))
        attribute.fields = [field for field in attribute.fields if field[0] != place] + [[place, VARINT, value]] * length
        return model.encode(), f"{os.path.relpath(path, os.path.commonpath(self.files))}: {name} is {value}"


# ---- the child ----

NUMPY_TYPES = {"f16": "float16", "f32": "float32", "f64": "float64", "i8": "int8", "i16": "int16", "i32": "int32",
               "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "bool": "bool"}


def inputs_of(model, open_size):
    """Small arrays of the declared shapes; None if an input is not an array or is too large. 0 to 3 are often valid
    indices."""
    import numpy as np
    inputs = {}
    for info in model.inputs:
        dtype = NUMPY_TYPES.get(info.type.split("[")[0])
        if dtype is None or info.shape is None:
            return None
        shape = [dim if isinstance(dim, int) and dim >= 0 else open_size for dim in info.shape]
        count = 1
        for dim in shape:
            count *= dim
        if count > 1 << 16:
            return None
        inputs[info.name] = (np.arange(count) % 4).reshape(shape).astype(dtype)
    return inputs


def peak_bytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))


def child(package, first, step, mutants):
    sys.path.insert(0, package)
    import tenon
    resource.setrlimit(resource.RLIMIT_AS, (CHILD_BYTES, CHILD_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    seed = first
    while True:
        data, _ = mutants.of(seed)
        print("begin", seed, flush=True)
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # resets the peak
        before, said = peak_bytes(), ""
        try:
            model = tenon.onnx.load(data, eager=seed % 4 == 0)
            if peak_bytes() - before > LOAD_BYTES:
                said = f"load took {(peak_bytes() - before) >> 20} MiB"
            for open_size in (3, 5):
                inputs = inputs_of(model, open_size)
                if inputs is not None:
                    model.run(inputs)
        except tenon.Error as error:
            if "defect of Tenon" in str(error):
                said = str(error).splitlines()[0]
            elif peak_bytes() - before > LOAD_BYTES and "model" not in locals():
                said = f"load took {(peak_bytes() - before) >> 20} MiB"
        except MemoryError:
            pass
        except Exception as error:  # noqa: BLE001 every other exception is a finding
            said = f"{type(error).__name__}: {error}"
        finally:
            model = None
            del model
        print("end", seed, said.replace("\n", " "), flush=True)
        seed += step


# ---- the parent ----

class Campaign:
    def __init__(self, arguments, mutants):
        self.arguments, self.mutants = arguments, mutants
        self.findings, self.done, self.lock = [], 0, threading.Lock()
        self.end = time.monotonic() + arguments.seconds if arguments.seconds else None

    def over(self, seed):
        if self.end is not None:
            return time.monotonic() > self.end
        return seed >= self.arguments.first + self.arguments.count

    def report(self, seed, what):
        data, change = self.mutants.of(seed)
        os.makedirs(self.arguments.out, exist_ok=True)
        path = os.path.join(self.arguments.out, f"mutant_{seed}.onnx")
        with open(path, "wb") as file:
            file.write(data)
        with self.lock:
            self.findings.append(seed)
            print(f"seed {seed}: {what}. {change}. The model: {path}", flush=True)

    def work(self, number):
        """Runs one child after the other. Each continues this worker's seeds where the last one ended."""
        seed = self.arguments.first + number
        while not self.over(seed):
            seed = self.watch(seed)

    def watch(self, seed):
        command = [sys.executable, "-B", __file__, self.arguments.package, "--child", str(seed), "--jobs", str(self.arguments.jobs)]
        command += ["--attributes"] if self.arguments.attributes else []
        for folder in self.arguments.seeds:
            command += ["--seeds", folder]
        log = open(os.path.join(self.arguments.scratch, f"child_{seed}"), "w+")
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        lines = queue.Queue()
        reader = threading.Thread(target=lambda: [lines.put(line) for line in process.stdout] + [lines.put(None)])
        reader.start()
        begun, next_seed = None, seed
        try:
            while not self.over(next_seed):
                line = lines.get(timeout=SECONDS_PER_MODEL if begun is not None else 120)
                if line is None:
                    break
                word, number, said = (line.rstrip("\n").split(" ", 2) + ["", ""])[:3]
                begun = int(number) if word == "begin" else None
                if word == "end":
                    next_seed = int(number) + self.arguments.jobs
                    with self.lock:
                        self.done += 1
                    if said:
                        self.report(int(number), said)
            else:
                return next_seed
            log.seek(0)
            tail = log.read()[-500:].strip().replace("\n", " | ")
            if begun is None:
                raise RuntimeError(f"The child ended by itself ({process.wait()}): {tail}")
            self.report(begun, f"the process ended with {process.wait()} ({tail})")
            return begun + self.arguments.jobs
        except queue.Empty:
            self.report(next_seed if begun is None else begun, f"no answer within {SECONDS_PER_MODEL} s")
            return (next_seed if begun is None else begun) + self.arguments.jobs
        finally:
            process.kill()
            process.wait()
            reader.join()
            process.stdout.close()
            log.close()
            os.unlink(log.name)

    def run(self):
        workers = [threading.Thread(target=self.work, args=(number,)) for number in range(self.arguments.jobs)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        print(f"{self.done} models from seed {self.arguments.first} on, {len(self.findings)} findings")
        return 1 if self.findings or not self.done else 0


def main():
    import tempfile
    parser = argparse.ArgumentParser()
    parser.add_argument("package")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", default="mutants")
    parser.add_argument("--seeds", action="append")
    parser.add_argument("--attributes", action="store_true")
    parser.add_argument("--write", nargs=2)
    parser.add_argument("--child", type=int)
    arguments = parser.parse_args()
    arguments.seeds = arguments.seeds or SEED_FOLDERS
    mutants = (AttributeWalk if arguments.attributes else Mutants)(arguments.seeds)
    if arguments.attributes:
        arguments.count = len(mutants.cases)
    if arguments.child is not None:
        return child(arguments.package, arguments.child, arguments.jobs, mutants)
    if arguments.write:
        data, change = mutants.of(int(arguments.write[0]))
        with open(arguments.write[1], "wb") as file:
            file.write(data)
        print(change)
        return 0
    with tempfile.TemporaryDirectory() as arguments.scratch:
        return Campaign(arguments, mutants).run()


if __name__ == "__main__":
    sys.exit(main())

"""The op runner as a function `run`, its operands, and OpTest, which compares its results."""

import itertools
import json
import os
import select
import subprocess
import sys
import tempfile
import unittest

import numpy as np

RUNNER = sys.argv.pop(1)
RANKS = int(sys.argv.pop(1).partition("=")[2]) if sys.argv[1:] and sys.argv[1].startswith("--ranks=") else 0
OPTIONS = [sys.argv.pop(1)] if sys.argv[1:] and sys.argv[1] in ("--decompose", "--watch", "--keep") else []
SYNCHRONOUS = os.environ.get("TENON_DEVICE") in ("cpu", "reference")
DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "bool": np.bool_, "u8": np.uint8,
          "i8": np.int8, "i16": np.int16, "f16": np.float16}
NAMES = {np.dtype(value): name for name, value in DTYPES.items()}


class Dtype:
    def __init__(self, name):
        self.name = name


class Device:
    def __init__(self, spelling):
        self.spelling = spelling


class Call:
    """An argument that is the first output of another call."""

    def __init__(self, op, *args, **kwargs):
        self.call = (op, args, kwargs)


class Keep:
    """An argument that is kept under a number. Ref(number) is the same tensor, in this call or a later one."""

    def __init__(self, number, value):
        self.number, self.value = number, value


class Ref:
    def __init__(self, number):
        self.number = number


class Refused(Exception):
    pass


def encode(value):
    if isinstance(value, (np.ndarray, np.generic)):
        value = np.asarray(value)
        return {"tensor": {"dtype": NAMES[value.dtype], "dims": list(value.shape), "data": value.tobytes().hex()}}
    if isinstance(value, Dtype):
        return {"dtype": value.name}
    if isinstance(value, Device):
        return {"device": value.spelling}
    if isinstance(value, Call):
        return {"call": encode_call(*value.call)}
    if isinstance(value, Keep):
        return {"keep": value.number, "of": encode(value.value)}
    if isinstance(value, Ref):
        return {"ref": value.number}
    if isinstance(value, tuple):
        return {"tensors": [encode(each) for each in value]}
    return value


def encode_call(op, args, kwargs):
    return {"op": op, "args": [encode(each) for each in args], "kwargs": {key: encode(value) for key, value in kwargs.items()}}


class Runner:
    def __init__(self):
        self.process = subprocess.Popen([RUNNER, *OPTIONS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.used = set()

    def __call__(self, op, *args, **kwargs):
        self.note(op, args, kwargs)
        self.process.stdin.write(json.dumps(encode_call(op, args, kwargs)) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{op}: the runner died")
        return self.results_of(json.loads(line))

    def results_of(self, answer):
        if "error" in answer:
            raise Refused(answer["error"])
        return [np.frombuffer(bytes.fromhex(o["data"]), DTYPES[o["dtype"]]).reshape(o["dims"]) for o in answer["outputs"]]

    def list(self):
        """The names of all ops."""
        listed = subprocess.run([RUNNER, "--list"], capture_output=True, text=True, check=True).stdout.splitlines()
        return {line.split("\t")[0] for line in listed}

    def note(self, op, args, kwargs):
        self.used.add(op)
        for value in itertools.chain(args, kwargs.values()):
            if isinstance(value, Call):
                self.note(*value.call)


class Ranks(Runner):
    """As many runners as there are ranks, each with its part of every tensor. All give the same answer."""

    def __init__(self, count):
        self.used, self.count = set(), count
        self.launch()

    def launch(self):
        self.folder, self.ranks = tempfile.TemporaryDirectory(), []
        for rank in range(self.count):
            own = os.environ | {"TENON_COLLECTIVES": "pipes", "TENON_THREADS": "1", "PIPES_RANK": str(rank),
                                "PIPES_SIZE": str(self.count), "PIPES_FOLDER": self.folder.name}
            self.ranks.append(subprocess.Popen([RUNNER, "--global"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                               text=True, env=own))

    @staticmethod
    def is_own_error(answer):
        """Not one that says what another rank did."""
        theirs = ("Rank ", "ranks do not agree", "has not ended within")
        return "error" in answer and not any(text in answer["error"] for text in theirs)

    def answers(self):
        """One of each rank; None of those that wait for a rank which refused the call alone."""
        answers, pending = [None] * self.count, dict(enumerate(rank.stdout for rank in self.ranks))
        alone = False
        while pending:
            ready, _, _ = select.select(list(pending.values()), [], [], 2 if alone else None)
            if not ready:
                break
            for number in [number for number, pipe in pending.items() if pipe in ready]:
                answers[number] = json.loads(pending.pop(number).readline() or '{"error": "the runner died"}')
                alone = alone or self.is_own_error(answers[number])
        return answers

    def end(self):
        for rank in self.ranks:
            rank.kill()
            rank.communicate()

    def __call__(self, op, *args, **kwargs):
        self.note(op, args, kwargs)
        line = json.dumps(encode_call(op, args, kwargs)) + "\n"
        for rank in self.ranks:
            rank.stdin.write(line)
            rank.stdin.flush()
        answers = self.answers()
        for rank, answer in enumerate(answers):
            if op.startswith("empty"):
                continue
            if answer != answers[0] or "the runner died" in str(answer):
                self.end()
                self.launch()  # a communicator that had an error is of no more use
                refused = [each["error"] for each in answers if each is not None and self.is_own_error(each)]
                if refused:  # elements that are wrong are seen where they are
                    raise Refused(refused[0])
                raise RuntimeError(f"{op}: rank 0 answers {answers[0]}, and rank {rank} {answer}")
        return self.results_of(answers[0])


class PythonRunner:
    """The same calls through the Python package, in this process."""

    def __init__(self):
        import tenon
        self.tenon, self.used, self.kept = tenon, set(), {}

    def value(self, value):
        if isinstance(value, (np.ndarray, np.generic)):
            return self.tenon.tensor(value)
        if isinstance(value, Dtype):
            return getattr(self.tenon, value.name)
        if isinstance(value, Device):
            return self.tenon.Device("cpu" if value.spelling == "host" else value.spelling)
        if isinstance(value, Call):
            result = self.call(*value.call)
            return result[0] if isinstance(result, tuple) else result
        if isinstance(value, Keep):
            self.kept[value.number] = self.value(value.value)
            return self.kept[value.number]
        if isinstance(value, Ref):
            return self.kept[value.number]
        return tuple(map(self.value, value)) if isinstance(value, tuple) else value

    def call(self, op, args, kwargs):
        self.used.add(op)
        return getattr(self.tenon, op)(*map(self.value, args), **{key: self.value(value) for key, value in kwargs.items()})

    def __call__(self, op, *args, **kwargs):
        try:
            result = self.call(op, args, kwargs)
        except self.tenon.Error as error:
            raise Refused(str(error))
        return [np.array(each) for each in (result if isinstance(result, tuple) else [result])]

    def list(self):
        return {name for name, value in vars(self.tenon).items() if isinstance(value, self.tenon.Op)}


run = PythonRunner() if RUNNER == "--python" else Ranks(RANKS) if RANKS else Runner()
random = np.random.default_rng(20261121)


def some(*shape, dtype=np.float32, low=-3.0, high=3.0):
    """Random numbers, none of them 0."""
    values = random.uniform(low, high, shape)
    if np.issubdtype(dtype, np.integer):
        values = np.where(np.abs(values) < 1, np.sign(values) + (values == 0), values)
    if dtype == np.bool_:
        return values > (low + high) / 2
    return np.asarray(values).astype(dtype)


def strided(array):
    """The same values as a view that is not row-major."""
    if array.ndim < 2:
        return Call("slice", np.repeat(array, 2), 0, None, None, 2) if array.ndim else array
    order = list(range(array.ndim))[::-1]
    return Call("permute", np.ascontiguousarray(array.transpose(order)), order)


def channels_last(array):
    """The same values as [n, c, d..] with channels innermost. Other ranks stay as they are."""
    if not 3 <= array.ndim <= 5:
        return array
    return Call("permute", np.ascontiguousarray(np.moveaxis(array, 1, -1)), [0, array.ndim - 1, *range(1, array.ndim - 1)])


class OpTest(unittest.TestCase):
    def close(self, actual, expected, rtol=2e-5, atol=2e-6):
        expected = np.asarray(expected)
        self.assertEqual(actual.shape, expected.shape)
        if actual.dtype.kind == "f":
            np.testing.assert_allclose(actual.astype(np.float64), expected.astype(np.float64), rtol=rtol, atol=atol)
        else:
            np.testing.assert_array_equal(actual, expected)

    def check(self, expected, op, *args, dtype=None, rtol=2e-5, atol=2e-6, **kwargs):
        """Compares a call, and the same call on strided views of its tensors, and on channels-last ones."""
        expected = expected if isinstance(expected, list) else [expected]
        wanted = [NAMES[np.asarray(e).dtype] for e in expected] if dtype is None else [dtype] * len(expected)
        ways = [args, [strided(a) if isinstance(a, np.ndarray) else a for a in args]]
        if any(isinstance(a, np.ndarray) and 3 <= a.ndim <= 5 for a in args):
            ways.append([channels_last(a) if isinstance(a, np.ndarray) else a for a in args])
        if RANKS:  # several processes take long, so that each number of them has another way
            ways = [ways[RANKS % len(ways)]]
        for given in ways:
            results = run(op, *given, **kwargs)
            self.assertEqual(len(results), len(expected), op)
            for actual, e, name in zip(results, expected, wanted):
                self.assertEqual(NAMES[actual.dtype], name, op)
                self.close(actual, e, rtol, atol)

    def refused(self, text, op, *args, **kwargs):
        with self.assertRaises(Refused) as raised:
            run(op, *args, **kwargs)
        self.assertEqual(str(raised.exception), text)

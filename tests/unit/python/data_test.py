"""tenon.utils.data: datasets, samplers, batches and workers, against PyTorch's where it is installed.

usage: data_test.py OP_RUNNER (not used)"""

import collections
import gc
import importlib.util
import multiprocessing
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time
import unittest

import numpy as np
import tenon
from tenon.utils import data
from tenon.utils.data import DataLoader

if __name__ == "__main__":
    sys.argv.pop(1)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

WITH_TORCH = unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
WORKERS = [{"num_workers": 2}, {"num_workers": 2, "multiprocessing_context": "spawn"}]
Pair = collections.namedtuple("Pair", "a b")


class Squares(data.Dataset):
    """Fails at `bad`, and kills its process at `deadly`."""

    def __init__(self, size, bad=None, deadly=None, pause=0.0):
        self.size, self.bad, self.deadly, self.pause = size, bad, deadly, pause

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        if i == self.bad:
            raise KeyError(f"there is no {i}")
        if i == self.deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(self.pause)
        return tenon.full((2,), float(i)), i * i, {"name": f"n{i}", "array": np.full(2, i, "f4")}


class Stream(data.IterableDataset):
    """Each worker takes its share of the numbers."""

    def __init__(self, size):
        self.size, self.begin = size, 0

    def __iter__(self):
        worker = data.get_worker_info()
        return iter(range(self.begin + (worker.id if worker else 0), self.size, worker.num_workers if worker else 1))


class Draws(data.Dataset):
    """Uses the global generators."""

    def __len__(self):
        return 6

    def __getitem__(self, i):
        return random.random(), np.random.rand(), tenon.rand(()).item(), float(data.get_worker_info().seed)


class Unreadable(data.Dataset):
    """Cannot be made again in another process."""

    def __reduce__(self):
        return int, ("not a number",)

    def __len__(self):
        return 2


class Unsendable(data.Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, i):
        return lambda: i


def begin_at_ten(worker):
    data.get_worker_info().dataset.begin = 10 * (worker + 1)


def fail_to_begin(worker):
    raise OSError(f"worker {worker} has no file")


def keep(batch):
    return batch


def plain(value):
    """Tensors of Tenon and PyTorch as their dtype and numbers."""
    if hasattr(value, "tolist") and hasattr(value, "dtype"):
        return str(value.dtype).split(".")[-1], value.tolist()
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(plain, value)]
    return value


@WITH_TORCH
class AgainstPyTorch(unittest.TestCase):
    def same(self, program):
        import torch
        results = []
        for package, tools in ((torch, torch.utils.data), (tenon, data)):
            try:
                results.append(plain(program(package, tools)))
            except Exception as error:
                results.append(error)
        theirs, ours = results
        if isinstance(theirs, Exception):
            self.assertIsInstance(ours, type(theirs), f"{ours!r} for {theirs!r}")
        else:
            self.assertEqual(ours, theirs)

    def test_batches_of_every_structure(self):
        samples = [lambda T: T.ones(2), lambda T: 1, lambda T: 2.5, lambda T: True, lambda T: "text", lambda T: b"x", lambda T: (1, 2.0), lambda T: [T.ones(1), "a"], lambda T: {"x": 1, "y": (2, T.zeros(2))},
                   lambda T: Pair(1, T.ones(1)), lambda T: np.arange(3), lambda T: np.float32(1.5), lambda T: np.float64(1.5), lambda T: np.int16(3), lambda T: np.ones((2, 2), "f2"), lambda T: collections.OrderedDict(b=1, a=2),
                   lambda T: None, lambda T: object(), lambda T: np.array(["a"]), lambda T: T.ones(2, requires_grad=True), lambda T: np.bool_(True), lambda T: [], lambda T: {}]
        for i, sample in enumerate(samples):
            with self.subTest(i):
                self.same(lambda package, tools: tools.default_collate([sample(package), sample(package)]))
                if i != samples.index(samples[17]):
                    self.same(lambda package, tools: tools.default_convert(sample(package)))
        self.same(lambda package, tools: tools.default_collate([(1, 2), (1,)]))
        self.same(lambda package, tools: tools.default_collate([package.ones(2), package.ones(3)]))

    def test_datasets(self):
        def pieces(tools):
            return [tools.Subset(range(10, 20), [3, 1, 5]), tools.ConcatDataset([range(3), [7, 8]]), tools.Subset(tools.Subset(range(10), [2, 4, 6]), [2, 0])]

        self.same(lambda package, tools: [[each[i] for i in range(len(each))] for each in pieces(tools)])
        self.same(lambda package, tools: [pieces(tools)[1][-1], pieces(tools)[1][-5], pieces(tools)[1].cumulative_sizes])
        self.same(lambda package, tools: list(tools.TensorDataset(package.arange(4), package.arange(8).reshape(4, 2))[2]))
        for wrong in (lambda p, t: pieces(t)[1][-6], lambda p, t: t.TensorDataset(p.ones(2), p.ones(3)), lambda p, t: t.ConcatDataset([]), lambda p, t: t.Dataset()[0], lambda p, t: t.random_split(range(5), [2, 2]),
                      lambda p, t: t.random_split(range(5), [0.9, 0.9])):
            self.same(wrong)
        for lengths in ([3, 7], [0.5, 0.3, 0.2], [0.33, 0.33, 0.34], [10]):
            self.same(lambda package, tools: [[len(each) for each in tools.random_split(range(10), lengths)], sorted(i for each in tools.random_split(range(10), lengths) for i in each.indices)])

    def test_samplers(self):
        self.same(lambda package, tools: [list(tools.SequentialSampler("abc")), list(tools.BatchSampler(range(7), 3, False)), list(tools.BatchSampler(tools.SequentialSampler(range(7)), 3, True))])
        self.same(lambda package, tools: [len(tools.BatchSampler(range(7), 3, drop)) for drop in (False, True)])
        self.same(lambda package, tools: [sorted(tools.RandomSampler(range(9))), sorted(tools.SubsetRandomSampler([5, 3, 8])), len(list(tools.RandomSampler(range(4), num_samples=9))), len(list(tools.RandomSampler(range(4), True, 9))),
                                          len(tools.RandomSampler(range(4))), list(tools.WeightedRandomSampler([0, 0, 1, 0], 5)), sorted(tools.WeightedRandomSampler([1.0, 2.0, 3.0], 3, False))])
        for wrong in (lambda p, t: t.RandomSampler([1], num_samples=0), lambda p, t: t.RandomSampler([]), lambda p, t: t.RandomSampler([1], replacement=1), lambda p, t: t.WeightedRandomSampler([1.0], 0), lambda p, t: t.WeightedRandomSampler([[1.0]], 1),
                      lambda p, t: t.BatchSampler([1], 0, False), lambda p, t: t.BatchSampler([1], True, False), lambda p, t: t.BatchSampler([1], 1, 1)):
            self.same(wrong)

    def test_loaders(self):
        options = [{}, {"batch_size": 4}, {"batch_size": 4, "drop_last": True}, {"batch_size": None}, {"sampler": [3, 1, 2], "batch_size": 2}, {"batch_sampler": [[1, 2], [0], [5, 5, 5]]}, {"collate_fn": keep, "batch_size": 3}, {"batch_size": 3, "pin_memory": False}]
        for each in options:
            for workers in ({}, WORKERS[0]):
                with self.subTest(**each, **workers):
                    self.same(lambda package, tools: [list(tools.DataLoader([(i, float(i)) for i in range(10)], **each, **(workers if package is tenon else {}))), len(tools.DataLoader(range(10), **each))])
        wrongs = [{"num_workers": -1}, {"timeout": -1}, {"persistent_workers": True}, {"sampler": [1], "shuffle": True}, {"batch_sampler": [[1]], "batch_size": 2}, {"batch_size": None, "drop_last": True}, {"batch_size": 0},
                  {"multiprocessing_context": "spawn"}, {"num_workers": 1, "multiprocessing_context": "nonsense"}, {"shuffle": True, "batch_sampler": [[1]]}]
        for each in wrongs:
            with self.subTest(**each):
                self.same(lambda package, tools: tools.DataLoader([1, 2], **each))


class Loader(unittest.TestCase):
    def all_workers(self):
        for workers in ({}, *WORKERS):
            with self.subTest(**workers):
                yield workers

    def test_batches_come_in_order(self):
        for workers in self.all_workers():
            loader = DataLoader(Squares(7), batch_size=3, **workers)
            for _ in range(2):
                batches = list(loader)
                self.assertEqual([(x.tolist(), y.tolist(), d["name"], d["array"].dtype) for x, y, d in batches],
                                 [([[i, i] for i in some], [i * i for i in some], [f"n{i}" for i in some], tenon.f32) for some in ([0., 1., 2.], [3., 4., 5.], [6.]) for some in [list(map(int, some))]])
            self.assertEqual((len(loader), len(iter(loader)) if workers else 3), (3, 3))

    def test_each_epoch_has_another_order_and_a_seed_repeats_it(self):
        orders = []
        for workers in self.all_workers():
            tenon.manual_seed(4)
            loader = DataLoader(range(50), batch_size=8, shuffle=True, **workers)
            orders.append([[each.tolist() for each in loader] for _ in range(2)])
            self.assertNotEqual(*orders[-1])
            self.assertEqual(sorted(sum(orders[-1][0], [])), list(range(50)))
        self.assertEqual(orders[0], orders[1])
        self.assertEqual(orders[0], orders[2])
        own = [[each.tolist() for each in DataLoader(range(50), shuffle=True, generator=tenon.Generator(9))] for _ in range(2)]
        self.assertEqual(*own)

    def test_iterable_datasets(self):
        for workers in self.all_workers():
            batches = [each.tolist() for each in DataLoader(Stream(10), batch_size=2, **workers)]
            self.assertEqual(batches, [[0, 2], [1, 3], [4, 6], [5, 7], [8], [9]] if workers else [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]])
            self.assertEqual(sorted(DataLoader(Stream(7), batch_size=None, **workers)), list(range(7)))
            self.assertEqual(len(list(DataLoader(Stream(10), batch_size=3, drop_last=True, **workers))), 2 if workers else 3)
        self.assertEqual(list(DataLoader(data.ChainDataset([Stream(2), Stream(3)]) + Stream(1), batch_size=None)), [0, 1, 0, 1, 2, 0])
        self.assertIsNone(data.get_worker_info())
        with self.assertRaisesRegex(ValueError, "expected unspecified shuffle option"):
            DataLoader(Stream(3), shuffle=True)

    def test_workers_begin_with_their_function(self):
        for workers in WORKERS:
            dataset = Stream(14)
            self.assertEqual(sorted(DataLoader(dataset, batch_size=None, worker_init_fn=begin_at_ten, **workers)), [10, 12])  # 10 of worker 0; 21 is too large
            self.assertEqual(dataset.begin, 0)
            with self.assertRaisesRegex(OSError, "(?s)Caught OSError in DataLoader worker .*worker 0 has no file"):
                list(DataLoader(Squares(3), worker_init_fn=fail_to_begin, **workers))

    def test_processes_draw_the_same_numbers_in_each_run(self):
        runs = []
        for seed in (5, 5, 6):
            tenon.manual_seed(seed)
            runs.append([[each.item() for each in batch] for batch in DataLoader(Draws(), **WORKERS[1])])
        self.assertEqual(runs[0], runs[1])
        self.assertNotEqual(runs[0], runs[2])
        self.assertEqual(len({tuple(each) for each in runs[0]}), 6)
        self.assertEqual({each[3] for each in runs[0]}, {runs[0][0][3], runs[0][0][3] + 1})

    def test_persistent_workers_serve_each_epoch(self):
        for workers in WORKERS:
            loader = DataLoader(Squares(30), shuffle=True, persistent_workers=True, **workers)
            for _ in range(3):
                for i, _ in enumerate(loader):
                    if i == 2:
                        break
                self.assertEqual(sorted(y.item() for _, y, _ in loader), [i * i for i in range(30)])
            first, second = iter(loader), iter(loader)
            self.assertEqual(len(list(second)), 30)
            with self.assertRaisesRegex(RuntimeError, "Another loop"):
                next(first)
            del loader, first, second
            gc.collect()
            self.assert_no_workers()

    def test_what_pytorch_2_added(self):
        batches = list(DataLoader(data.StackDataset(x=range(3), y="abc"), batch_size=2))
        self.assertEqual([(each["x"].tolist(), each["y"]) for each in batches], [([0, 1], ["a", "b"]), ([2], ["c"])])
        self.assertEqual(data.StackDataset(range(3), "abc")[2], (2, "c"))
        for datasets, text in (([], "At least one"), ([range(2), range(3)], "Size mismatch")):
            with self.assertRaisesRegex(ValueError, text):
                data.StackDataset(*datasets)
        for settings, text in (({"prefetch_factor": 2}, "num_workers > 0"), ({"num_workers": 1, "prefetch_factor": -1}, "should be non-negative")):
            with self.assertRaisesRegex(ValueError, text):
                DataLoader([1, 2], **settings)
        with self.assertRaises(NotImplementedError):
            iter(data.Sampler())
        with self.assertRaises(TypeError):
            data.IterableDataset()
        with self.assertRaisesRegex(AssertionError, "does not support IterableDataset"):
            data.ConcatDataset([Stream(3)])
        self.assertEqual(data.Subset(range(10, 20), [3, 1, 5]).__getitems__([1, 0]), [11, 13])

    def test_batches_may_come_as_they_are_ready(self):
        batches = [y.item() for _, y, _ in DataLoader(Squares(20), in_order=False, prefetch_factor=3, num_workers=3)]
        self.assertEqual(sorted(batches), [i * i for i in range(20)])

    def test_errors_have_the_traceback_of_the_worker(self):
        for workers in WORKERS:
            loader = iter(DataLoader(Squares(6, bad=2), **workers))
            self.assertEqual([next(loader)[1].item() for _ in range(2)], [0, 1])
            with self.assertRaises(KeyError) as raised:
                next(loader)
            self.assertRegex(str(raised.exception), r"(?s)Caught KeyError in DataLoader worker (thread|process) 0\.\nOriginal Traceback.*in __getitem__\n.*KeyError: 'there is no 2'")
            self.assertEqual([next(loader)[1].item() for _ in range(3)], [9, 16, 25])
            self.assertEqual(list(loader), [])
            gc.collect()
            gc.disable()  # the error keeps nothing alive
            try:
                list(DataLoader(Squares(60, bad=2), **workers))
            except KeyError:
                pass
            try:
                self.assert_no_workers()
            finally:
                gc.enable()
        with self.assertRaisesRegex(KeyError, "there is no 2"):
            list(DataLoader(Squares(6, bad=2)))

    def test_what_no_process_receives_is_an_error(self):
        class Local(Squares):
            pass

        self.assertEqual(len(list(DataLoader(Local(3), **WORKERS[0]))), 3)
        with self.assertRaisesRegex(tenon.InvalidArgument, "(?s)cannot be sent to a process: .*Local.*threads"):
            list(DataLoader(Local(3), **WORKERS[1]))
        with self.assertRaisesRegex(ValueError, "(?s)which could not read the dataset .*not a number"):
            list(DataLoader(Unreadable(), **WORKERS[1]))
        with self.assertRaisesRegex(RuntimeError, "(?s)which could not send its batch.*lambda"):
            list(DataLoader(Unsendable(), collate_fn=keep, **WORKERS[1]))
        with self.assertRaisesRegex(ValueError, "'fork', but a forked process cannot use Tenon"):
            DataLoader(Squares(3), num_workers=1, multiprocessing_context=multiprocessing.get_context("fork"))

    def test_a_worker_that_dies_is_an_error(self):
        with self.assertRaisesRegex(RuntimeError, r"DataLoader worker \(pid \d+\) exited unexpectedly, with the exit code -9"):
            list(DataLoader(Squares(6, deadly=3), timeout=100, **WORKERS[1]))
        self.assert_no_workers()

    def test_a_timeout_is_an_error(self):
        for workers in WORKERS:
            with self.assertRaisesRegex(RuntimeError, "DataLoader timed out after 0.2 seconds"):
                list(DataLoader(Squares(3, pause=2.5), timeout=0.2, **workers))
        self.assert_no_workers()

    def test_loops_that_end_early_leave_no_workers(self):
        for workers in WORKERS:
            for _ in DataLoader(Squares(1000), prefetch_factor=8, **workers):
                break
            iterator = iter(DataLoader(Squares(1000), **workers))
            next(iterator)
            del iterator
            try:
                for _ in DataLoader(Squares(1000), **workers):
                    raise InterruptedError
            except InterruptedError:
                pass
            self.assert_no_workers()

    def assert_no_workers(self):
        end = time.monotonic() + 20
        while time.monotonic() < end and (multiprocessing.active_children() or any(each.name == "tenon-data" for each in threading.enumerate())):
            time.sleep(0.02)
        self.assertEqual(([each for each in threading.enumerate() if each.name == "tenon-data"], multiprocessing.active_children()), ([], []))

    def test_workers_under_load(self):
        """Several loops at once, whose batches are made while tensors are computed."""
        sums, wrong = [], []

        def loop(workers):
            try:
                total = 0.0
                for x, y, _ in DataLoader(Squares(400), batch_size=7, shuffle=True, **workers):
                    total += float((x @ tenon.ones(2, 64)).sum()) + float(y.sum())
                sums.append(total)
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=loop, args=({**workers, "prefetch_factor": factor},)) for workers in WORKERS for factor in (1, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        self.assertEqual(sums, [sum(2 * 64 * i + i * i for i in range(400))] * 4)
        self.assert_no_workers()


LOOP = '''
import multiprocessing, os, signal, sys, time
import tenon
from tenon.utils.data import DataLoader

class Slow:
    def __len__(self):
        return 100000

    def __getitem__(self, i):
        time.sleep(0.01)
        return tenon.ones(3)

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started the test in the background
    for i, batch in enumerate(DataLoader(Slow(), num_workers=2, multiprocessing_context=None if sys.argv[1] == "thread" else sys.argv[1])):
        if i == 3:
            print(*(each.pid for each in multiprocessing.active_children()), flush=True)
            time.sleep(float(sys.argv[2]))  # then the workers wait
'''


def alive(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@unittest.skipUnless(sys.platform == "linux", "reads /proc")
class Ends(unittest.TestCase):
    def test_no_process_outlives_the_program(self):
        import tempfile
        for kind in ("thread", "spawn", "forkserver"):
            for number, pause in ((signal.SIGINT, 0), (signal.SIGINT, 60), (signal.SIGTERM, 0), (signal.SIGKILL, 60)):
                with self.subTest(kind=kind, signal=number, pause=pause), tempfile.TemporaryDirectory() as folder:
                    path = pathlib.Path(folder) / "loop.py"
                    path.write_text(LOOP)
                    with subprocess.Popen([sys.executable, "-B", str(path), kind, str(pause)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as program:
                        workers = program.stdout.readline().split()
                        self.assertEqual(len(workers), 0 if kind == "thread" else 2)
                        time.sleep(0.3 if pause else 0)
                        (os.killpg if number == signal.SIGINT else os.kill)(program.pid, number)  # Ctrl-C reaches the whole group
                        _, errors = program.communicate(timeout=60)
                    self.assertEqual(errors.count("KeyboardInterrupt"), number == signal.SIGINT, errors)
                    end = time.monotonic() + 30
                    while any(map(alive, workers)) and time.monotonic() < end:
                        time.sleep(0.05)
                    self.assertEqual([each for each in workers if alive(each)], [])

    def test_a_program_without_a_guard_is_told(self):
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "loop.py"
            path.write_text("from tenon.utils.data import DataLoader\nprint(list(DataLoader(range(3), num_workers=1, multiprocessing_context='spawn')))\n")
            done = subprocess.run([sys.executable, "-B", str(path)], capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("put the main program under `if __name__ == '__main__':`", done.stderr)


class Checkpoint(unittest.TestCase):
    def test_dropout_draws_the_same_numbers_again(self):
        x = tenon.ones(64, requires_grad=True)
        y = tenon.utils.checkpoint.checkpoint(lambda v: tenon.dropout(v * 1.0, 0.5), x, use_reentrant=False)
        tenon.rand(5)
        y.sum().backward()
        self.assertEqual(x.grad.tolist(), y.tolist())
        self.assertEqual(set(y.tolist()), {0.0, 2.0})

    def test_it_is_compiled(self):
        w = tenon.randn(4, 4)
        f = tenon.compile(lambda v: tenon.utils.checkpoint.checkpoint(lambda a, b: tenon.tanh(a @ b), v, w).sum())
        for _ in range(3):
            x = tenon.randn(3, 4, requires_grad=True)
            f(x).backward()
            np.testing.assert_allclose(x.grad.numpy(), tenon.autograd.grad(tenon.tanh(x @ w).sum(), x)[0].numpy(), rtol=1e-5, atol=1e-6)


if __name__ == "__main__":
    unittest_report.main()

"""Ctrl-C: a long op ends with KeyboardInterrupt, and the process goes on. Each case is a process of its own, whose op
would take minutes; its time limit is far below.

usage: interrupt_test.py OP_RUNNER (which these tests do not use)"""

import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import numpy as np
import tenon

sys.argv[1:2] = []
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

LIMIT = 40  # seconds after the signal

PROGRAM = """
import signal, tenon
{before}
print("ready", flush=True)
raised = None
try:
    {op}
except BaseException as error:
    raised = error
assert type(raised) is {raises}, repr(raised)
assert tenon.add(tenon.tensor([1.0]), 2).tolist() == [3.0]
{after}
print("lived")
"""


def interrupted(op, before="", after="", raises="KeyboardInterrupt", threads=0):
    """Runs `before`, then `op`, and presses Ctrl-C; then runs `after`. Returns what the process wrote."""
    program = PROGRAM.format(op=op, before=before, after=after, raises=raises)
    environment = dict(os.environ, **({"TENON_THREADS": str(threads)} if threads else {}))
    with subprocess.Popen([sys.executable, "-B", "-c", program], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as child:
        try:
            if child.stdout.readline() == "ready\n":
                time.sleep(0.3)
                child.send_signal(signal.SIGINT)
            out, errors = child.communicate(timeout=LIMIT)
        except BaseException:
            child.kill()
            raise
    return out.strip() or errors


MATMUL = "a = tenon.ones(20000, 20000)"
NET = """
w = tenon.ones(4096, 4096)
def net(x):
    for _ in range(300):
        x = tenon.matmul(x, w)
    return x
"""


class Interrupt(unittest.TestCase):
    def check(self, *args, **kwargs):
        self.assertEqual(interrupted(*args, **kwargs), "lived")

    def test_matmul(self):
        self.check("tenon.matmul(a, a)", MATMUL)
        self.check("tenon.matmul(a, a)", MATMUL, threads=1)
        self.check("tenon.matmul(a, a)", "a = tenon.ones(12000, 12000, dtype=tenon.float64)")

    def test_an_op_works_again_after_it_was_stopped(self):
        self.check("tenon.matmul(a, a, out=a)", "a = tenon.ones(20000, 20000)",
                   after="b = tenon.ones(3000, 3000); assert (b @ b).min().item() == 3000 == (b @ b).max().item()")

    def test_convolution(self):
        self.check("tenon.nn.functional.conv2d(x, w, padding=1)",
                   "x, w = tenon.ones(4, 256, 512, 512), tenon.ones(1024, 256, 3, 3)")

    def test_attention(self):
        self.check("tenon.nn.functional.scaled_dot_product_attention(q, q, q)", "q = tenon.ones(1, 32, 65536, 64)")

    def test_compiled_function(self):
        self.check("f(w)", NET + "f = tenon.compile(net)\nf(w[:2]); f(w[:2])")

    def test_graph_of_onnx(self):
        self.check("model(w)", NET + """
import tempfile, tenon.onnx
path = tempfile.mkdtemp() + "/net.onnx"
tenon.onnx.export(net, path, tenon.ones(4096, 4096))
model = tenon.onnx.load(path)
""")

    def test_backward(self):
        self.check("y.backward()", MATMUL + """
class Slow(tenon.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, gradient):
        return gradient * tenon.matmul(a, a)[0, 0]
x = tenon.ones(3).requires_grad_()
y = Slow.apply(x).sum()
""", after="(x * x).sum().backward(); assert x.grad.tolist() == [2.0, 2.0, 2.0]")

    def test_decomposition(self):
        self.check("tenon.linalg.inv(a)", "a = tenon.rand(10000, 10000, dtype=tenon.float64)")

    def test_loops_over_ops(self):
        self.check("while True: x.cumsum(0)", "x = tenon.ones(2**27)")
        self.check("while True: x.numpy().copy()", "x = tenon.ones(2**27)")

    def test_with_other_handlers(self):
        # A handler that does not raise runs after the op. Where it puts the default one back, the next op is stopped.
        self.check("tenon.matmul(b, b); press(); tenon.matmul(a, a)", MATMUL + """
import os, threading
b = tenon.ones(4000, 4000)
count = []
def handler(*_):
    count.append(1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
def press():
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
signal.signal(signal.SIGINT, handler)
""", after="assert count == [1]")

    def test_handlers_have_a_stack_of_their_own(self):
        # Kernels of oneDNN keep data below their stack pointer while they copy a strided matrix.
        self.check("while True: tenon.matmul(a, b, out=c)", """
import os, threading, time
def send():
    while threading.main_thread().is_alive():
        os.kill(os.getpid(), signal.SIGUSR1)
        time.sleep(0.002)
signal.signal(signal.SIGUSR1, lambda *_: None)
threading.Thread(target=send, daemon=True).start()
a, b, c = tenon.ones(704, 6000), tenon.ones(6000, 6000)[:, :704], tenon.ones(704, 704)
for _ in range(60):
    tenon.matmul(a, b, out=c)
assert c.min().item() == 6000 == c.max().item()
""")

    def test_many_windows_pool_in_a_few_ops(self):
        x = np.random.default_rng(0).random((2, 3, 1000), dtype=np.float32)
        for count in (700, 1000, 3001):
            begin = np.arange(count) * 1000 // count
            end = -((np.arange(count) + 1) * 1000 // -count)
            for name, reduce in (("avg", np.mean), ("max", np.max)):
                pool = getattr(tenon.nn.functional, f"adaptive_{name}_pool1d")
                expected = np.stack([reduce(x[..., b:e], axis=-1) for b, e in zip(begin, end)], axis=-1)
                np.testing.assert_allclose(pool(tenon.tensor(x), count).numpy(), expected, rtol=1e-6)
        wide = tenon.nn.functional.adaptive_avg_pool2d(tenon.ones(1, 1, 2, 2**19), (1, 2**20))
        self.assertEqual((wide.shape, wide.min().item(), wide.max().item()), ((1, 1, 1, 2**20), 1, 1))

    def test_printing_has_a_bound(self):
        tenon.set_printoptions(precision=10**9)
        try:
            text = repr(tenon.tensor([0.1, 2.5], dtype=tenon.float64))
        finally:
            tenon.set_printoptions(precision=4)
        self.assertIn(f"{0.1:.1074f}", text)
        self.assertLess(len(text), 3000)


if __name__ == "__main__":
    unittest_report.main()

"""The interpreter lock: ops that take time give it up, and memory of Python's is freed wherever its last user runs.

usage: threads_test.py OP_RUNNER (which these tests do not use)"""

import gc
import pathlib
import subprocess
import sys
import threading
import time
import unittest

import numpy as np
import tenon

sys.argv[1:2] = []
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report


class Counter:
    """A thread of Python that counts whenever somebody gives up the lock, and gives it back after each count."""

    def __enter__(self):
        self.count, self.running = 0, True
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        return self

    def run(self):
        while self.running:
            self.count += 1
            time.sleep(0.0005)

    def __exit__(self, *_):
        self.running = False
        self.thread.join()


class Lock(unittest.TestCase):
    def test_others_run_while_an_op_is_computed(self):
        a = tenon.tensor(np.random.default_rng(1).standard_normal((1200, 1200)))
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1000)  # nobody loses the lock who does not give it up
        try:
            with Counter() as counter:
                before = counter.count
                tenon.matmul(a, a)
                during = counter.count - before
        finally:
            sys.setswitchinterval(interval)
        self.assertGreater(during, 3)

    def test_threads_compute_what_one_does(self):
        inputs = [np.random.default_rng(i).standard_normal((64, 65)).astype("f4") for i in range(4)]
        wrong = []

        def work(array):
            x = tenon.tensor(array)
            for i in range(200):
                y = np.asarray(tenon.sum(tenon.relu(x * i), 1))
                if not np.allclose(y, np.maximum(array * np.float32(i), 0).sum(1), rtol=1e-4, atol=1e-4):
                    wrong.append(i)

        threads = [threading.Thread(target=work, args=(array,)) for array in inputs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_memory_of_python_is_freed_by_any_thread(self):
        freed = []

        class Watched(np.ndarray):
            def __del__(self):
                freed.append(threading.get_ident())

        def saved_for_backward():
            w = tenon.tensor(np.ones(100, "f4"), requires_grad=True)
            return tenon.sum(w * tenon.from_numpy(np.zeros(100, "f4").view(Watched)))

        # Backward gives up the lock, and drops the saved tensors.
        losses = [saved_for_backward() for _ in range(8)]
        gc.collect()
        self.assertEqual(freed, [])
        threads = [threading.Thread(target=loss.backward) for loss in losses]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        gc.collect()
        self.assertEqual(len(freed), 8)

    def test_the_end_of_the_interpreter_is_quiet(self):
        script = ("import numpy, tenon, threading\n"
                  "kept = tenon.from_numpy(numpy.zeros(10000)); others = [kept * 2, memoryview(kept), numpy.asarray(kept)]\n"
                  "def forever():\n"
                  "    while True: tenon.relu(kept)\n"
                  "threading.Thread(target=forever, daemon=True).start()\n"
                  "tenon.kept = kept\n")
        for _ in range(3):
            done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))


if __name__ == "__main__":
    unittest_report.main()

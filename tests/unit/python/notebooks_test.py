"""Programs as people write them in notebooks: with pandas, scikit-learn and Matplotlib; training that stops, is saved, and
continues bit for bit.

usage: notebooks_test.py OP_RUNNER (not used)"""

import importlib.util
import io
import itertools
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import tenon
from tenon import nn
from tenon.utils.data import DataLoader, TensorDataset, random_split

sys.argv.pop(1)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report


def needs(*packages):
    missing = [name for name in packages if not importlib.util.find_spec(name)]
    return unittest.skipIf(missing, f"{' and '.join(missing)} is missing")


class Training:
    """A net with dropout and batch norms, an optimiser, a schedule, and a loader, whose whole state is saved."""

    def __init__(self, optimizer, compiled, workers):
        tenon.manual_seed(11)
        self.net = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 3))
        self.optimizer = optimizer(self.net.parameters())
        self.schedule = tenon.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 40)
        self.generator = tenon.Generator(5)
        self.losses = []
        self.epoch = 0
        self.optimizer.prepare()
        x = tenon.randn(40, 6)
        dataset = TensorDataset(x, (x[:, :3] * 2).argmax(1))
        self.loader = DataLoader(dataset, batch_size=8, shuffle=True, generator=self.generator, num_workers=workers)
        self.step = tenon.compile(self.run, exact=True) if compiled else self.run

    def run(self, x, y):
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.net(x), y)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss

    def train(self, epochs, path, save_at):
        while self.epoch < epochs:
            for x, y in self.loader:
                self.losses.append(self.step(x, y).item())
                self.schedule.step()
            self.epoch += 1
            if self.epoch == save_at:
                tenon.save({"net": self.net.state_dict(), "optimizer": self.optimizer.state_dict(), "schedule": self.schedule.state_dict(), "generator": self.generator.get_state(),
                            "random": tenon.get_rng_state(), "losses": self.losses, "epoch": self.epoch}, path)

    def load(self, path):
        state = tenon.load(path)
        self.net.load_state_dict(state["net"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        self.generator.set_state(state["generator"])
        tenon.set_rng_state(state["random"])
        self.losses, self.epoch = state["losses"], state["epoch"]

    def result(self):
        return [self.losses, [each.tolist() for each in self.net.state_dict().values()], [float(self.optimizer.param_groups[0]["lr"])]]


OPTIMIZERS = {"adam": lambda p: tenon.optim.AdamW(p, lr=0.02), "sgd": lambda p: tenon.optim.SGD(p, lr=0.1, momentum=0.9), "capturable": lambda p: tenon.optim.Adam(p, lr=tenon.tensor(0.02), capturable=True)}


class Continues(unittest.TestCase):
    def test_a_run_that_stops_and_is_loaded_equals_one_that_does_not(self):
        for name, optimizer in OPTIMIZERS.items():
            for compiled, workers in ((False, 0), (False, 2), (name == "capturable", 0)):
                with self.subTest(optimizer=name, compiled=compiled, workers=workers), tempfile.TemporaryDirectory() as folder:
                    path = pathlib.Path(folder) / "last.pt"
                    whole = Training(optimizer, compiled, workers)
                    whole.train(6, path, 3)
                    tenon.manual_seed(99)
                    again = Training(optimizer, compiled, workers)
                    again.load(path)
                    again.train(6, path, None)
                    self.assertEqual(len(whole.losses), 30)
                    self.assertEqual(again.result(), whole.result())
                    self.assertLess(whole.losses[-1], whole.losses[0])

    PROGRAM = '''
import pathlib, sys
import tenon
from tenon import nn
path, epochs = pathlib.Path(sys.argv[1]), int(sys.argv[2])
tenon.manual_seed(1)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 1))
optimizer = tenon.optim.Adam(net.parameters(), lr=0.01)
epoch = 0
if path.exists():
    state = tenon.load(path)
    net.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])
    tenon.set_rng_state(state["random"])
    epoch = state["epoch"]
while epoch < epochs:
    for _ in range(3):
        optimizer.zero_grad()
        (net(tenon.randn(8, 4)) ** 2).mean().backward()
        optimizer.step()
    epoch += 1
    tenon.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "random": tenon.get_rng_state(), "epoch": epoch}, path)
    print(epoch, flush=True)
print([each.tolist() for each in net.state_dict().values()])
'''

    def test_a_program_that_is_killed_again_and_again_ends_as_if_it_were_not(self):
        with tempfile.TemporaryDirectory() as folder:
            whole = subprocess.run([sys.executable, "-B", "-c", self.PROGRAM, f"{folder}/whole.pt", "60"], capture_output=True, text=True, check=True)
            for pause in itertools.chain([5, 20, 9], itertools.repeat(30)):
                with subprocess.Popen([sys.executable, "-B", "-c", self.PROGRAM, f"{folder}/killed.pt", "60"], stdout=subprocess.PIPE, text=True) as program:
                    lines = list(itertools.islice(program.stdout, pause))
                    if lines[-1].startswith("[["):
                        break
                    program.send_signal(signal.SIGKILL)
        self.assertEqual(lines[-1], whole.stdout.splitlines(keepends=True)[-1])


class Notebooks(unittest.TestCase):
    @needs("pandas")
    def test_a_table_becomes_tensors_and_back(self):
        import pandas as pd
        rng = np.random.default_rng(0)
        table = pd.DataFrame({"length": rng.normal(5, 1, 60), "width": rng.normal(3, 1, 60), "kind": rng.choice(["a", "b"], 60)})
        table.loc[3, "width"] = np.nan
        table = table.fillna({"width": table["width"].mean()})
        x = tenon.tensor(table[["length", "width"]].to_numpy(), dtype=tenon.float32)
        y = tenon.tensor(table["kind"].astype("category").cat.codes.values.copy()).long()
        x = (x - x.mean(0)) / x.std(0)
        train, test = random_split(TensorDataset(x, y), [0.8, 0.2], generator=tenon.Generator(1))
        self.assertEqual((len(train), len(test)), (48, 12))
        net = nn.Linear(2, 2)
        optimizer = tenon.optim.Adam(net.parameters(), lr=0.05)
        history = []
        for epoch in range(3):
            for inputs, targets in DataLoader(train, batch_size=16, shuffle=True):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(net(inputs), targets)
                loss.backward()
                optimizer.step()
                history.append({"epoch": epoch, "loss": loss.item()})
        self.assertEqual(len(pd.DataFrame(history).groupby("epoch")["loss"].mean()), 3)
        with tenon.no_grad():
            chances = net(x).softmax(1)
        frame = pd.DataFrame(chances, columns=["a", "b"]).assign(kind=table["kind"])
        self.assertEqual((frame.shape, frame["a"].dtype), ((60, 3), np.float32))
        np.testing.assert_allclose(frame[["a", "b"]].sum(axis=1), 1, rtol=1e-5)
        np.testing.assert_array_equal(pd.Series(x[:, 0]).to_numpy(), x[:, 0].numpy())
        self.assertEqual(pd.DataFrame({"x": x[:, 0], "y": y}).dtypes.tolist(), [np.float32, np.int64])

    @needs("sklearn")
    def test_scikit_learn_takes_tensors_and_gives_them(self):
        from sklearn.datasets import load_iris
        from sklearn.linear_model import LogisticRegression
        from sklearn.metrics import accuracy_score, confusion_matrix
        from sklearn.model_selection import train_test_split
        from sklearn.preprocessing import StandardScaler
        features, labels = load_iris(return_X_y=True)
        train_x, test_x, train_y, test_y = train_test_split(features, labels, test_size=0.3, random_state=0, stratify=labels)
        scaler = StandardScaler().fit(train_x)
        x, y = tenon.tensor(scaler.transform(train_x), dtype=tenon.float32), tenon.tensor(train_y)
        tenon.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
        optimizer = tenon.optim.AdamW(net.parameters(), lr=0.05)
        for _ in range(60):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()
        net.eval()
        with tenon.no_grad():
            predicted = net(tenon.tensor(scaler.transform(test_x)).float()).argmax(dim=1)
        self.assertGreater(accuracy_score(test_y, predicted), 0.85)
        self.assertEqual(confusion_matrix(tenon.tensor(test_y), predicted).sum(), len(test_y))
        model = LogisticRegression(max_iter=500).fit(x, y)
        self.assertGreater(model.score(tenon.tensor(scaler.transform(test_x)), test_y), 0.85)
        np.testing.assert_allclose(StandardScaler().fit_transform(x), StandardScaler().fit_transform(x.numpy()))
        first, second = train_test_split(x, test_size=0.5, random_state=0)
        self.assertEqual((type(first), len(first) + len(second)), (tenon.Tensor, len(x)))

    @needs("matplotlib")
    def test_matplotlib_draws_tensors(self):
        import matplotlib
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
        x = tenon.linspace(0, 6, 50)
        figure, axes = plt.subplots(2, 3)
        line, = axes[0, 0].plot(x, tenon.sin(x), label="sin")
        np.testing.assert_array_equal(line.get_ydata(), tenon.sin(x).numpy())
        axes[0, 0].fill_between(x, tenon.sin(x) - 1, tenon.sin(x) + 1, alpha=0.3)
        axes[0, 1].scatter(x, tenon.cos(x), c=x, s=x * 3)
        counts, _, _ = axes[0, 2].hist(tenon.randn(200), bins=9)
        self.assertEqual(counts.sum(), 200)
        image = axes[1, 0].imshow(tenon.rand(8, 8))
        self.assertEqual(image.get_array().shape, (8, 8))
        axes[1, 1].bar(tenon.arange(3), tenon.tensor([1.0, 2.0, 3.0]))
        axes[1, 2].errorbar(x, x, yerr=tenon.ones(50))
        axes[0, 0].set_title(f"mean {tenon.sin(x).mean():.3f}")
        drawn = io.BytesIO()
        figure.savefig(drawn, format="png")
        plt.close(figure)
        self.assertGreater(len(drawn.getvalue()), 5000)


if __name__ == "__main__":
    unittest_report.main()

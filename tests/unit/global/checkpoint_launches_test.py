"""checkpoint_launches_test.py CARRIER: what one launch saves another one of as many or other ranks goes on with, as if it were the same.

With `rank FOLDER STEPS SPREAD STATES` it is the program of those launches."""

import json
import os
import sys
import tempfile
import unittest

import ranks

WAYS = ("whole", "rows", "columns")


def train(folder, steps, of_parameters, of_states):
    import numpy as np
    import tenon
    from tenon.global_ import load, placement, rank, save, sbp

    everyone = placement("cpu")

    def way(name, tensor):
        return sbp.broadcast if name == "whole" or tensor.ndim == 0 else sbp.split(0 if name == "rows" or tensor.ndim == 1 else 1)

    random = np.random.default_rng(3)
    net = tenon.nn.Sequential(tenon.nn.Linear(5, 7), tenon.nn.Tanh(), tenon.nn.BatchNorm1d(7), tenon.nn.Linear(7, 3)).double()
    with tenon.no_grad():
        for parameter in net.parameters():
            parameter.copy_(tenon.tensor(random.normal(0, 0.5, parameter.shape)))
    net.to_global(everyone, lambda _, tensor: way(of_parameters, tensor))
    optimisers = [tenon.optim.AdamW(list(net.parameters())[:3], lr=0.05), tenon.optim.SGD(list(net.parameters())[3:], lr=0.05, momentum=0.9)]
    for optimiser in optimisers:
        optimiser.prepare()
        for each in optimiser.state.values():
            each.update({name: value.to_global(sbp=way(of_states, value)) for name, value in each.items() if isinstance(value, tenon.Tensor)})
    state = {"net": net, "optimisers": optimisers, "step": 0, "losses": [], "kind": ("some", 1)}
    if os.path.exists(folder):
        assert load(state, folder) == []
        assert state["kind"] == ("some", 1)
    layouts = [value.sbp for optimiser in optimisers for each in optimiser.state.values() for value in each.values() if isinstance(value, tenon.Tensor)]
    for _ in range(steps):
        state["step"] += 1
        data = np.sin(np.arange(55).reshape(11, 5) * state["step"])
        x = tenon.tensor(data).to_global(everyone, sbp.broadcast).to_global(sbp=sbp.split(0))
        loss = ((net(x) - 1) ** 2).mean()
        for optimiser in optimisers:
            optimiser.zero_grad()
        loss.backward()
        for optimiser in optimisers:
            optimiser.step()
        state["losses"].append(loss.item())
    save(state, folder)
    assert layouts == [value.sbp for optimiser in optimisers for each in optimiser.state.values() for value in each.values() if isinstance(value, tenon.Tensor)]
    if rank() == 0:
        print(json.dumps([state["step"], state["losses"]]))


class Launches(unittest.TestCase):
    def launch(self, count, folder, steps, of_parameters, of_states):
        code, out, err = ranks.run(CARRIER, count, [sys.executable, "-B", __file__, "rank", folder, str(steps), of_parameters, of_states], limit=120)
        self.assertEqual(code, 0, f"{count} ranks, {of_parameters}, {of_states}:\n{out}\n{err}")
        return json.loads(out)

    def test_a_launch_of_other_ranks_goes_on(self):
        with tempfile.TemporaryDirectory() as folder:
            _, wanted = self.launch(1, f"{folder}/one", 8, "whole", "whole")
            self.assertLess(wanted[-1], wanted[0])
            path = f"{folder}/several"
            for number, count in enumerate((2, 3, 1, 2)):
                step, losses = self.launch(count, path, 2, WAYS[number % 3], WAYS[(number + 1) % 3])
                self.assertEqual(step, 2 * (number + 1))
                self.assertEqual(len(losses), step)
                for got, want in zip(losses, wanted):
                    self.assertAlmostEqual(got, want, delta=1e-9 * abs(want))

    def test_a_launch_that_misses_a_file_ends_with_its_name_on_every_rank(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/x"
            self.launch(3, path, 1, "rows", "rows")
            lost = next(name for name in sorted(os.listdir(path)) if name.startswith("part-1"))
            os.remove(f"{path}/{lost}")
            program = [sys.executable, "-B", __file__, "rank", path, "1", "columns", "whole"]
            code, out, err = ranks.run("pipes" if CARRIER == "mpi" else CARRIER, 2, program, limit=120)  # mpirun ends processes that have not ended by themselves
            self.assertNotEqual(code, 0)
            self.assertEqual(err.count("NotFound: rank 0: load: there is no file"), 2, err)
            self.assertIn(lost, err)


if __name__ == "__main__":
    if sys.argv[1] == "rank":
        train(sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
    else:
        CARRIER = sys.argv.pop(1)
        unittest.main()

"""Runs the models of make_models.py on the asynchronous fake, with the settings that a test gives it."""
import json
import os
import pathlib
import subprocess
import sys


def make_models(folder):
    """The folders of the five models, made below `folder`."""
    make = pathlib.Path(__file__).resolve().with_name("make_models.py")
    subprocess.run([sys.executable, "-B", str(make), str(folder)], check=True)
    return sorted(path.parent for path in folder.glob("small_*/model.onnx"))


class Runner:
    """Runs models on the fake with the primitives of the reference, each in a process of its own."""

    def __init__(self, tool, plugins, folder):
        self.tool, self.folder = tool, folder
        inherited = os.environ.get("TENON_PLUGIN_PATH", "")
        self.path = plugins + (":" + inherited if inherited else "")

    def run(self, model, name, fake, **settings):
        """Returns the bytes of each output, and the report. `fake` is the fake's configuration."""
        place = self.folder / "runs" / name
        place.mkdir(parents=True, exist_ok=True)
        config = place / "tenon.toml"
        rows = {"reference": 1, "memory": 268435456, "delay_us": 20, **fake}
        config.write_text("[provider.async]\n" + "".join(f'{key} = "{value}"\n' for key, value in rows.items()))
        config.chmod(0o600)
        inputs = [f"--input={self.name_of(file)}={file}" for file in sorted((model / "test_data_set_1").glob("input_*.pb"))]
        environment = {**os.environ, "TENON_CONFIG": str(config), "TENON_PLUGIN_PATH": self.path,
                       "TENON_PROVIDERS": "async,cpu", **settings}
        done = subprocess.run([self.tool, "run", str(model / "model.onnx"), "--device", "async:0", "--output", str(place),
                               "--report", "--json", *inputs], capture_output=True, text=True, timeout=300,
                              env=environment)
        if done.returncode != 0 or not done.stdout.startswith("{"):
            sys.exit(f"{model.name} {name}: {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        if "broken by the" in done.stderr:
            sys.exit(f"{model.name} {name}: {done.stderr[-2000:]}")
        outputs = {file.name: file.read_bytes() for file in sorted(place.glob("*.npy"))}
        return outputs, json.loads(done.stdout)["executions"]

    @staticmethod
    def name_of(file):
        import onnx

        return onnx.load_tensor(str(file)).name

"""A model on the fake driver and on the CPU, with the libraries of a folder: right results, and words of the log."""
import os
import pathlib
import subprocess
import tempfile


class LibraryRuns:
    """Runs of `tenon compare` with the fakes of a folder, or with some of them broken. `failures` lists the failures."""

    def __init__(self, tool, providers, fake, make_model):
        self.tool, self.providers, self.fake, self.failures = tool, providers, fake, []
        self.folder = tempfile.TemporaryDirectory()
        self.model = pathlib.Path(self.folder.name) / "model.onnx"
        make_model(self.model)

    def compare(self, *words, libraries=None, **variables):
        """The tool's output, in which all words must be."""
        libraries = libraries or self.fake
        environment = {**os.environ, **variables, "TENON_PLUGIN_PATH": self.providers, "LD_LIBRARY_PATH": str(libraries)}
        done = subprocess.run([self.tool, "compare", str(self.model), "--device", "cpu", "--device", "cuda:0"],
                              capture_output=True, text=True, env=environment, timeout=240)
        text = done.stdout + done.stderr
        if done.returncode != 0:
            self.failures.append(f"exit code {done.returncode} with {variables}\n{text}")
        for word in words:
            if word not in text:
                self.failures.append(f"'{word}' is missing with {libraries}, {variables}:\n{text}")
        return text

    def compare_without(self, broken, kept, *words):
        """With the fakes `kept` and with files that are not libraries. A real one in CUDA's folder would serve instead."""
        real = [path for name in broken if os.path.exists(path := f"/usr/local/cuda/lib64/{name}")]
        if real:
            print(f"left out: the run without {', '.join(broken)}, since {real[0]} is found instead")
            return
        folder = pathlib.Path(self.folder.name) / "broken"
        folder.mkdir()
        for name in kept:
            os.symlink(os.path.join(self.fake, name), folder / name)
        for name in broken:
            (folder / name).write_text("this is not a library\n" * 100)
        self.compare(*words, "invalid ELF header", libraries=folder)

    def end(self):
        """Prints the failures and returns the exit code."""
        self.folder.cleanup()
        for failure in self.failures:
            print(failure)
        print(f"{len(self.failures)} things wrong")
        return 1 if self.failures else 0

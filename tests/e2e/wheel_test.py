"""A wheel is complete and not too large: it runs in a new virtual environment that contains nothing else.

Usage: wheel_test.py WHEEL SOURCE_ROOT        (by hand: ./dev wheel builds one and runs this)

Its libraries need each other and those that every Linux with a C++ runtime has. The ten lines of README.md run, then ops that
go into each library; the process then has the wheel's libraries, and no others of their names.
"""
import os
import re
import subprocess
import sys
import tempfile
import venv
import zipfile

LARGEST = 60e6
OF_THE_SYSTEM = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s))\.so[.0-9]*$")
LINES = """
import sys, tenon
x = tenon.rand(300, 300)
(x @ x).relu().sum().item()
tenon.linalg_qr(x)
tenon.nn.functional.conv2d(tenon.rand(1, 16, 32, 32), tenon.rand(16, 16, 3, 3))
tenon.onnx.load(sys.argv[1])(tenon.rand(2, 3, 64, 64))
print(*sorted({line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}), sep="\\n")
"""


def needed_by(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", subprocess.run(["readelf", "-d", path], check=True, capture_output=True, text=True).stdout)


def main():
    wheel, source = map(os.path.abspath, sys.argv[1:3])
    size = os.path.getsize(wheel)
    print(f"{os.path.basename(wheel)}: {size / 1e6:.1f} MB")
    assert size <= LARGEST, f"it may have {LARGEST / 1e6:.0f} MB"
    with zipfile.ZipFile(wheel) as files:
        [metadata] = [name for name in files.namelist() if name.endswith(".dist-info/METADATA")]
        assert "\nRequires-Python: >=3.10\n" in files.read(metadata).decode(), metadata
    with open(os.path.join(source, "README.md")) as file:
        [readme] = [block for block in re.findall(r"^```python\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)
                    if "optimizer" in block]
    with tempfile.TemporaryDirectory() as folder:
        place = os.path.join(folder, "venv")
        venv.create(place, with_pip=True)
        python = os.path.join(place, "bin", "python")
        clean = {"HOME": folder, "PATH": "/usr/bin:/bin", "TENON_DEVICE": "cpu", "TENON_PROVIDERS": "cpu"}
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check", wheel], check=True)
        run = [python, "-B", "-c"]
        learned = subprocess.run([*run, readme], env=clean, cwd=folder, check=True, capture_output=True, text=True).stdout
        assert float(re.fullmatch(r"tensor\((.*)\)\n", learned)[1]) > 0.9, learned
        model = os.path.join(source, "sdk/app/examples/demo/shapes.onnx")
        mapped = subprocess.run([*run, LINES, model], env=clean, cwd=folder, check=True, capture_output=True, text=True).stdout.split()
        for tool in ([os.path.join(place, "bin", "tenon")], [python, "-m", "tenon"]):
            listed = subprocess.run([*tool, "devices"], env=clean, cwd=folder, check=True, capture_output=True, text=True).stdout
            assert "cpu" in listed, listed
        libraries = {file: os.path.join(at, file) for at, _, files in os.walk(place) for file in files if "/tenon" in at and (".so" in file or "/libexec/" in at)}
        for path in libraries.values():
            strange = [name for name in needed_by(path) if name not in libraries and not OF_THE_SYSTEM.match(name)]
            assert not strange, f"{path} needs {strange}"
    own = [path for path in mapped if path.startswith(place + "/")]
    others = [path for path in mapped if os.path.basename(path) in libraries and path not in own]
    assert len(own) > 10 and not others, (own, others)
    print(f"{len(own)} of its {len(libraries)} libraries and programs were mapped; they need nothing of the system but the libraries of C and C++")


if __name__ == "__main__":
    main()

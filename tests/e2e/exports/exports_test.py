"""Models that PyTorch exported give PyTorch's results.

usage: exports_test.py TENON DEVICE FOLDER"""

import pathlib
import re
import shutil
import subprocess
import sys

tool, device, folder = sys.argv[1:]
make = pathlib.Path(__file__).resolve().with_name("make_exports.py")
shutil.rmtree(folder, ignore_errors=True)
made = subprocess.run([sys.executable, "-B", str(make), folder], check=False)
if made.returncode != 0:
    sys.exit(made.returncode)
count = len(list(pathlib.Path(folder).glob("exported_*/model.onnx")))
done = subprocess.run([tool, "onnx-test", "--device", device, folder], capture_output=True, text=True, check=False)
print(done.stdout + done.stderr)
if count == 0 or done.returncode != 0 or not re.search(f"^{count} passed, 0 failed, 0 skipped", done.stdout, re.M):
    sys.exit(f"onnx-test ended with {done.returncode}; expected '{count} passed, 0 failed, 0 skipped'.")

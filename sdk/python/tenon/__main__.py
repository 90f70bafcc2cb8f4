"""python -m tenon: the tool `tenon`, which lies in the package, in the build tree, or on the search path."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def main() -> None:
    """Replaces this process by the tool, with the arguments of this process."""
    package = Path(__file__).absolute().parent
    beside = (package / "bin" / "tenon", package.parents[2] / "bin" / "tenon")
    tool = next((str(each) for each in beside if os.access(each, os.X_OK)), None) or shutil.which("tenon")
    if tool is None:
        sys.exit("python -m tenon: the tool is not here. It is looked for in " + " and ".join(map(str, beside)) + ", and on PATH.")
    os.execv(tool, ["tenon", *sys.argv[1:]])


if __name__ == "__main__":
    main()

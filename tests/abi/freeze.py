"""Freezes the minor that ep_api.h describes, once. Nothing else writes ep_api/abi.

Usage: freeze.py SOURCE_ROOT [--again]    --again replaces the frozen minor, while the major version is 0
"""
import os
import sys
import tempfile

import frozen
import header
import trial


def main():
    root, again = os.path.abspath(sys.argv[1]), sys.argv[2:] == ["--again"]
    if sys.argv[2:] and not again:
        sys.exit(__doc__)
    minor, major = (header.defined_number(root, name) for name in ("EP_ABI_LATEST_MINOR", "EP_ABI_MAJOR"))
    if again and major != 0:
        sys.exit("ep_api.h is past 0.x: a released minor is frozen once.")
    folder = frozen.folder_of(root, minor)
    if os.path.exists(folder) and not again:
        sys.exit(f"0.{minor} is frozen already. An addition is for the next minor: raise EP_ABI_LATEST_MINOR in ep_api.h and "
                 f"put it inside #if EP_ABI_TARGET_MINOR >= {minor + 1}. While the major version is 0, --again replaces it.")
    with tempfile.TemporaryDirectory() as work:
        trial.plain(root, work)
        frozen.write_minor(work, minor, folder)
    frozen.add_binary(folder, minor)
    frozen.write(os.path.join(root, "ep_api", frozen.SIZES), frozen.sizes_text(root))
    frozen.write(os.path.join(root, "ep_api/abi", frozen.MANIFEST), frozen.manifest_text(root))
    print(f"froze 0.{minor}")


if __name__ == "__main__":
    main()

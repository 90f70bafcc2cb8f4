"""Writes ep_api/abi. Nothing else writes that folder.

Usage: freeze.py SOURCE_ROOT            the two trial minors (while the major version is 0)
       freeze.py SOURCE_ROOT release    the minor that the header describes, once
       freeze.py SOURCE_ROOT release --again    the same minor again, while the major version is 0
"""
import os
import sys
import tempfile

import frozen
import header
import trial


def freeze(sources, minor, root):
    frozen.write_minor(sources, minor, frozen.folder_of(root, minor))
    print(f"froze {frozen.name_of(minor)}")


def freeze_trials(root, work):
    """Freezes the first minor from this tree, and the second from a tree that imitates a later one."""
    before, after = os.path.join(work, "before"), os.path.join(work, "after")
    trial.plain(root, before)
    trial.overlay(root, after)
    freeze(before, trial.FIRST, root)
    freeze(after, trial.SECOND, root)


def freeze_release(root, work, minor, again):
    if os.path.exists(frozen.folder_of(root, minor)) and not again:
        sys.exit(f"0.{minor} is frozen already. An addition is for the next minor: raise EP_ABI_LATEST_MINOR in ep_api.h and "
                 f"put it inside #if EP_ABI_TARGET_MINOR >= {minor + 1}. While the major version is 0, --again replaces it.")
    trial.plain(root, work)
    freeze(work, minor, root)


def main():
    root, words = os.path.abspath(sys.argv[1]), sys.argv[2:]
    if set(words) - {"release", "--again"}:
        sys.exit(__doc__)
    if header.defined_number(root, "EP_ABI_MAJOR") != 0:
        sys.exit("ep_api.h is past 0.x: released minors are frozen once, and the trial minors have done their work.")
    with tempfile.TemporaryDirectory() as work:
        if "release" in words:
            freeze_release(root, work, header.defined_number(root, "EP_ABI_LATEST_MINOR"), "--again" in words)
        else:
            freeze_trials(root, work)
    frozen.write(os.path.join(root, "ep_api", frozen.SIZES), frozen.sizes_text(root))
    frozen.write(os.path.join(root, "ep_api/abi", frozen.MANIFEST), frozen.manifest_text(root))


if __name__ == "__main__":
    main()

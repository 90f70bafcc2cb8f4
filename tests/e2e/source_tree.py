"""The files of the source tree, and the end of a test that looks at them."""
import os
import subprocess


def files_of(root):
    """The files that git tracks or would add, by their paths from `root`."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True)
    return [path for path in listed.stdout.splitlines() if os.path.isfile(os.path.join(root, path))]


def end(failures, looked_at, things="files"):
    """Prints the failures and a summary, and returns the exit status. Having looked at nothing is a failure."""
    for failure in failures:
        print(failure)
    print(f"{looked_at} {things} looked at, {len(failures)} things wrong")
    return 1 if failures or not looked_at else 0

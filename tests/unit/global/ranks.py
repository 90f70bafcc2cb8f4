"""ranks.py N PROGRAM [ARGUMENT...]: runs the program on N ranks by mpirun, and ends as it did.

Ranks may be more than cores and belong to root. Only the first rank writes GoogleTest's report.
"""

import os
import subprocess
import sys


def command(ranks, program):
    """How mpirun starts `ranks` ranks of the command `program` here."""
    rest = ["env", "-u", "GTEST_OUTPUT", *program]
    line = ["mpirun", "--oversubscribe", "-n", "1", *program]
    return line + ([":", "-n", str(ranks - 1), *rest] if ranks > 1 else [])


def environment():
    """Of a launch: mpirun refuses root else, and its shared memory needs no more of /dev/shm than there is."""
    return os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "TENON_THREADS": "1",
                         "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_plm_rsh_agent": "",
                         "OMPI_MCA_rmaps_base_oversubscribe": "1"}


if __name__ == "__main__":
    sys.exit(subprocess.run(command(int(sys.argv[1]), sys.argv[2:]), env=environment(), check=False).returncode)

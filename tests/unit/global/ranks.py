"""ranks.py CARRIER N PROGRAM [ARGUMENT...]: runs the program on N ranks and ends as the worst of them did.

CARRIER is `mpi`, by mpirun, or `pipes`, the fake, whose launcher is here, or `nccl`, which works beside `pipes`: on the
fake NCCL if the fakes are in LD_LIBRARY_PATH. Ranks may be more than cores and belong to root. Only the first rank
writes GoogleTest's report.
"""

import concurrent.futures
import os
import subprocess
import sys
import tempfile


def environment(carrier):
    """Of a launch: one thread per rank, the carrier, and leave for mpirun to start root's ranks on few cores."""
    carriers = "pipes,nccl" if carrier == "nccl" else carrier
    return os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                         "OMPI_MCA_plm_rsh_agent": "", "TENON_THREADS": "1", "TENON_COLLECTIVES": carriers}


def run(carrier, count, program, limit=None, **settings):
    """Exit code, output and errors of a launch. `settings` are variables; a launch that takes `limit` seconds is killed."""
    variables = environment(carrier) | settings
    if carrier == "mpi":
        rest = [":", "-n", str(count - 1), "env", "-u", "GTEST_OUTPUT", *program] if count > 1 else []
        launch = subprocess.run(["mpirun", "--oversubscribe", "-n", "1", *program, *rest], env=variables, timeout=limit,
                                capture_output=True, text=True, check=False)
        return launch.returncode, launch.stdout, launch.stderr
    with tempfile.TemporaryDirectory() as folder:
        ranks = []
        for rank in range(count):
            own = variables | {"PIPES_RANK": str(rank), "PIPES_SIZE": str(count), "PIPES_FOLDER": folder,
                               "FAKE_NCCL_FOLDER": folder, "FAKE_CUDA_DEVICES": str(count)}
            if rank > 0:
                own.pop("GTEST_OUTPUT", None)
            ranks.append(subprocess.Popen(program, env=own, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        try:
            with concurrent.futures.ThreadPoolExecutor(count) as readers:  # a rank that says much must not wait for its reader
                said = list(readers.map(lambda rank: rank.communicate(timeout=limit), ranks))
        finally:
            for rank in ranks:
                rank.kill()
        return max(abs(rank.returncode) for rank in ranks), "".join(out for out, _ in said), "".join(err for _, err in said)


if __name__ == "__main__":
    code, out, err = run(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
    sys.stdout.write(out)
    sys.stderr.write(err)
    sys.exit(code)

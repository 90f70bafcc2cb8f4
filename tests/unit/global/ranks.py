"""ranks.py CARRIER N PROGRAM [ARGUMENT...]: runs the program on N ranks and ends as the worst of them did.

CARRIER is `mpi`, by mpirun, or `pipes`, the fake, whose launcher is here, or `nccl`, which works beside `pipes`: on the
fake NCCL if the fakes are in LD_LIBRARY_PATH. Ranks may be more than cores and belong to root. Only the first rank
writes GoogleTest's report.
"""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import time


def environment(carrier):
    """The environment of a launch: one thread per rank, the carrier; mpirun may run as root, on few cores."""
    carriers = "pipes,nccl" if carrier == "nccl" else carrier
    return os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                         "OMPI_MCA_plm_rsh_agent": "", "TENON_THREADS": "1", "TENON_COLLECTIVES": carriers}


def has_living_children(pid):
    """True if a child process of `pid` still runs, or if the system does not report children."""
    try:
        children = " ".join(each.read_text() for each in pathlib.Path(f"/proc/{pid}/task").glob("*/children")).split()
        return any(pathlib.Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] != "Z" for child in children)
    except OSError:
        return True


def wait_for(launcher, limit):
    """True if it has ended within `limit` seconds. Open MPI's launcher can stop in its own end, in PMIx_server_finalize,
    after ranks that end without MPI_Finalize: without ranks it is killed, and what they have said counts."""
    patience = 30
    begin = busy = time.monotonic()
    in_time = True
    while launcher.poll() is None:
        now = time.monotonic()
        if has_living_children(launcher.pid):
            busy = now
        if now - busy > patience or now - begin > limit + patience:
            launcher.kill()
        elif in_time and now - begin > limit:
            launcher.terminate()  # ends the ranks too
            in_time = False
        time.sleep(0.02)
    return in_time


def run_mpi(command, variables, limit):
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        with subprocess.Popen(command, env=variables, stdout=out, stderr=err) as launcher:
            in_time = wait_for(launcher, float("inf") if limit is None else limit)
        for file in (out, err):
            file.seek(0)
        said = out.read(), err.read()
    if not in_time:
        raise TimeoutError(f"{command} has not ended within {limit} s, and said\n{''.join(said)}")
    return launcher.returncode, *said


def run(carrier, count, program, limit=None, **settings):
    """Exit code, output and errors of a launch. `settings` are variables; a launch that takes `limit` seconds is killed."""
    variables = environment(carrier) | settings
    if carrier == "mpi":
        rest = [":", "-n", str(count - 1), "env", "-u", "GTEST_OUTPUT", *program] if count > 1 else []
        return run_mpi(["mpirun", "--oversubscribe", "-n", "1", *program, *rest], variables, limit)
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

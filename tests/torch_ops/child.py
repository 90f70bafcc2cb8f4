"""The process that calls PyTorch and Tenon, and may die of it: child.py CHANNEL FAULTS.

It reads lines `<kind> <index> <start>` and writes messages (record.py) to the file descriptor CHANNEL; a fault's stack
goes to the file FAULTS."""

import faulthandler
import json
import os
import sys
import warnings

sys.dont_write_bytecode = True  # the modules lie in the source tree


def main():
    channel, faults = int(sys.argv[1]), sys.argv[2]
    warnings.filterwarnings("ignore")
    faulthandler.enable(open(faults, "w", encoding="utf-8"))
    import torch
    torch.set_num_threads(1)
    import entries
    import modules
    import optimisers
    from record import Gone
    kinds = {"op": entries.run, "module": modules.run, "optim": optimisers.run, "schedules": optimisers.run_schedules}

    def say(**message):
        os.write(channel, (json.dumps(message) + "\n").encode())
    say(m="ready")
    for line in sys.stdin:
        kind, index, start = line.split()
        try:
            kinds[kind](channel, int(index), int(start))
        except Gone:
            say(m="end", op="", mapped=False, n=0)
        say(m="done")


if __name__ == "__main__":
    main()

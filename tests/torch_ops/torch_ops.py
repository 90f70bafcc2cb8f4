"""PyTorch's operator database against the package: README.md.

usage: torch_ops.py [--ops REGEX] [--part N] [--seed N] [--bar PERCENT] [--jobs N] [--out FILE]"""

import argparse
import json
import os
import queue
import random
import re
import sys
import threading

sys.dont_write_bytecode = True  # the modules lie in the source tree

import expected
from parent import Runner
from tally import Tally


def entries():
    """(kind, index, title) of every entry of the database."""
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.common_modules import module_db
    from torch.testing._internal.common_optimizers import optim_db
    ops = [("op", i, op.name + ("." + op.variant_test_name if op.variant_test_name else "")) for i, op in enumerate(op_db)]
    modules = [("module", i, "module " + info.name) for i, info in enumerate(module_db)]
    optimisers = [("optim", i, "optim " + info.optim_cls.__name__) for i, info in enumerate(optim_db)]
    return ops + modules + optimisers + [("schedules", 0, "schedulers")]


def chosen(args):
    found = [each for each in entries() if re.search(args.ops, each[2])]
    if args.part == 1:
        return found
    return sorted(random.Random(args.seed).sample(found, max(1, len(found) // args.part)), key=found.index)


def run_all(jobs, entries, add):
    """Runs the entries in several children; `add` is given each entry's title and messages, in whatever order."""
    waiting, lock, failures = queue.SimpleQueue(), threading.Lock(), []
    for each in entries:
        waiting.put(each)

    def work():
        runner = Runner()
        try:
            while not failures:
                kind, index, title = waiting.get_nowait()
                messages = runner.run(kind, index)
                with lock:
                    add(title, messages)
        except queue.Empty:
            pass
        except BaseException as error:  # told by the main thread
            failures.append(error)
        finally:
            runner.close()
    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    if failures:
        raise failures[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ops", default="", metavar="REGEX", help="only the entries with such a name")
    parser.add_argument("--part", type=int, default=1, metavar="N", help="one of N entries, chosen by the seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bar", type=float, default=100.0, metavar="PERCENT", help="of the cases must be right or expected")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="children at a time")
    parser.add_argument("--out", metavar="FILE", help="every case that failed, as JSON")
    args = parser.parse_args()
    todo = chosen(args)
    tally = Tally(expected.read(), whole=len(todo) == len(entries()))
    run_all(args.jobs, todo, tally.add)
    if args.out:
        with open(args.out, "w", encoding="utf-8") as file:
            json.dump(tally.failures(), file, indent=0)
    return tally.report(args.bar)


if __name__ == "__main__":
    sys.exit(main())

"""Plants small defects in the product, one at a time, and checks that tests of the file's folder fail.

Usage: mutate.py [--count N] [--seed N] [--file PATTERN]... [--minutes N] [--longest SECONDS] [--work FOLDER]

Works in a copy of the checkout below FOLDER (build/mutation), which each run updates; the checkout itself is only read. A
defect that no test notices survives. It needs a reason in argued.txt, or a test. Exit status 1 if a defect without a
reason survived.
"""
import argparse
import fnmatch
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import folders  # noqa: E402
import mutants  # noqa: E402

PRODUCT = re.compile(r"^(primitives|providers|loader|core|sdk)/.*\.(cpp|h|comp|glsl)$")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
MOST_DEPENDENTS = 25   # a header that more sources include takes too long to build
LONGEST_TEST = 120     # seconds that a test may take without a defect
LEFT_OUT = {"fails": "fails", "out of time": "takes longer than {} s"}
MEMORY = 16 << 30      # bytes of address space that a test with a defect may take
FILE_SIZE = 1 << 30


def run(command, cwd, **options):
    return subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          **options)


def files_of(root):
    listed = run(["git", "ls-files", "-co", "--exclude-standard"], root).stdout.splitlines()
    return [path for path in listed if (root / path).is_file()]


def processes_of(session):
    """The processes of a session. A process group would not be enough, because ctest gives each test its own."""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.getsid(int(entry.name)) == session:
                yield int(entry.name)
        except (ProcessLookupError, PermissionError):
            pass


def end_session(session):
    for process in processes_of(session):
        try:
            os.kill(process, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass


def processor_seconds(session):
    """The processor time of a session's processes, and of their children that have ended."""
    ticks = 0
    for process in processes_of(session):
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        ticks += sum(map(int, fields[11:15]))  # utime, stime, cutime, cstime
    return ticks / os.sysconf("SC_CLK_TCK")


def ends_in_time(process, seconds):
    """False if a session's leader does not end within `seconds`.

    A test gets less processor time on a loaded machine. So a test that still computes gets four times as long, unless it
    has already used `seconds` of processor time. A test that waits for an event that never happens computes nothing.
    """
    begin, used = time.monotonic(), 0
    while True:
        spent = time.monotonic() - begin
        try:
            process.wait(seconds if spent < seconds else max(5, seconds / 4))
            return True
        except subprocess.TimeoutExpired:
            before, used = used, processor_seconds(process.pid)
            if used < before + 0.1 or used > seconds or spent > 4 * seconds:
                return False


class Copy:
    """A copy of the checkout with a build folder, for the defects."""

    def __init__(self, root, work, jobs, longest=LONGEST_TEST):
        self.root, self.tree, self.jobs, self.longest = root, work / "tree", jobs, longest
        self.build = self.tree / "build" / "release"
        for folder in ("home", "tmp", "tree"):
            (work / folder).mkdir(parents=True, exist_ok=True)
        self.environment = dict(
            os.environ, HOME=str(work / "home"), TMPDIR=str(work / "tmp"), CCACHE_BASEDIR=str(self.tree), CCACHE_NOHASHDIR="1",
            CCACHE_SLOPPINESS="pch_defines,time_macros",
            CCACHE_DIR=os.environ.get("CCACHE_DIR") or run(["ccache", "-k", "cache_dir"], root).stdout.strip()
            if shutil.which("ccache") else "")
        self.durations = {}

    def refresh(self):
        wanted = files_of(self.root)
        for path in wanted:
            source, target = self.root / path, self.tree / path
            if target.is_file() and target.read_bytes() == source.read_bytes():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
        for folder, names, files in os.walk(self.tree):
            here = Path(folder).relative_to(self.tree)
            if here == Path("."):
                names[:] = [name for name in names if name not in ("build", ".git")]
            for name in files:
                if str(here / name) not in wanted:
                    (self.tree / here / name).unlink()

    def configure(self):
        if not (self.tree / ".git").exists():  # some tests ask git for the list of files
            run(["git", "init", "-q"], self.tree)
        result = run(["cmake", "--preset", "release"], self.tree, env=self.environment)
        if result.returncode != 0:
            sys.exit(result.stdout)

    def compile(self, targets):
        """None, or the output of a failed build."""
        command = ["cmake", "--build", str(self.build), "-j", str(self.jobs), "--target", *targets]
        result = run(command, self.tree, env=self.environment)
        return None if result.returncode == 0 else result.stdout

    def result_of(self, test, seconds):
        """Runs `test` and returns "passes", "fails" or "out of time". Ends its child processes too."""
        def limits():
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_SIZE, FILE_SIZE))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        command = ["ctest", "--test-dir", str(self.build), "-R", f"^{re.escape(test)}$", "--no-tests=error"]
        with tempfile.TemporaryFile("w+", errors="replace") as said:
            process = subprocess.Popen(command, cwd=self.tree, env=self.environment, preexec_fn=limits, start_new_session=True,
                                       stdout=said, stderr=subprocess.STDOUT)
            try:
                if not ends_in_time(process, seconds):
                    return "out of time"
            finally:
                end_session(process.pid)
                process.wait()
            said.seek(0)
            return "passes" if process.returncode == 0 else "out of time" if "***Timeout" in said.read() else "fails"

    def usable(self, test):
        """True if `test` passes without a defect and within the time limit. Computed once per test."""
        if test.name not in self.durations:
            start = time.monotonic()
            result = self.result_of(test.name, self.longest)
            self.durations[test.name] = time.monotonic() - start if result == "passes" else None
            if result != "passes":
                print(f"{test.name} is left out: without a defect it {LEFT_OUT[result].format(self.longest)}", flush=True)
        return self.durations[test.name] is not None

    def noticed_by(self, tests):
        """The first test that does not pass, and its result; or None."""
        for test in tests:
            result = self.result_of(test.name, int(3 * self.durations[test.name]) + 20)
            if result != "passes":
                return test.name, result
        return None


def headers_in_reach(texts):
    """The headers that at most MOST_DEPENDENTS sources include, directly or not."""
    includes = {path: set(INCLUDE.findall(text)) for path, text in texts.items()}
    def reach(path, seen):
        for name in includes.get(path, ()):
            if name not in seen:
                seen.add(name)
                reach(name, seen)
        return seen
    dependents = {}
    for path in texts:
        if not path.endswith(".h"):
            for name in reach(path, set()):
                dependents[name] = dependents.get(name, 0) + 1
    return {path for path in texts if path.endswith(".h") and 0 < dependents.get(path, 0) <= MOST_DEPENDENTS}


def candidates(root, patterns):
    """The defects of the product, by file, for each of `patterns`. A file that several patterns match belongs to the
    first."""
    paths = [path for path in files_of(root) if path.endswith((".cpp", ".h", ".comp", ".glsl"))]
    texts = {path: (root / path).read_text() for path in paths}
    reachable = headers_in_reach(texts)
    found = {pattern: {} for pattern in patterns}
    for path, text in texts.items():
        chosen = next((pattern for pattern in patterns if fnmatch.fnmatchcase(path, pattern)), None)
        if chosen and PRODUCT.match(path) and (not path.endswith(".h") or path in reachable):
            sites = mutants.mutants_of(path, text)
            if sites:
                found[chosen][path] = sites
    return found


def draw(found, seed):
    """All candidates in the order that the seed draws: a file by its size, then one of its operators, then a place."""
    chance = random.Random(seed)
    left = {path: list(sites) for path, sites in sorted(found.items())}
    while left:
        path = chance.choices(list(left), [len(sites) for sites in left.values()])[0]
        operator = chance.choice(sorted({site.operator for site in left[path]}))
        site = chance.choice([site for site in left[path] if site.operator == operator])
        left[path].remove(site)
        if not left[path]:
            del left[path]
        yield site


def in_turns(draws):
    """Yields one of each of `draws` in turn, until all are exhausted."""
    draws = list(draws)
    while draws:
        for one in list(draws):
            try:
                yield next(one)
            except StopIteration:
                draws.remove(one)


def shown(mutant, text):
    """The file, and the line with the replacement: the name of a defect in argued.txt, independent of the line
    number."""
    begin = text.rfind("\n", 0, mutant.at) + 1
    end = text.find("\n", mutant.at + len(mutant.old))
    line = text[begin:mutant.at] + "{{" + mutant.old + " -> " + mutant.new + "}}" + text[mutant.at + len(mutant.old):end]
    return f"{mutant.path}: {' '.join(line.split())}"


def read_argued(path=HERE / "argued.txt"):
    """The defects that may survive, with their reasons: a line, and indented lines below it."""
    argued, last = {}, None
    for line in path.read_text().splitlines():
        if line.startswith("    ") and last is not None:
            argued[last] = (argued[last] + " " + line.strip()).strip()
        elif line.strip() and not line.startswith("#"):
            last = line.strip()
            argued[last] = ""
    return argued


def stale(argued, found, texts):
    """The argued defects that are not candidates any more."""
    known = {shown(site, texts[path]) for path, sites in found.items() if path in texts for site in sites}
    return [line for line in argued if line not in known]


class Campaign:
    def __init__(self, copy, table, argued):
        self.copy, self.table, self.argued = copy, table, argued
        self.tests = folders.read_tests(copy.build)
        self.counts = {"killed": 0, "out of time": 0, "survived": 0, "argued": 0, "not compiled": 0}
        self.survivors = []

    def tests_of(self, path):
        return [self.tests[name] for name in folders.tests_of(path, self.tests, self.table)]

    def prepare(self, drawn):
        """Builds the targets for the tests of the drawn defects, without a defect."""
        targets = sorted({target for mutant in drawn for test in self.tests_of(mutant.path) for target in test.targets})
        said = self.copy.compile(targets or ["tenon_core"])
        if said is not None:
            sys.exit("the copy does not build:\n" + said[-3000:])

    def usable_tests_of(self, mutant):
        tests = self.tests_of(mutant.path)
        if any(test.name not in self.copy.durations for test in tests):
            self.prepare([mutant])  # the built files still contain the previous defect
        return [test for test in tests if self.copy.usable(test)]

    def plant(self, mutant):
        """The result of one defect: a key of `counts`, and the test that detected it."""
        path = self.copy.tree / mutant.path
        text = path.read_text()
        tests = self.usable_tests_of(mutant)
        try:
            path.write_text(mutant.apply(text))
            said = self.copy.compile(sorted({target for test in tests for target in test.targets}) or ["all"])
            if said is not None:
                return "not compiled", ""
            by = self.copy.noticed_by(tests)
        finally:
            path.write_text(text)
        if by is not None:
            return "killed" if by[1] == "fails" else by[1], by[0]
        return ("argued", "") if shown(mutant, text) in self.argued else ("survived", f"{len(tests)} tests")

    def tell(self, mutant, outcome, by, seconds):
        text = (self.copy.tree / mutant.path).read_text()
        self.counts[outcome] += 1
        number = sum(count for name, count in self.counts.items() if name != "not compiled")
        print(f"{number:4} {outcome:12} {by:28} {seconds:4.0f} s  {mutant.operator:10} line {mutant.line(text):4} of "
              f"{shown(mutant, text)}", flush=True)
        if outcome == "survived":
            self.survivors.append(shown(mutant, text))

    def run(self, drawn, count, minutes):
        ahead = [mutant for mutant, _ in zip(drawn, range(count))]
        self.prepare(ahead)
        begin = time.monotonic()
        while sum(self.counts.values()) - self.counts["not compiled"] < count:
            mutant = ahead.pop(0) if ahead else next(drawn, None)
            if mutant is None or (minutes and time.monotonic() - begin > 60 * minutes):
                break
            start = time.monotonic()
            outcome, by = self.plant(mutant)
            self.tell(mutant, outcome, by, time.monotonic() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=100, help="the number of defects that compile")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10 ** 6))
    parser.add_argument("--file", action="append", default=[], metavar="PATTERN", help="only in files that match; `*` is anything; several take turns")
    parser.add_argument("--minutes", type=float, default=0, help="minutes after which no further defect begins")
    parser.add_argument("--longest", type=int, default=LONGEST_TEST, metavar="SECONDS", help="leave out tests that take longer")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "mutation")
    options = parser.parse_args()
    print(f"seed {options.seed}: ./dev mutate {options.count} {options.seed} draws the same from the same sources", flush=True)
    found = candidates(ROOT, options.file or ["*"])
    for pattern, files in found.items():
        print(f"{pattern}: {sum(map(len, files.values()))} places for a defect in {len(files)} files", flush=True)
    copy = Copy(ROOT, options.work.resolve(), int(os.environ.get("MUTATION_JOBS") or os.cpu_count()), options.longest)
    copy.refresh()
    copy.configure()
    argued = read_argued()
    if not options.file:
        for line in stale(argued, found["*"], {path: (ROOT / path).read_text() for path in found["*"]}):
            print("argued.txt: no longer in the sources:", line)
    campaign = Campaign(copy, folders.read_table(), argued)
    campaign.run(in_turns(draw(files, options.seed) for files in found.values()), options.count, options.minutes)
    for survivor in campaign.survivors:
        print("SURVIVED", survivor)
    print(", ".join(f"{count} {name}" for name, count in campaign.counts.items()))
    return 1 if campaign.survivors or not campaign.counts["killed"] + campaign.counts["out of time"] else 0


if __name__ == "__main__":
    sys.exit(main())

"""Somebody breaks every enforced rule of ep_api/README.md, and its enforcer prints the number of the rule.

Usage: rules_test.py SOURCE_ROOT BUILD_FOLDER TENON_CONFORM

Reads the table of rules and tests/fakes/mirror/violations.def. A row `VIOLATION(name, rule, outcome, test, what)` is a way
in which the mirror can break a rule: the kit's `test` must find it, with that outcome and that number. A row
`REFUSED(name, rule, code, what)` is a provider of tests/fakes/broken, which the loader must refuse with that code and
number; `DECLINED` is the same by the mirror. Rules whose enforcer is the validation layer are broken in tests/unit/loader/validate_test.cpp, which reads the
same table. What nobody enforces must say why in the README, and is listed at the end.
"""
import fnmatch
import json
import os
import re
import subprocess
import sys

RULE = re.compile(r"^\| ([A-Z]\d\d) \| (.*) \| ([^|]*) \|$", re.MULTILINE)
ROW = re.compile(r'^(VIOLATION|LIBRARY|DECLINED|REFUSED)\((\w+),\s*"([^"]*)",\s*"([^"]*)",(?:\s*"([^"]*)",)?\s*"([^"]*)"\)$', re.MULTILINE)
ENFORCERS = {"loader", "kit", "validation layer", "nobody"}
MOST_BY_NOBODY = 6
# A defect that another test once blamed on another rule: what else finds it, and the one rule that may be named there.
ONE_DIAGNOSIS = [
    ("out_of_order", "S01", ("primitives/unary/relu/f32/*", "primitives/binary/add/f32/*", "[!p]*", "process/*")),
    ("uploads_at_once", "S01", ("transfers/*", "streams/*", "events/*")),
    ("early", "S04", ("memory/*", "transfers/*", "streams/*", "events/*", "primitives/unary/relu/f32/*")),
    ("next_tag", "F01", ("faults/*", "primitives/binary/div/i32/*")),
    ("wrong_tag", "F01", ("faults/*", "primitives/binary/div/i32/*", "primitives/gather/*/out_of_range*")),
    ("waits_fail", "S03", ("transfers/*", "streams/*", "primitives/unary/relu/f32/*", "teardown/*")),
    ("download_offset", "M08", ("transfers/exact",)),
]
# A race must be found each time.
TEN_OF_TEN = ("unlocked_arguments",)


class Test:
    def __init__(self, root, build, kit):
        self.root, self.build, self.kit = root, build, kit
        self.readme = open(os.path.join(root, "ep_api/README.md")).read()
        self.rules = {rule: [part.strip() for part in re.sub(r"\([^)]*\)", "", by).split(",")]
                      for rule, _, by in RULE.findall(self.readme)}
        self.rows = ROW.findall(open(os.path.join(root, "tests/fakes/mirror/violations.def")).read())
        self.failures, self.shown = [], 0

    def expect(self, condition, sentence):
        self.shown += 1
        if not condition:
            self.failures.append(sentence)

    def run(self, library, *arguments, outcome="failed"):
        """The findings of the kit. A test that must hang is cut off soon."""
        limit = ["--time-limit", "5"] if outcome == "hung" else []
        command = [self.kit, os.path.join(self.build, "lib", library), "--json", "-", *limit, *arguments]
        result = subprocess.run(command, capture_output=True, text=True)
        try:
            return json.loads(result.stdout)["tests"]
        except (ValueError, KeyError):
            sys.exit(f"{command} ended with {result.returncode}: {result.stdout} {result.stderr}")

    def table_is_well_formed(self):
        lines = [line for line in self.readme.splitlines() if re.match(r"^\| [A-Z]\d\d ", line)]
        self.expect(len(lines) == len(self.rules) > 30, f"{len(lines)} rows, {len(self.rules)} rules with a number of their own")
        with open(os.path.join(self.root, "ep_api/COLLECTIVES.md"), encoding="utf-8") as file:
            collectives = [rule for rule, _, _ in RULE.findall(file.read())]
        self.expect(len(collectives) == len(set(collectives)) > 10, f"COLLECTIVES.md has a rule twice: {collectives}")
        shared = sorted(set(collectives) & set(self.rules))
        self.expect(not shared, f"README.md and COLLECTIVES.md both have the rules {shared}")
        for rule, enforcers in self.rules.items():
            for enforcer in enforcers:
                self.expect(enforcer in ENFORCERS, f"{rule}: '{enforcer}' enforces nothing; there are {sorted(ENFORCERS)}")

    def claims_and_violators_agree(self):
        refused = ("DECLINED", "REFUSED")
        broken = {"loader": {rule for kind, _, rule, *_ in self.rows if kind in refused},
                  "kit": {rule for kind, _, rule, *_ in self.rows if kind not in refused}}
        for enforcer, shown in broken.items():
            claimed = {rule for rule, by in self.rules.items() if enforcer in by}
            self.expect(not claimed - shown, f"the {enforcer} is said to enforce {sorted(claimed - shown)}, which nobody breaks")
            self.expect(not shown - claimed, f"the {enforcer} enforces {sorted(shown - claimed)}, and the table does not say so")

    def violators_are_caught(self):
        for kind, name, rule, outcome, test, what in self.rows:
            if kind == "REFUSED":
                found = self.run(f"broken/libtenon_{name}.so", "--case", "loader/accepts")
            elif kind == "DECLINED":
                found = self.run("fakes/libtenon_mirror.so", "--set", "break=" + name, "--case", "loader/accepts")
            elif kind == "LIBRARY":
                found = self.run(f"fakes/libtenon_{name}.so", "--case", test)
            else:
                found = self.mirror(name, test, outcome=outcome)
            # A crash breaks X01 and a hang X02, and each also breaks the rule of its test.
            ended = [one for one in found if one["outcome"] in ("crashed", "hung") and one["held to"] == rule]
            hits = [one for one in found if f"(rule {rule})" in one["sentence"]] or ended
            said = [(one["name"], one["outcome"], one["sentence"]) for one in found if one["outcome"] not in ("passed", "skipped")]
            self.expect(hits, f"{name} ({what}) breaks {rule}; the kit said {said or 'nothing'}")
            for hit in hits[:1]:
                if kind in ("DECLINED", "REFUSED"):
                    self.expect(hit["outcome"] == "failed" and f"code '{outcome}'" in hit["sentence"],
                                f"{name}: not refused with '{outcome}': {hit['sentence']}")
                else:
                    self.expect(hit["outcome"] == outcome, f"{name}: {hit['outcome']}, not {outcome}: {hit['sentence']}")

    def mirror(self, name, *cases, outcome="failed"):
        return self.run("fakes/libtenon_mirror.so", "--set", "mode=async,mapped,peers,graphs,layouts,modules", "--set", "break=" + name,
                        "--case", ",".join(cases), outcome=outcome)

    def every_test_that_catches_somebody_is_listed(self):
        listed = subprocess.run([self.kit, "--list"], capture_output=True, text=True, check=True).stdout
        names = [line.split("\t")[0] for line in listed.splitlines()]
        for _, name, _, _, test, _ in self.rows:
            self.expect(not test or fnmatch.filter(names, test), f"{name}: --list has no test '{test}'")
        self.expect("claims/stated" in names, "--list has no claims/stated")

    def a_violator_gets_one_diagnosis(self):
        for name, rule, cases in ONE_DIAGNOSIS:
            found = self.mirror(name, *cases)
            bad = [one for one in found if one["outcome"] not in ("passed", "skipped")]
            self.expect(bad, f"{name}: nothing of {cases} failed")
            for one in bad:
                self.expect(one["outcome"] == "failed" and one["rule"] == rule,
                            f"{name} breaks {rule}; {one['name']} {one['outcome']}: {one['sentence']}")
            print(f"{name}: {len(bad)} of {len(found)} tests failed, all by {rule}; {bad[0]['sentence'] if bad else ''}")

    def races_are_found_each_time(self):
        rows = {name: (rule, test) for _, name, rule, _, test, _ in self.rows}
        for name in TEN_OF_TEN:
            rule, test = rows[name]
            caught = sum(any(one["outcome"] == "failed" and one["rule"] == rule for one in self.mirror(name, test))
                         for _ in range(10))
            print(f"{name}: caught in {caught} of 10 runs")
            self.expect(caught == 10, f"{name} was caught in {caught} of 10 runs")

    def a_quick_device_that_waits_late_is_found(self):
        """A stream of the asynchronous fake waits for the newest point of an event, not for the one it held at the call."""
        caught = 0
        for late in ("0", "1", "1", "1"):
            found = self.run("fakes/libtenon_async.so", "--set", "memory=67108864", "--set", "late_waits=" + late,
                             "--case", "events/wait_captures")
            bad = [one for one in found if one["outcome"] not in ("passed", "skipped")]
            self.expect(late == "1" or not bad, f"events/wait_captures fails a sound device: {bad}")
            caught += any(one["rule"] == "S05" for one in bad)
        print(f"late_waits: caught in {caught} of 3 runs")
        self.expect(caught == 3, f"late_waits was caught in {caught} of 3 runs")

    def what_nobody_enforces_is_argued(self):
        nobody = sorted(rule for rule, by in self.rules.items() if "nobody" in by)
        self.expect(len(nobody) <= MOST_BY_NOBODY, f"{len(nobody)} rules are enforced by nobody: {nobody}")
        section = self.readme.split("## Rules without an enforcer", 1)[-1].split("\n## ", 1)[0]
        for rule in nobody:
            self.expect(re.search(rf"^- {rule}: ", section, re.MULTILINE), f"the README does not say why nobody enforces {rule}")
        print("enforced by nobody:", ", ".join(nobody) or "none")


def main():
    test = Test(*sys.argv[1:4])
    for claim in (test.table_is_well_formed, test.claims_and_violators_agree, test.violators_are_caught,
                  test.every_test_that_catches_somebody_is_listed,
                  test.a_violator_gets_one_diagnosis, test.races_are_found_each_time, test.a_quick_device_that_waits_late_is_found, test.what_nobody_enforces_is_argued):
        claim()
    for failure in test.failures:
        print("FAILED", failure)
    print(f"{len(test.rules)} rules, {len(test.rows)} violators, {test.shown} checks, {len(test.failures)} failed")
    return 1 if test.failures else 0


if __name__ == "__main__":
    sys.exit(main())

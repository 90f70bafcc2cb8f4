"""Counts the cases of all entries, and says which failed."""

import collections

SHOWN = 3                       # faults of one kind that an entry shows


class Tally:
    """`rows`: what is expected (expected.py). `whole`: all entries are run, so every row must be of use."""

    def __init__(self, rows, whole):
        self.rows, self.whole = rows, whole
        self.counts, self.missing, self.faults = collections.Counter(), [], collections.defaultdict(list)

    def add(self, title, messages):
        cases = collections.defaultdict(list)
        passed = 0
        for message in messages:
            if message["m"] == "end" and not message["mapped"]:
                if not self._expected(title, dict(phase="entry", dtype="is", kind="missing", detail="")):
                    self.missing.append(title)
                return
            if message.get("r") == "harness":
                message = dict(message, kind="harness")
            if message.get("r") == "pass":
                passed += 1
            elif "kind" in message:
                cases[message["n"]].append(message)
        self.counts["passed"] += passed
        for faults in cases.values():
            left = [each for each in faults if not self._expected(title, each)]
            self.counts["failed" if left else "expected"] += 1
            self.faults[title] += left

    def _expected(self, title, fault):
        return any(row.covers(title, fault["phase"], fault["dtype"], fault["kind"], fault["detail"]) for row in self.rows)

    def failures(self):
        """Every fault that is not expected, by entry."""
        return {title: faults for title, faults in sorted(self.faults.items()) if faults}

    def report(self, bar):
        """Prints what failed and gives the exit status: 1 if a child died, or if less than `bar` percent is right; of 100
        percent also if an entry is missing or a row of PYTORCH.md is of no use."""
        for title, faults in self.failures().items():
            self._show(title, faults)
        for title in self.missing:
            print(f"{title}: Tenon has no such function")
        stale = [row for row in self.rows if self.whole and not row.used]
        for row in stale:
            print(f"PYTORCH.md expects what no case shows: {row.entry.pattern} | {row.what.pattern}")
        print(f"{self.counts['passed']} passed, {self.counts['failed']} failed, {self.counts['expected']} expected, {len(self.missing)} entries missing")
        right = self.counts["passed"] + self.counts["expected"]
        part = 100.0 * right / max(right + self.counts["failed"], 1)
        print(f"{part:.2f} % of the cases are right or expected; {bar:g} % must be")
        if any(fault["kind"] in ("crash", "hang") for faults in self.faults.values() for fault in faults) or part < bar:
            return 1
        return 1 if bar == 100 and (self.missing or stale) else 0

    def _show(self, title, faults):
        kinds = collections.Counter(fault["kind"] for fault in faults)
        print(f"{title}: " + ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()))
        shown = collections.Counter()
        for fault in sorted(faults, key=lambda each: each.get("w", 0)):
            shown[fault["kind"]] += 1
            if shown[fault["kind"]] <= SHOWN:
                print(f"    {fault['phase']} {fault['dtype']} {fault['kind']}: {fault['detail'][:300]}\n        {fault.get('text', '')[:300]}")

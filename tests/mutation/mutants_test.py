"""Tests which defects mutants.py finds and which text it skips, and how mutate.py draws, recognises and reads them.

Usage: mutants_test.py
"""
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import mutants  # noqa: E402
import mutate  # noqa: E402

SOURCE = '''// a < b, 7 and "x == 1" are talk.
#include <vector>
#define LIMIT 4
static_assert(sizeof(int) == 4);
namespace {
std::map<int, Box<7>> table;
bool fits(uint64_t size, uint64_t room) {
  if (size == 0) return false;
  const std::string text = "a < 7 && b";
  if (size >= room || (size % 8 != 0 && text.empty()))
    return true;
  room -= size;
  note(size, room);
  if (const auto found = find(size); found != end) return true;
  return size + 1 < std::min(room, 0x10ul);
}
}  // namespace
'''


def changes(operator, text=SOURCE):
    return [(mutant.old, mutant.new) for mutant in mutants.mutants_of("a.cpp", text) if mutant.operator == operator]


class Mutants(unittest.TestCase):
    def test_each_operator_finds_its_places_and_no_others(self):
        self.assertEqual(changes("boundary"), [(">=", ">"), ("<", "<=")])
        self.assertEqual(changes("equality"), [("==", "!="), ("!=", "=="), ("!=", "==")])
        self.assertEqual(changes("logic"), [("||", "&&"), ("&&", "||")])
        self.assertEqual(changes("arithmetic"), [("%", "/"), ("+", "-")])
        self.assertEqual(changes("assignment"), [("-=", "+=")])
        self.assertEqual(changes("one more"), [("7", "8"), ("0", "1"), ("8", "9"), ("0", "1"), ("1", "2")])
        self.assertEqual(changes("one less"), [("7", "6"), ("8", "7"), ("1", "0")])
        self.assertEqual(changes("extreme"), [("min", "max")])
        self.assertEqual(changes("answer"), [("false", "true"), ("true", "false"), ("true", "false")])
        self.assertEqual(changes("arguments"), [("(size, room)", "(room, size)")])
        self.assertEqual(changes("condition"), [
            ("(size == 0)", "(!(size == 0))"),
            ("(size >= room || (size % 8 != 0 && text.empty()))", "(!(size >= room || (size % 8 != 0 && text.empty())))")])
        self.assertEqual(changes("guard")[0], ("if (size == 0) return false;", ";"))
        self.assertEqual(len(changes("guard")), 3)
        self.assertEqual(changes("statement"), [("room -= size;", ";"), ("note(size, room);", ";")])

    def test_every_operator_has_an_example(self):
        self.assertEqual({mutant.operator for mutant in mutants.mutants_of("a.cpp", SOURCE)}, set(mutants.OPERATORS))

    def test_a_defect_changes_its_place_alone(self):
        for mutant in mutants.mutants_of("a.cpp", SOURCE):
            changed = mutant.apply(SOURCE)
            self.assertNotEqual(changed, SOURCE)
            self.assertEqual(changed[:mutant.at], SOURCE[:mutant.at])
            self.assertEqual(changed[mutant.at + len(mutant.new):], SOURCE[mutant.at + len(mutant.old):])

    def test_a_number_with_separators_is_no_quote_and_no_place(self):
        line = "const long nap = ticks < 4'000'000 ? ticks : 10'000;\n"
        self.assertEqual([(mutant.old, mutant.new) for mutant in mutants.mutants_of("a.cpp", line)], [("<", "<=")])
        self.assertEqual(mutants.blanked(line), line)

    def test_quotes_keep_their_text_where_a_condition_is_negated(self):
        self.assertEqual(changes("condition", 'void f() {\n  if (x == "a < b") g();\n}\n'),
                         [('(x == "a < b")', '(!(x == "a < b"))')])


class Drawing(unittest.TestCase):
    found = {"a.cpp": mutants.mutants_of("a.cpp", SOURCE), "b.cpp": mutants.mutants_of("b.cpp", SOURCE[:400])}

    def test_the_same_seed_draws_the_same(self):
        self.assertEqual(list(mutate.draw(self.found, 7)), list(mutate.draw(self.found, 7)))
        self.assertNotEqual(list(mutate.draw(self.found, 7)), list(mutate.draw(self.found, 8)))

    def test_all_are_drawn_once(self):
        drawn = list(mutate.draw(self.found, 1))
        self.assertEqual(len(drawn), len(set(drawn)))
        self.assertEqual(set(drawn), {mutant for sites in self.found.values() for mutant in sites})

    def test_several_patterns_take_turns_until_each_is_at_its_end(self):
        self.assertEqual(list(mutate.in_turns([iter("ab"), iter("xyz"), iter("")])), ["a", "x", "b", "y", "z"])

    def test_a_file_that_several_patterns_match_belongs_to_the_first(self):
        found = mutate.candidates(mutate.ROOT, ["loader/note/*", "loader/*"])
        self.assertIn("loader/note/segments.cpp", found["loader/note/*"])
        self.assertIn("loader/log/log.cpp", found["loader/*"])
        self.assertFalse(set(found["loader/note/*"]) & set(found["loader/*"]))

    def test_a_defect_is_known_by_its_line_wherever_that_moves(self):
        first = mutants.mutants_of("a.cpp", SOURCE)
        moved = "\n\n" + SOURCE
        again = mutants.mutants_of("a.cpp", moved)
        self.assertEqual([mutate.shown(mutant, SOURCE) for mutant in first], [mutate.shown(mutant, moved) for mutant in again])
        self.assertIn("a.cpp: if (size {{>= -> >}} room || (size % 8 != 0 && text.empty()))",
                      [mutate.shown(mutant, SOURCE) for mutant in first])

    def test_each_argued_defect_has_its_reason(self):
        for line, reason in mutate.read_argued().items():
            self.assertRegex(line, r"^[\w/.-]+: .*\{\{.* -> .*\}\}")
            self.assertGreater(len(reason.split()), 3, line)

    def test_what_is_argued_of_a_line_that_is_gone_is_named(self):
        there = "a.cpp: if (size {{>= -> >}} room || (size % 8 != 0 && text.empty()))"
        gone = "a.cpp: if (size {{>= -> >}} place)"
        self.assertEqual(mutate.stale([there, gone], self.found, {"a.cpp": SOURCE}), [gone])
        self.assertEqual(mutate.stale(["c.cpp: x {{< -> <=}} y"], self.found, {}), ["c.cpp: x {{< -> <=}} y"])

    def test_a_header_that_too_many_include_is_out_of_reach(self):
        texts = {f"{i}.cpp": '#include "wide.h"\n' for i in range(mutate.MOST_DEPENDENTS + 1)}
        texts["0.cpp"] += '#include "narrow.h"\n'
        texts.update({"wide.h": '#include "below.h"\n', "narrow.h": "", "below.h": "", "alone.h": ""})
        self.assertEqual(mutate.headers_in_reach(texts), {"narrow.h"})


class Ending(unittest.TestCase):
    def test_what_a_test_has_started_ends_with_it(self):
        started = subprocess.Popen(["sh", "-c", "sleep 100 & echo $!; wait"], start_new_session=True, stdout=subprocess.PIPE)
        child = int(started.stdout.readline())
        mutate.end_session(started.pid)
        self.assertEqual(started.wait(), -signal.SIGKILL)
        for _ in range(500):
            state = Path(f"/proc/{child}/stat")
            if not state.exists() or state.read_text().split()[2] == "Z":
                break
            time.sleep(0.01)
        else:
            self.fail("the child lives")
        started.stdout.close()


class Time(unittest.TestCase):
    def in_time(self, command, seconds):
        started = subprocess.Popen(["sh", "-c", command], start_new_session=True)
        try:
            return mutate.ends_in_time(started, seconds)
        finally:
            mutate.end_session(started.pid)
            started.wait()

    def test_a_test_that_waits_for_what_never_comes_is_out_of_time(self):
        self.assertFalse(self.in_time("sleep 100 & wait", 0.5))

    def test_a_test_that_computes_without_end_is_out_of_time(self):
        self.assertFalse(self.in_time("while :; do :; done", 2))

    def test_a_test_that_a_loaded_machine_slows_has_more_time(self):
        halted_half_the_time = """
import os, signal, time
child = os.fork()
while child == 0:
    if time.process_time() > 1.5: os._exit(0)
while os.waitpid(child, os.WNOHANG) == (0, 0):
    for order in signal.SIGSTOP, signal.SIGCONT:
        os.kill(child, order)
        time.sleep(0.05)
"""
        self.assertTrue(self.in_time(f"{sys.executable} -c '{halted_half_the_time}'", 2))


class BuiltText:
    """A copy whose only program is its source: a test passes if the source has no defect."""

    def __init__(self, folder):
        self.tree = self.build = Path(folder)
        self.durations, self.built = {}, None
        (self.tree / "loader").mkdir()
        (self.tree / "loader/a.cpp").write_text(SOURCE)
        (self.build / "tests.txt").write_text("unit_a tests/unit/loader a\nunit_b tests/unit/core b\n")

    def compile(self, targets):
        self.built = (self.tree / "loader/a.cpp").read_text()

    def usable(self, test):
        self.durations.setdefault(test.name, 1 if self.built == SOURCE else None)
        return self.durations[test.name] is not None

    def noticed_by(self, tests):
        return (tests[0].name, "fails") if tests and self.built != SOURCE else None


class Planting(unittest.TestCase):
    def test_no_test_is_left_out_for_the_defect_that_was_planted_before(self):
        with tempfile.TemporaryDirectory() as folder:
            campaign = mutate.Campaign(BuiltText(folder), {"loader": ["unit_a"]}, {})
            defects = mutants.mutants_of("loader/a.cpp", SOURCE)
            self.assertEqual(campaign.plant(defects[0]), ("killed", "unit_a"))
            campaign.table = {"loader": ["unit_b"]}
            campaign.tests["unit_a"] = campaign.tests["unit_a"]._replace(folder="tests/unit/core")
            self.assertEqual(campaign.plant(defects[1]), ("killed", "unit_b"))


class Copying(unittest.TestCase):
    def test_the_copy_becomes_the_checkout_again_and_the_checkout_stays(self):
        with tempfile.TemporaryDirectory() as folder:
            root, work = Path(folder) / "root", Path(folder) / "work"
            (root / "core").mkdir(parents=True)
            (root / "core/a.cpp").write_text(SOURCE)
            mutate.run(["git", "init", "-q"], root)
            copy = mutate.Copy(root, work, 1)
            copy.refresh()
            (copy.tree / "core/a.cpp").write_text("a defect left by a run that was ended")
            (copy.tree / "core/b.cpp").write_text("a file that is gone")
            (copy.tree / "build").mkdir()
            (copy.tree / "build/kept").write_text("")
            copy.refresh()
            self.assertEqual((copy.tree / "core/a.cpp").read_text(), SOURCE)
            self.assertEqual((root / "core/a.cpp").read_text(), SOURCE)
            self.assertFalse((copy.tree / "core/b.cpp").exists())
            self.assertTrue((copy.tree / "build/kept").exists())


if __name__ == "__main__":
    unittest.main()

"""The gate refuses each wrong mutation of a copy of ep_api.h by name, and accepts what a minor may do.

Usage: mutation_test.py SOURCE_ROOT [--all]

Mutations come from the header itself: a member inserted before each member, neighbours exchanged, members removed, types
and signatures changed, constants and rows renumbered. A fixed seed draws some; --all tries them all.
"""
import os
import pathlib
import random
import re
import sys
import tempfile
import unittest

import anchor
import frozen
import header
import trial

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import unittest_report

ROOT = os.path.abspath(sys.argv.pop(1))
ALL = "--all" in sys.argv and sys.argv.remove("--all") is None
DRAWN = 40
LATER = trial.SECOND + 1
OTHER_TYPE = {"uint64_t": "int64_t", "int64_t": "uint64_t", "uint32_t": "int32_t", "int32_t": "uint32_t", "double": "float",
              "ep_string": "ep_buffer", "ep_buffer": "ep_string", "uint16_t": "int16_t", "uint8_t": "int8_t", "char": "int8_t"}


class Mutation:
    """The gate must name `words`. abidiff compares types but not constants."""

    def __init__(self, kind, file, text, words, typed=True):
        self.kind, self.file, self.text, self.words, self.typed = kind, file, text, words, typed

    def __str__(self):
        return f"{self.kind} {' '.join(self.words)}"


def spliced(text, begin, end, replacement):
    return text[:begin] + replacement + text[end:]


def member_name(declaration):
    return header.declarator(header.tokens(declaration.rstrip(";")))[0] if "{" not in declaration else declaration[:-1].split()[-1]


def members_of(text, struct):
    return [(begin, end, text[begin:end], member_name(text[begin:end])) for begin, end in header.source_members(text, struct)]


def struct_mutations(text, struct):
    members = members_of(text, struct)
    for place, (begin, end, declaration, name) in enumerate(members):
        known = f"{struct}.{name}"
        yield Mutation("insert before", "ep_api.h", spliced(text, begin, begin, "uint64_t intruder;\n  "), [f"{struct}.intruder"])
        yield Mutation("remove", "ep_api.h", spliced(text, begin, end, ""), [known])
        if declaration.endswith(");"):
            changed = declaration[:-2].removesuffix("(void") + ", uint32_t intruder);"
            yield Mutation("change the signature of", "ep_api.h", spliced(text, begin, end, changed), [known])
        else:
            first = re.match(r"(?:const )?(\w+)(?= \w+(?:\[\w+\])?;)", declaration)
            if first and first.group(1) in OTHER_TYPE:
                changed = declaration.replace(first.group(1), OTHER_TYPE[first.group(1)], 1)
                yield Mutation("change the type of", "ep_api.h", spliced(text, begin, end, changed), [known])
        if place + 1 < len(members):
            begin2, end2, declaration2, name2 = members[place + 1]
            exchanged = text[:begin] + declaration2 + text[end:begin2] + declaration + text[end2:]
            yield Mutation("exchange", "ep_api.h", exchanged, [known, f"{struct}.{name2}"])


def append_mutations(text, struct):
    yield Mutation("append without a guard", "ep_api.h", header.append_member(text, struct, "  uint64_t intruder;\n"),
                   [f"{struct}.intruder"])


def constant_mutations(root):
    text = frozen.read(os.path.join(root, "ep_api/ep_api.h"))
    for match in re.finditer(r"^#define (EP_\w+) (?:UINT\d+_C\()?(0x[0-9a-f]+|\d+)\)?", text, re.MULTILINE):
        name, value = match.groups()
        if name in header.NOT_FACTS or name == "EP_ABI_TARGET_MINOR":
            continue
        changed = spliced(text, match.start(2), match.end(2), str(int(value, 0) + 1))
        yield Mutation("renumber", "ep_api.h", changed, [name], typed=False)
    for table in header.TABLES:
        text = frozen.read(os.path.join(root, "ep_api", table))
        for match in re.finditer(r"^(EP_\w+) *\((\w+), *(\d+)", text, re.MULTILINE):
            macro, name, value = match.groups()
            changed = spliced(text, match.start(3), match.end(3), str(int(value) + 500))
            yield Mutation("renumber", table, changed, [f"{macro}_{name}", f"{macro} {name}"], typed=False)


def type_mutations(root):
    text = frozen.read(os.path.join(root, "ep_api/ep_api.h"))
    projection = header.Projection(root, trial.FIRST)
    for struct in projection.structs.values():
        if struct.word == "struct":
            yield from struct_mutations(text, struct.name)
            yield from append_mutations(text, struct.name)


class Mutations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.frozen = trial.freeze(ROOT, folder.name)[trial.FIRST]

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = folder.name
        self.compiler = frozen.reference_compiler()

    def problems(self, mutation, abidiff):
        trial.plain(ROOT, self.work)
        frozen.write(os.path.join(self.work, "ep_api", mutation.file), mutation.text)
        return frozen.problems_of(self.work, trial.FIRST, self.frozen, [self.compiler], abidiff=abidiff)

    def refused(self, mutation):
        """The golden facts must refuse it in a sentence that begins with each name, and abidiff alone if types
        changed."""
        abidiff = mutation.typed and not anchor.why_not()
        problems = self.problems(mutation, abidiff)
        golden = [line.removeprefix(self.compiler.name + ": ") for line in problems if not line.startswith("abidiff: ")]
        named = [word for word in mutation.words if any(line.startswith(word + " ") for line in golden)]
        # Alignment may leave one of two exchanged neighbours in its place.
        self.assertTrue(named and (named == mutation.words or mutation.kind == "exchange"),
                        f"{mutation} is not named:\n" + "\n".join(golden))
        if abidiff:
            struct, _, name = named[0].partition(".")
            seen = [line for line in problems if line.startswith("abidiff: ") and name in line or
                    line.endswith(f"does not describe {struct}.")]
            self.assertTrue(seen, f"abidiff does not see: {mutation}:\n" + "\n".join(problems))

    def let_through(self, change):
        headers, _ = trial.read_sources(ROOT)
        change(headers)
        for name, text in headers.items():
            self.assertEqual(self.problems(Mutation("allowed", name, text, []), not anchor.why_not()), [])

    def one(self, kind, name):
        found = [one for one in type_mutations(ROOT) if one.kind == kind and name in one.words]
        self.assertTrue(found, name)
        return found[0]

    def test_an_inserted_member(self):
        text = frozen.read(os.path.join(ROOT, "ep_api/ep_api.h"))
        begin = next(begin for begin, _, _, name in members_of(text, "ep_device_ops") if name == "memory_map")
        self.refused(Mutation("insert before", "ep_api.h", spliced(text, begin, begin, "void (*intruder)(void);\n  "),
                              ["ep_device_ops.intruder", "ep_device_ops.memory_map", "ep_device_ops.primitive_pack"]))

    def test_two_members_exchanged(self):
        self.refused(self.one("exchange", "ep_device_ops.upload"))
        self.refused(self.one("exchange", "ep_launch.workspace"))

    def test_a_changed_signature(self):
        self.refused(self.one("change the signature of", "ep_device_ops.copy"))
        self.refused(self.one("change the signature of", "ep_host.log"))

    def test_a_slot_appended_without_a_guard(self):
        self.refused(self.one("append without a guard", "ep_device_ops.intruder"))

    def test_a_renumbered_constant(self):
        for name in ("EP_STATUS_BUSY", "EP_PRIMITIVE_matmul", "EP_UNARY_relu", "EP_DTYPE_f32"):
            self.refused(next(one for one in constant_mutations(ROOT) if name in one.words))

    def test_two_constants_exchanged(self):
        text = frozen.read(os.path.join(ROOT, "ep_api/ep_api.h"))
        text = text.replace("EP_STATUS_TIMEOUT 8", "EP_STATUS_TIMEOUT 9").replace("EP_STATUS_CANCELLED 9", "EP_STATUS_CANCELLED 8")
        self.refused(Mutation("exchange", "ep_api.h", text, ["EP_STATUS_TIMEOUT", "EP_STATUS_CANCELLED"], typed=False))

    def test_a_changed_alias_rule(self):
        text = frozen.read(os.path.join(ROOT, "ep_api/primitives.def"))
        text, count = re.subn(r"(EP_PRIMITIVE\(matmul, .*)NONE", r"\1SRC", text)
        self.assertEqual(count, 1)
        self.refused(Mutation("change", "primitives.def", text, ["EP_PRIMITIVE matmul"], typed=False))

    def test_an_added_slot_behind_its_guard_passes(self):
        def change(headers):
            for struct, member in trial.MEMBERS.items():
                guarded = f"#if EP_ABI_TARGET_MINOR >= {LATER}\n{member}\n#endif\n"
                headers["ep_api.h"] = header.append_member(headers["ep_api.h"], struct, guarded)

        self.let_through(change)

    def test_an_added_constant_and_row_behind_their_guard_pass(self):
        def change(headers):
            guarded = f"#if EP_ABI_TARGET_MINOR >= {LATER}\n#define EP_STATUS_NEW 13\n#endif\n"
            headers["ep_api.h"] = headers["ep_api.h"].replace("typedef int32_t ep_status;", guarded + "typedef int32_t ep_status;")
            headers["primitives.def"] += f"\n#if EP_ABI_TARGET_MINOR >= {LATER}\n{trial.ROW}\n#endif\n"

        self.let_through(change)

    def test_other_words_in_a_comment_and_another_parameter_name_pass(self):
        def change(headers):
            text = headers["ep_api.h"].replace("// Rules that hold", "// Some rules that hold")
            headers["ep_api.h"] = text.replace("ep_device* device, uint32_t pool, uint64_t size", "ep_device* dev, uint32_t p, uint64_t n")

        self.let_through(change)

    def test_drawn_mutations(self):
        mutations = [*type_mutations(ROOT), *constant_mutations(ROOT)]
        self.assertGreater(len(mutations), 500)
        drawn = mutations if ALL else random.Random(20261121).sample(mutations, DRAWN)
        for mutation in drawn:
            with self.subTest(str(mutation)):
                self.refused(mutation)
        print(f"{len(drawn)} of {len(mutations)} mutations tried")


if __name__ == "__main__":
    unittest_report.main()

"""The generator refuses op lists without a meaning, and says why.

usage: generator_test.py GENERATE.py"""

import ast
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

PATH = pathlib.Path(sys.argv.pop(1)).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(PATH.parent))

from generator.emit.cpp import cpp_parameters, cpp_result
from generator.emit.doc import docstring, literal
from generator.emit.dynamic_call import dynamic_ops
from generator.emit.gradients import needs
from generator.model.doc import parameters_of
from generator.model.errors import OpListError
from generator.model.op_list import load

ROW = "  - {{op: f, composite: true, doc: \"d.\", {}}}\n"


LIBRARY = "library: mine\nops:\n  - {{op: f, doc: \"d.\", {}}}\n"


def refusal(text):
    """The complaint of the generator about an op list, or None."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "ops.yaml"
        path.write_text(text)
        try:
            load(path, PATH.parents[2] / "ep_api", PATH.with_name("ops.yaml"))
        except OpListError as error:
            return str(error)
    return None


def loaded(rows):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "ops.yaml"
        path.write_text(f"attributes: {{}}\nops:\n{rows}")
        return load(path, PATH.parents[2] / "ep_api")[0]


class Generator(unittest.TestCase):
    def refused(self, rows, message, attributes="{}"):
        self.assertEqual(refusal(f"attributes: {attributes}\nops:\n{rows}"), message)

    def accepted(self, rows):
        self.assertIsNone(refusal(f"attributes: {{}}\nops:\n{rows}"))

    def signatures(self, *texts):
        quoted = ", ".join(f'"{text}"' for text in texts)
        return ROW.format(f"signatures: [{quoted}]")

    def test_refuses_an_overload_that_no_call_reaches(self):
        self.refused(self.signatures("(Tensor x, Scalar y)", "(Tensor x, int y)"),
                     "f: no call can reach 'f(Tensor x, int y)', because 'f(Tensor x, Scalar y)' stands before it and "
                     "accepts everything it accepts.")
        self.refused(self.signatures("(Tensor x, int y = 1)", "(Tensor x)"),
                     "f: no call can reach 'f(Tensor x)', because 'f(Tensor x, int y = 1)' stands before it and accepts "
                     "everything it accepts.")
        self.refused(self.signatures("(Tensor x, *, int? y = None)", "(Tensor x, *, int y = 3)"),
                     "f: no call can reach 'f(Tensor x, *, int y = 3)', because 'f(Tensor x, *, int? y = None)' stands "
                     "before it and accepts everything it accepts.")

    def test_accepts_overloads_that_some_call_reaches(self):
        self.accepted(self.signatures("(Tensor x, int y)", "(Tensor x, Scalar y)"))
        self.accepted(self.signatures("(Tensor x)", "(Tensor x, int y = 1)"))
        self.accepted(self.signatures("(Tensor x, int y)", "(Tensor x, Scalar y, int z)"))
        self.accepted(self.signatures("(Tensor x, Scalar y)", "(Tensor x, int[] y)"))
        self.accepted(self.signatures("(Tensor x, Scalar y)", "(Tensor x, int z)"))

    def test_refuses_overloads_that_are_one_function_in_cpp(self):
        self.refused(self.signatures("(Tensor x, int y)", "(Tensor x, int z)"),
                     "f: 'f(Tensor x, int y)' and 'f(Tensor x, int z)' are one and the same function in C++.")

    def test_refuses_unknown_scalar_ops_and_kinds(self):
        self.refused('  - {op: f, unary: reluu, doc: "d."}\n', "f: ep_api/scalar_ops.def has no unary op 'reluu'.")
        self.refused('  - {op: f, kernel: sorting, signature: "(Tensor x)", doc: "d."}\n',
                     "f: ep_api/primitives.def has no kind 'sorting'.")
        self.refused('  - {op: f, kernel: reduce, scalar_op: sun, signature: "(Tensor x)", doc: "d."}\n',
                     "f: ep_api/scalar_ops.def has no reduce op 'sun'.")

    def test_refuses_operators_that_cpp_could_not_call(self):
        one, two, three = '"(Tensor x)"', '"(Tensor x, Tensor y, *, int z = 1)"', '"(Tensor x, Tensor y, Tensor z)"'
        self.accepted(ROW.format(f'operator: "-", signature: {one}') +
                      ROW.replace("f,", "g,").format(f'operator: "-", signature: {two}'))
        self.refused(ROW.format(f'operator: "@", signature: {two}'),
                     "f: '@' is not an operator; the operators are +, -, *, /, %, ==, !=, <, <=, >, >=, &, |, ^, ~, !.")
        self.refused(ROW.format(f'operator: "+", signature: {one}'),
                     "f: operator + cannot be 'f(Tensor x)', which takes 1 operands and gives Tensor.")
        self.refused(ROW.format(f'operator: "*", signature: {three}'),
                     "f: operator * cannot be 'f(Tensor x, Tensor y, Tensor z)', which takes 3 operands and gives Tensor.")
        self.refused(ROW.format('operator: "*", signature: "(Tensor x, Tensor y) -> Tensor[]"'),
                     "f: operator * cannot be 'f(Tensor x, Tensor y) -> Tensor[]', which takes 2 operands and gives Tensor[].")
        self.refused(ROW.format(f'operator: "+", signature: {two}') +
                     ROW.replace("f,", "g,").format(f'operator: "+", signature: {two}'),
                     "operator + of (const Tensor&, const Tensor&) is made by two rows: f and g.")

    def test_refuses_a_method_without_a_tensor_to_call_it_on(self):
        self.accepted(ROW.format('method: true, signature: "(Tensor x, int y)"'))
        self.accepted(ROW.format('method: true, signature: "(Tensor! x, int y)"'))
        self.refused(ROW.format('method: true, signature: "(int y, Tensor x)"'),
                     "f: it cannot be a method, since its first parameter is not a Tensor.")

    def test_only_a_composite_that_gives_tensors_one_by_one_is_wide(self):
        row = '  - {{op: f, {}, wide: true, doc: "d."}}\n'
        self.accepted(row.format('composite: true, signature: "(Tensor x)"'))
        self.accepted(row.format('composite: true, signature: "(Tensor x, Tensor? y = None) -> (Tensor, Tensor)"'))
        message = "f: only a composite of Tenon's own that gives tensors one by one may be `wide`."
        self.refused(row.format('composite: true, signature: "(Tensor x) -> Tensor[]"'), message)
        self.refused(row.format("unary: exp"), message)

    def test_another_name_has_the_signatures_of_its_row(self):
        one = ROW.format('signature: "(Tensor x, int y = 1)"')
        rows = loaded(one + '  - {op: g, same_as: f, doc: "d."}\n')
        self.assertEqual([s.text for s in rows[1].signatures], ["g(Tensor x, int y = 1)"])
        self.refused(one + '  - {op: g, same_as: h, doc: "d."}\n', "g: `same_as` is 'h', which is not a row, or has a `same_as` itself.")
        self.refused(ROW.format('signature: "(Tensor x) -> Tensor[]"') + '  - {op: g, same_as: f, doc: "d."}\n',
                     "g: 'f' gives a list of tensors, and has no other names.")

    def test_refuses_a_name_made_twice(self):
        row = ROW.format('signature: "(Tensor x)"')
        self.refused(row + row, "the name 'f' is made by two rows: f and f.")
        self.refused('  - {op: relu, unary: relu, doc: "d."}\n'
                     '  - {op: relu_, composite: true, signature: "(Tensor! x)", doc: "d."}\n',
                     "the name 'relu_' is made by two rows: relu and relu_.")

    def test_refuses_defaults_of_another_type(self):
        for type_name, default in (("int", "0.5"), ("bool", "1"), ("Scalar", "None"), ("string", "flat"), ("dtype", "f33"),
                                   ("int[]", "1"), ("int[1]", "[a]"), ("float", "true"), ("device", '"cpu"')):
            quoted = default.replace('"', '\\"')
            self.refused(ROW.format(f'signature: "(Tensor x, {type_name} y = {quoted})"'),
                         f"f: the default of 'y', {default}, does not have type {type_name}.")

    def test_refuses_malformed_signatures(self):
        self.refused(ROW.format('signature: "(Tensor x, int y = 1, int z)"'),
                     "f: 'z' has no default but follows 'y', which has one.")
        self.refused(ROW.format('signature: "(Tensor x, int x)"'), "f: two parameters are called 'x'.")
        self.refused(ROW.format('signature: "Tensor x"'),
                     "f: 'Tensor x' is not a signature; write `(type name, ...)`, then maybe `-> (Tensor, Tensor)` or "
                     "`-> Tensor[]`.")
        self.assertIn("f: 'Matrix x' is not a parameter", refusal("attributes: {}\nops:\n" + ROW.format('signature: "(Matrix x)"')))

    def test_refuses_malformed_rows(self):
        self.refused('  - {op: f, unary: relu, doc: "d.", signatur: "(Tensor x)"}\n', "f: unknown key 'signatur'.")
        self.refused('  - {op: f, doc: "d."}\n',
                     "f: exactly one of unary, binary, ternary, kernel, view, builtin, composite must be given, not 0.")
        self.refused("  - {op: f, unary: relu}\n", "f: no doc.")
        self.refused('  - {op: f, composite: true, doc: "d."}\n', "f: no signature.")
        self.refused('  - {op: f, kernel: fill, signature: "(Tensor x)", attributes: Some, doc: "d."}\n',
                     "f: there is no attribute struct 'Some'.")

    def test_refuses_documentation_of_what_is_not_there(self):
        def row(documentation):
            return ROW.format(f'signature: "(Tensor x, int y)", {documentation}')
        self.accepted(row('args: {x: "The x."}, returns: "One.", example: ">>> tenon.f(1, 2)\\n3"'))
        self.refused(row('args: {z: "The z."}'), "f: `args` describes 'z', which is not a parameter.")
        self.refused(row('example: "tenon.f(1, 2)"'), "f: `example` must begin with '>>> '.")

    def test_another_name_is_documented_as_its_row(self):
        rows = loaded(ROW.format('signature: "(Tensor x, int y = 1)", args: {x: "The x."}, example: ">>> tenon.f(1)\\n2"') +
                      "  - {op: g, same_as: f}\n")
        self.assertEqual(docstring(rows[1]), "Another name of `f`.\n\nd.\n\nArgs:\n    x (Tensor): The x.\n    y (int, default 1)\n\nExample:\n    >>> tenon.g(1)\n    2")

    def test_an_argument_is_described_by_its_row_or_by_its_type_or_by_its_name(self):
        shared = '{x: "By name.", "int y": "By type."}'
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "ops.yaml"
            path.write_text(f"arguments: {shared}\nops:\n" + ROW.format('signature: "(Tensor x, int y, float? z = None)", args: {z: "By row."}'))
            [op] = load(path, PATH.parents[2] / "ep_api")[0]
        self.assertEqual(op.doc.arguments, {"x": "By name.", "y": "By type.", "z": "By row."})

    def test_refuses_composites_that_no_record_carries(self):
        self.refused(ROW.format('signature: "(Tensor x)", attributes: Some'),
                     "f: a composite has no `attributes`; its record is made from its signatures.")
        self.refused(ROW.format('signature: "(Tensor x, string? y = None)"'),
                     "f: 'y' is a string that may be None, which a record cannot carry.")
        self.refused(self.signatures("(Tensor x, dtype y)", "(Tensor x, int y)"),
                     "f: 'y' has two types, which one record cannot carry.")
        self.refused(ROW.format('signature: "(Tensor x, int y)"'), "attributes F: the record of 'f' makes a struct of that name.",
                     "{F: {a: i64}}")

    def test_records_carry_every_parameter(self):
        ops = loaded(self.signatures("(Tensor x, int n, float? eps = None)", "(Tensor x, int[] n, *, dtype d = f32)"))
        self.assertEqual([f"{cpp} {name}" for cpp, name, _ in ops[0].record.fields],
                         ["int64_t overload", "DimsAttribute n", "int64_t eps_given", "DType d", "int32_t d_reserved"])

    def test_records_say_how_long_several_lists_are(self):
        two, one = loaded(ROW.format('signature: "(Tensor[] x, Tensor[] y)"') +
                          '  - {op: g, composite: true, signature: "(Tensor[] x)", doc: "d."}\n')
        self.assertEqual([f"{cpp} {name}" for cpp, name, _ in two.record.fields], ["int64_t x_count", "int64_t y_count"])
        self.assertEqual(one.record.fields, [])

    def test_refuses_what_is_said_of_bool_in_the_wrong_place(self):
        self.refused('  - {op: f, unary: neg, on_bool: g, doc: "d."}\n', "f: only a binary op may have `on_bool`.")
        self.refused('  - {op: f, binary: add, on_bool: g, doc: "d."}\n',
                     "f: `on_bool` is 'g', which is not a binary op that gives bool.")
        self.refused('  - {op: f, binary: add, on_bool: g, doc: "d."}\n  - {op: g, binary: mul, doc: "d."}\n',
                     "f: `on_bool` is 'g', which is not a binary op that gives bool.")
        self.accepted('  - {op: f, binary: add, on_bool: g, gradient: "none: test", doc: "d."}\n'
                      '  - {op: g, binary: logical_or, gradient: "none: test", doc: "d."}\n')
        self.accepted('  - {op: f, unary: neg, refuses_bool: [no], gradient: "none: test", doc: "d."}\n')
        self.refused('  - {op: f, unary: neg, refuses_bool: [no, none], doc: "d."}\n',
                     "f: `refuses_bool` has 2 texts; a unary op may have 1, a binary one without `on_bool` 2.")

    def with_gradient(self, gradient):
        return f'  - {{op: f, binary: mul, gradient: {gradient}, doc: "d."}}\n'

    def test_refuses_a_row_that_says_nothing_of_its_gradient(self):
        self.refused('  - {op: f, binary: mul, doc: "d."}\n',
                     "f: no `gradient`; write expressions, a function with what it saves, or none and why.")
        self.refused(self.with_gradient('{input: "grad * other"}'),
                     "f: `gradient` does not name 'other'; write an expression, or none and why.")
        self.refused(self.with_gradient('"none"'),
                     "f: `gradient` is 'none'; write expressions, a function with what it saves, or none and why.")
        self.refused(ROW.format('signature: "(Tensor x)", gradient: "none: because"'),
                     "f: a composite without a gradient of its own has those of the ops that it is written in; leave `gradient` out.")

    def test_refuses_a_gradient_of_unknown_names(self):
        self.refused(self.with_gradient('{input: "grad * othr", other: "grad"}'),
                     "f: its gradient names 'othr', which is not an op, an argument or a float parameter.")
        self.refused(self.with_gradient('{input: "grad", other: "grad", third: "grad"}'),
                     "f: `gradient` names 'third', which is not a tensor argument.")
        self.refused(self.with_gradient('"product(input, third)"'),
                     "f: its gradient saves 'third', which is neither a tensor argument nor a result.")

    def test_a_composite_may_have_a_gradient_of_its_own(self):
        row = loaded(ROW.format('signature: "(Tensor x, Tensor y, string how)", gradient: "product(y, result)"'))[0]
        self.assertEqual((row.gradient.function, needs(row), row.gradient.attributes), ("product", "{0x2, 0x1}", True))

    def test_the_gradient_of_a_functor_may_name_its_numbers(self):
        row = '  - {op: %s, unary: threshold, functor: true, signature: "(Tensor x, float f, float g)", gradient: {x: "grad * f + g"}, doc: "d."}\n'
        for name in ("e", "f"):  # the second one has the name of a parameter
            self.assertEqual(loaded(row % name)[0].gradient.expressions[0].scalars, [(0, "f"), (1, "g")])

    def test_a_gradient_saves_only_what_it_names(self):
        row = loaded(self.with_gradient('{input: "grad * other", other: "grad * result"}'))[0]
        self.assertEqual(needs(row), "{0x2, 0x0}, {0x0, 0x1}")
        row = loaded(self.with_gradient('"product(input, result)"'))[0]
        self.assertEqual(needs(row), "{0x1, 0x1}")

    def test_emits_in_place_functions_for_every_kind_of_handle(self):
        ops = loaded('  - {op: f, unary: relu, gradient: "none: test", doc: "d."}\n')
        first = ops[0].signatures[0]
        self.assertEqual(cpp_result(first, False), "Tensor")
        self.assertEqual(cpp_parameters(first, True), "const Tensor& input")
        self.assertEqual([op.name for op in dynamic_ops(ops)], ["f", "f_"])

    def test_emits_in_place_functions_of_rows_that_take_no_out(self):
        row = '  - {op: f, composite: true, variants: [inplace], signature: "(Tensor x, int y)", doc: "d."}\n'
        ops = loaded(row + '  - {op: g, same_as: f, doc: "d."}\n')
        self.assertEqual([op.name for op in dynamic_ops(ops)], ["f", "f_", "g", "g_"])
        self.assertEqual([op.takes_out for op in ops], [False, False])
        self.refused(row.replace("[inplace]", "[out]"), "f: only unary, binary, ternary have the variant 'out'.")
        self.refused(row.replace('int y)"', 'int y) -> (Tensor, Tensor)"'), "f: the variant 'inplace' is for one tensor, and it gives another result.")

    def test_emits_defaults_as_cpp(self):
        ops = loaded(ROW.format('signature: "(Tensor x, int[1] y = 3, *, float? z = None, dtype t = bool, string s = \\"a\\")"'))
        self.assertEqual(cpp_parameters(ops[0].signatures[0], True),
                         "const Tensor& x, IntList y = IntList(3), std::optional<double> z = std::nullopt, "
                         'DType t = DType::boolean, std::string_view s = "a"')

    def test_refuses_padding_in_attributes(self):
        row = ROW.format('signature: "(Tensor x)"')
        self.refused(row, "attributes Some: there is padding before 'b'; put an i32 before it.", "{Some: {a: i32, b: i64}}")
        self.refused(row, "attributes Some: there is padding at the end; add an i32 field.", "{Some: {a: i64, b: i32}}")

    def test_a_library_is_refused_what_is_for_tenons_own_list(self):
        host = 'host: true, signature: "(Tensor x)", gradient: "none: test"'
        for row, part in (
            ("unary: relu", "f: `unary` is for Tenon's own ops; a row of a library may have args, "),
            (host + ", method: true", "f: `method` is for Tenon's own ops;"),
            (host + ", decompose: true", "f: `decompose` is for a kernel; a function on the host serves every device."),
            ('composite: true, state: true, signature: "(Tensor x)"', "f: `state` is for functions on the host."),
            ('kernel: hammer, signature: "(Tensor x)", gradient: "none: test"', "f: ep_api/primitives.def has no kind 'hammer'."),
            ('host: true, signature: "(Tensor x)"', "f: no `gradient`; write expressions,"),
            ('host: true, signature: "(int x)", gradient: "none: test"', "f: a host of a library has a tensor among its parameters."),
            ('host: true, signature: "(Tensor? x, Tensor y)", gradient: "none: test"', "f: the tensors that may be None must be the last ones."),
            ('host: true, signature: "(Tensor x) -> Tensor[]", gradient: "none: test"', "f: a host of a library gives new tensors,"),
            ('host: true, signatures: ["(Tensor x)", "(Tensor x, int y)"], gradient: "none: test"',
             "f: a host of a library has one signature, not 2; write a composite that calls it."),
            (host + ", dtypes: [f31]", "f: `dtypes` has 'f31', which is not a dtype; the dtypes are "),
            ('host: true, signature: "(Tensor x)", gradient: {x: "grad * no_such_op(x)"}',
             "f: its gradient names 'no_such_op', which is not an op, an argument or a float parameter."),
            ('composite: true, signature: "(Tensor x)", gradient: "none: why"', "f: a composite without a gradient of its own"),
        ):
            with self.subTest(row=row):
                found = refusal(LIBRARY.format(row))
                self.assertTrue(found is not None and found.startswith(part), found)
        self.assertIsNone(refusal(LIBRARY.format('host: true, signature: "(Tensor x, float a)", gradient: {x: "grad * relu(x) * a"}')))
        self.refused('  - {op: f, host: true, doc: "d."}\n', "f: `host` is for libraries of ops; this list names none.")

    def test_a_library_has_a_name_of_its_own(self):
        for name in ("tenon", "std", "Mine", "my-ops", "3"):
            self.assertIn(f"`library` is '{name}'", refusal(LIBRARY.format("composite: true").replace("mine", name)))
        self.assertEqual(refusal("library: mine\nops: []\n"), "the list has no `ops`.")
        self.assertEqual(refusal(LIBRARY.format("composite: true") + "attributes: {}\n"),
                         "a library has no `attributes`; its structs are made from the signatures.")

    def test_names_of_a_library_stand_before_those_of_its_ops(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "ops.yaml"
            path.write_text(LIBRARY.format('composite: true, signature: "(Tensor x)"'))
            [op] = load(path, PATH.parents[2] / "ep_api", PATH.with_name("ops.yaml"))[0]
        self.assertEqual((op.name, op.full_name, op.signatures[0].text), ("f", "mine::f", "mine::f(Tensor x)"))


class Page(unittest.TestCase):
    """ops.md, made of Tenon's own list, against that list as text and against ops.h, which another template makes."""

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-B", PATH, PATH.with_name("ops.yaml"), "--out", folder], check=True)
            cls.page, cls.header = ((pathlib.Path(folder) / name).read_text() for name in ("ops.md", "ops.h"))
        cls.rows = yaml.safe_load(PATH.with_name("ops.yaml").read_text())["ops"]
        parts = re.split(r"^## (\S+)\n", cls.page, flags=re.MULTILINE)[1:]
        cls.sections = dict(zip(parts[::2], parts[1::2]))

    def cells(self, name):
        return re.findall(r"^\| (.*) \| `(.*)` \|$", self.sections[name], re.MULTILINE)

    def test_has_every_row_once_with_its_sentence(self):
        self.assertEqual(list(self.sections), [row["op"] for row in self.rows])
        for row in self.rows:
            self.assertIn(" ".join(row.get("doc", "Another name of").split()), " ".join(self.sections[row["op"]].split()))

    def test_declares_in_cpp_what_the_header_declares(self):
        shown = sorted(cell + ";" for name in self.sections for _, cell in self.cells(name))
        self.assertEqual(shown, sorted(re.findall(r"^TENON_API (.*;)$", self.header, re.MULTILINE)))

    def test_calls_in_python_are_those_of_the_rows(self):
        checked = 0
        for row in self.rows:
            calls = [cell.strip("`") for cell, _ in self.cells(row["op"]) if cell.startswith("`")]
            trees = [ast.parse(re.sub(r"\bfrom\b", "from_", f"def {call}: pass")).body[0] for call in calls]
            self.assertLessEqual({tree.name for tree in trees}, {row["op"], row["op"] + "_"})
            texts = row.get("signatures") or ([row["signature"]] if "signature" in row else [])
            plain = [tree.args for tree in trees if tree.name == row["op"]]
            for text, args in zip(texts, plain):
                before, _, after = text[1:text.index(")")].partition("*")
                # A parameter's name precedes a default, a comma or the end.
                names = [re.findall(r"(\w+)(?= *=|,|$)", re.sub(r"= *(\[[^]]*\]|\"[^\"]*\"|[^,]+)", "=", part.strip().strip(","))) for part in (before, after)]
                own = [name for name in ("out", "inplace") if name in [a.arg for a in args.kwonlyargs]]
                self.assertEqual([a.arg.replace("from_", "from") for a in args.args], names[0], text)
                self.assertEqual([a.arg for a in args.kwonlyargs], names[1] + own, text)
                checked += 1
            self.assertEqual(any("inplace" in [a.arg for a in args.kwonlyargs] for args in plain), any(tree.name == row["op"] + "_" for tree in trees))
        self.assertGreater(checked, 400)


class Docs(unittest.TestCase):
    """Every row of Tenon's own list is documented, and so are the texts that are made of it."""

    @classmethod
    def setUpClass(cls):
        cls.ops = load(PATH.with_name("ops.yaml"), PATH.parents[2] / "ep_api")[0]

    def test_every_row_describes_each_of_its_arguments(self):
        missing = {op.name: sorted(set(parameters_of(op.signatures)) - set(op.doc.arguments)) for op in self.ops}
        self.assertEqual({name: arguments for name, arguments in missing.items() if arguments}, {})

    def test_every_row_has_an_example_that_calls_it(self):
        self.assertEqual([op.name for op in self.ops if f">>> tenon.{op.name}(" not in op.doc.example], [])

    def test_a_row_with_several_results_says_what_they_are(self):
        self.assertEqual([op.name for op in self.ops if any(s.result != "Tensor" for s in op.signatures) and not op.doc.returns], [])

    def test_the_first_paragraph_is_a_sentence(self):
        self.assertEqual([op.name for op in self.ops if not re.match(r"[A-Z0-9`(].*\.$", op.doc.summary) or op.doc.summary.startswith(("As ", "Whether "))], [])

    def test_every_shared_description_is_used(self):
        data = yaml.safe_load(PATH.with_name("ops.yaml").read_text())
        used = {text for op in self.ops for name, text in op.doc.arguments.items() if name not in op.doc.own}
        self.assertEqual([name for name, text in data["arguments"].items() if " ".join(text.split()) not in used], [])

    def test_all_docstrings_are_less_than_400_kb(self):
        self.assertLess(sum(len(docstring(op)) for op in self.ops), 400_000)

    def test_a_docstring_becomes_a_literal_of_cpp(self):
        self.assertEqual(literal('a "b"\n\\c'), '"a \\"b\\"\\n\\\\c"')


if __name__ == "__main__":
    unittest_report.main()

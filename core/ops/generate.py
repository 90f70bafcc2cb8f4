"""Makes the C++ API, op table, dynamic signatures and reference page from an op list (ops.yaml describes its format).

usage: generate.py OPS.yaml --out DIR [--methods DIR] [--namespace tenon] [--include core/ops] [--ep-api DIR]

Refuses, with the row and the reason, whatever could not mean anything: an unknown scalar op or kind, a name used twice,
a default of the wrong type, an overload that no call can reach, an attribute struct with padding. A list that names a
`library` holds ops from outside: their files are other ones, and their namespace is the library's.
"""

import argparse
import pathlib
import sys

sys.dont_write_bytecode = True  # the modules are in the source tree

from generator.emit.render import render
from generator.model.attributes import flat_fields
from generator.model.errors import OpListError
from generator.model.op_list import load

HERE = pathlib.Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ops", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--methods", type=pathlib.Path, help="the folder of methods.inc, the methods of Tensor")
    parser.add_argument("--namespace", default="tenon")
    parser.add_argument("--include", default="core/ops", help="how the generated files include each other")
    parser.add_argument("--version", default="", help="of Tenon, for which a library is made")
    parser.add_argument("--ep-api", type=pathlib.Path, default=HERE.parent.parent / "ep_api")
    args = parser.parse_args()
    try:
        ops, structs = load(args.ops, args.ep_api, HERE / "ops.yaml")
    except OpListError as error:
        sys.exit(f"{args.ops}: {error}")
    fields = flat_fields(structs, (args.ep_api / "ep_api.h").read_text())
    library = ops[0].library if ops else ""
    render(ops, structs, args.out, args.methods, fields_of=fields, namespace=library or args.namespace,
           include=library or args.include, source=args.ops.name, library=library, version=args.version)


if __name__ == "__main__":
    main()

"""Fills the templates and writes the files that changed."""

import pathlib

import jinja2

from generator.emit import composites, cpp, doc, gradients, python
from generator.emit.cpp import call_arguments, cpp_parameters, cpp_result, inplace_signatures, wrap_comment
from generator.emit.dynamic_call import dynamic_ops
from generator.model.arg_types import TYPES
from generator.model.library import RULES
from generator.model.op import operands, record_shape
from generator.model.sbp import has_dims

CORE = pathlib.Path(__file__).resolve().parents[3]
TEMPLATES = [CORE / "ops" / "templates", CORE / "autograd" / "templates", CORE / "global" / "templates"]
LIBRARY_TEMPLATES = CORE / "ops" / "templates" / "library"
OWN_ALONE = ("methods.inc.j2", "operators.h.j2", "ops.cpp.j2", "sbp_rows.cpp.j2", "sbp_rules.h.j2")  # libraries leave these out


METHODS = "methods.inc.j2"  # part of a class in core/tensor, so it is written where that room finds it


def render(ops, structs, out, methods, **names):
    """Fills every template into the folder `out`, and the methods of Tensor into the folder `methods`, if one is given.

    `names` has what else templates use: fields_of, namespace, include, source, library, version."""
    folders = TEMPLATES + ([LIBRARY_TEMPLATES] if names["library"] else [])
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(folders), trim_blocks=True,
                                     lstrip_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined)
    environment.globals.update(method_signatures=cpp.method_signatures, method_parameters=cpp.method_parameters,
                               method_arguments=cpp.method_arguments)
    environment.globals.update(composites=composites, doc=doc, gradients=gradients, python=python, argument_names=composites.argument_names, cpp_result=cpp_result, cpp_parameters=cpp_parameters, call_arguments=call_arguments,
                               inplace_signatures=inplace_signatures, operands=operands, record_shape=record_shape, wrap_comment=wrap_comment, types=TYPES, given_rules=RULES,
                               has_dims=has_dims)
    context = {"ops": ops, "structs": structs, "dynamic": dynamic_ops(ops, names["namespace"]), **names}
    for template in sorted(path for folder in folders for path in folder.glob("*.j2")):
        if (template.name == METHODS and methods is None) or (names["library"] and template.name in OWN_ALONE):
            continue
        text = environment.get_template(template.name).render(context, methods=methods is not None)
        folder = methods if template.name == METHODS else out
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / template.name.removesuffix(".j2")
        if not target.exists() or target.read_text() != text:
            target.write_text(text)

"""Fills the templates and writes what has changed."""

import pathlib

import jinja2

from generator.emit import composites, gradients
from generator.emit.cpp import call_arguments, cpp_parameters, cpp_result, inplace_signatures, wrap_comment
from generator.emit.dynamic_call import dynamic_ops
from generator.model.arg_types import TYPES
from generator.model.op import operands

CORE = pathlib.Path(__file__).resolve().parents[3]
TEMPLATES = [CORE / "ops" / "templates", CORE / "autograd" / "templates"]


def render(ops, structs, out, **names):
    """Fills every template into the folder `out`; `names` has the names that templates use: namespace, include, source."""
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(TEMPLATES), trim_blocks=True,
                                     lstrip_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined)
    environment.globals.update(composites=composites, gradients=gradients, argument_names=composites.argument_names, cpp_result=cpp_result, cpp_parameters=cpp_parameters, call_arguments=call_arguments,
                               inplace_signatures=inplace_signatures, operands=operands, wrap_comment=wrap_comment, types=TYPES)
    context = {"ops": ops, "structs": structs, "dynamic": dynamic_ops(ops), **names}
    out.mkdir(parents=True, exist_ok=True)
    for template in sorted(path for folder in TEMPLATES for path in folder.glob("*.j2")):
        text = environment.get_template(template.name).render(context)
        target = out / template.name.removesuffix(".j2")
        if not target.exists() or target.read_text() != text:
            target.write_text(text)

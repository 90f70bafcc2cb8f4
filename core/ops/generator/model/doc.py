"""The documentation of an op: what its row says, and the texts that many rows share."""

from dataclasses import dataclass, field

from generator.model.errors import OpListError


@dataclass
class Doc:
    paragraphs: list  # the first one is the sentence that says what the op computes
    arguments: dict = field(default_factory=dict)  # name: text, in the order of the signatures; shared texts too
    own: set = field(default_factory=set)  # names of the arguments that the row itself describes
    returns: str = ""  # the row's description of the result
    usual: str = ""  # the usual description for the form of the op
    errors: str = ""  # conditions without "if" and without a period, a semicolon between them
    example: str = ""  # lines of a Python session

    @property
    def summary(self):
        return self.paragraphs[0]

    @property
    def result(self):
        return self.returns or self.usual

    @property
    def conditions(self):
        """When a call fails, as one clause after "if"."""
        return self.errors.replace("; ", ", or if ")


def paragraphs_of(text):
    """The paragraphs of a text of YAML, where a line break ends a paragraph."""
    return [" ".join(part.split()) for part in text.splitlines() if part.strip()]


def parameters_of(signatures):
    """name: the parameters of that name in the signatures, in the order in which a caller writes them."""
    found = {}
    for signature in sorted(signatures, key=lambda s: -len(s.parameters)):
        for p in signature.parameters:
            found.setdefault(p.name, []).append(p)
    return found


def shared_text(shared, parameters):
    """The shared text for parameters of one name: of `type name` if there is one, else of `name`."""
    for p in parameters:
        text = shared.get(f"{p.type}{'?' if p.optional else ''} {p.name}")
        if text:
            return text
    return shared.get(parameters[0].name, "")


def usual_result(op, of_floats):
    """The result of an elementwise op, which its form tells."""
    if op.form not in ("unary", "binary", "ternary"):
        return ""
    kind = "A bool tensor" if op.bool_result else "A tensor"
    shape = "the shape of `input`" if op.form == "unary" else "the shape to which the arguments broadcast"
    return f"{kind} of {shape}." + (" Integers give f32." if of_floats and not op.bool_result else "")


def read_doc(op, row, of_floats, shared):
    parameters, own = parameters_of(op.signatures), row.get("args") or {}
    for argument in own:
        if argument not in parameters:
            raise OpListError(f"{op.name}: `args` describes '{argument}', which is not a parameter.")
    arguments = {}
    for argument, found in parameters.items():
        text = own.get(argument) or shared_text(shared, found)
        if text:
            arguments[argument] = " ".join(str(text).split())
    returns = " ".join(row.get("returns", "").split())
    example = row.get("example", "").strip()
    if example and not example.startswith(">>> "):
        raise OpListError(f"{op.name}: `example` must begin with '>>> '.")
    return Doc(paragraphs_of(row["doc"]), arguments, set(own), returns, usual_result(op, of_floats), row.get("errors", ""), example)

"""Comments, READMEs, docstrings and messages are plain English: the tree contains none of the phrases of PHRASES.

Usage: prose_test.py SOURCE_ROOT

Each phrase is an archaic form or leaves out the noun, and each has a plain form. A line break within a comment counts
as a space. The list is a floor: text without these phrases may still be hard to read. The test also plants a sentence
with each phrase, and sentences that resemble it, and fails if it judges one of them wrongly.
"""
import bisect
import itertools
import os
import re
import sys

import source_tree

SUFFIXES = (".c", ".cl", ".cmake", ".comp", ".cpp", ".cu", ".cuh", ".def", ".expect", ".glsl", ".h", ".in", ".inc", ".j2", ".md",
            ".proto", ".py", ".pyi", ".toml", ".txt", ".yaml")
FROZEN = "ep_api/abi/"  # written by ./dev freeze
EXEMPT = ("LICENSE", "tests/e2e/prose_test.py")
TERSE = ("core/device/process.h", "core/tensor/tensor.h", "ep_api/ep_api.h")  # TRAILING is not yet checked here
COMPARED = "longer|more|less|better|worse|faster|slower|later|earlier|greater|smaller|larger"
# The phrase, the plain form, a sentence to detect, and a sentence to accept.
PHRASES = (
    (r"(?:that|those|what|the one) of (?:which|whom|what|whoever)", "name the thing",
     "The sum, that of which is kept.", "The sum of what is kept."),
    (r"told of", "is reported", "A late rank is told of.", "It told the host."),
    (r"(?:tells?|speaks?|says nothing) of", "names, reports", "It says nothing of the rank.", "It says nothing."),
    (r"(?<!here )(?:is|are|was|were) no (?!(?:%s)\b)[A-Za-z]\w*" % COMPARED, "is not a",
     "A view is no leaf.", "There is no leaf, and it is no longer used."),
    (r"(?-i:of none)", "of no <thing>; none of the <things>", "A group of none.", "A list of nonzero positions."),
    (r"so many(?! (?:\w+ ){1,3}that\b)", "at most `n`, this many", "It runs so many rows.", "So many programs that it fails."),
    (r"all that", "everything that; all <things> that", "It frees all that is kept.", "It frees all values that are kept."),
    (r"(?:who|what|which)soever|whoever|(?:in|of) its own accord|its own affair", "name the thing", "Whoever loads it.", "Who loads it."),
    (r"what of|the which|as of a|one of which is that", "name the thing", "It prints what of a model fails.", "It prints what fails."),
    (r"makes? of (?:it|them|the|this|that)", "the result of", "The file that a pass makes of it.", "It is made of them."),
    (r"anew|hither|thither|whence|thereof|therein|whereof|hereby|aught|naught|ought to|must needs", "the usual word",
     "It compiles anew.", "It compiles a new text."),
    (r"(?:has|have|had) not(?=[.,;:])", "lacks <the thing>", "An op that the table has not.", "An op that has not run."),
    (r"a look at", "reads, checks", "A look at its ends decides.", "A lookup at its ends."),
    (r"(?:says?|said) (?:yes|OK)|said no", "returns, accepts, refuses", "The device said OK.", "It says that the device is OK."),
    (r"seen to (?:be|have|fire|end)", "observed", "The work has not been seen to be done.", "It was seen today."),
)
SEARCH = re.compile(r"\b(?:%s)(?!\w)" % "|".join(rf"(?P<p{i}>{phrase})" for i, (phrase, *_) in enumerate(PHRASES)), re.IGNORECASE)
# A comment or docstring that begins with "Whether" or "What" is only a clause, unless it is a question. One that begins
# with "The same for", "That of" and the like does not name its subject.
CLAUSE = re.compile(r'(?m)^[ \t]*(?://+|#|"""|doc:)[ \t]*'
                    r'(?:(?:Whether|What)\b(?![^.\n]*\?)|(?:The same|That|Those) (?:as|for|from|in|of|on|under|with)\b|The same[.,;])')
# A comment behind code that begins with "of" leaves out the noun.
TRAILING = re.compile(r"(?m)^(?=[ \t]*[^ \t/#*\n]).*?[;,{})\]\w][ \t]+(?://+|#) of\b")
BEGUN = re.compile(r"(?://|#)[^\n]*\n[ \t]*$")
BREAK = re.compile(r"[ \t]*\n[ \t]*(?:(?://+|#|\*)[ \t]*)?")


def faults_in(text, terse=False):
    """Yields (line, words, advice) for each phrase in `text`. `terse` leaves out TRAILING."""
    parts = BREAK.split(text)  # one per line
    begins = [0, *itertools.accumulate(len(part) + 1 for part in parts)]
    for match in SEARCH.finditer(" ".join(parts)):
        yield bisect.bisect(begins, match.start()), match.group(), PHRASES[int(match.lastgroup[1:])][1]
    for match in CLAUSE.finditer(text):
        if not BEGUN.search(text, 0, match.start()) or '"""' in match.group():
            yield text.count("\n", 0, match.start()) + 1, match.group().strip(), '"True if ...", or the noun'
    for match in () if terse else TRAILING.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, "of", "name the thing"


def check_phrases():
    """The sentences of PHRASES are judged as they should be."""
    for phrase, _, bad, good in PHRASES:
        if not list(faults_in(f"int a;\n// {bad}\n")):
            yield f"not detected: {bad}"
        if list(faults_in(f"int a;\n// {good}\n")):
            yield f"detected: {good}"
    for bad in ("// It frees all\n// that is kept.", "# Whether it runs.", '    """What it returns."""'):
        if [line for line, *_ in faults_in("\n" + bad)] != [2]:
            yield f"not detected in line 2: {bad!r}"
    for bad in ("int x;  // of the kernel", "x = 1  # of the list", "# The same for rows.", "// That of the sum."):
        if [line for line, *_ in faults_in("\n" + bad)] != [2]:
            yield f"not detected in line 2: {bad!r}"
    for good in ("// It depends on both.\n// What it reads is kept.", "// What shape is this?", "// the bytes\n// of the kernel",
                 "// The same table gives the same answer."):
        if list(faults_in(good)):
            yield f"detected: {good!r}"


def main():
    root = sys.argv[1]
    failures, looked_at = [*check_phrases()], 0
    for path in source_tree.files_of(root):
        full = os.path.join(root, path)
        if path.startswith(FROZEN) or path in EXEMPT:
            continue
        if path.endswith(SUFFIXES) or "." not in os.path.basename(path):
            looked_at += 1
            with open(full, encoding="utf-8", errors="replace") as file:
                failures += [f"{path}:{line}: '{words}': {advice}" for line, words, advice in faults_in(file.read(), path in TERSE)]
    return source_tree.end(failures, looked_at)


if __name__ == "__main__":
    sys.exit(main())

"""The folder of the cpu provider that computes a call: from the profile of the call and the lists of the provider."""

import collections
import re

import tenon
from calls_of_ops import ROOT

CPU = ROOT / "providers/cpu"
RUNGS = {"native": "core", "": "core"}  # work of the core itself, which no implementation has computed


class Rooms:
    def __init__(self, ops):
        self.kinds = {op.name: op.kind or op.form for op in ops}
        text = (CPU / "lists.cpp").read_text()
        folders = {}
        for header in re.findall(r'#include "providers/cpu/(\w+/\w+\.h)"', text):
            for name in re.findall(r"^(?:class |struct |TENON_CPU_KIND\()(\w+)", (CPU / header).read_text(), re.M):
                folders[name] = header.split("/")[0]
        lists = {name: dict(re.findall(r'\{"(\w+)", (\w+)::', body)) for name, body in re.findall(r"constexpr Implementation (\w+)\[\] = \{(.*?)\};", text, re.S)}
        self.folders = {kind: {each: folders[cls] for each, cls in lists[name].items()} for kind, name in re.findall(r"\{EP_PRIMITIVE_(\w+), (\w+)\}", text)}

    def of(self, call):
        """The room in which `call` spends most of its time; "core" if it launches nothing."""
        with tenon.profile(show=False) as profile:
            call()
        times = collections.Counter()
        for row in profile.rows:
            times[self._room(row)] += row.seconds
        return times.most_common(1)[0][0] if times else "core"

    def _room(self, row):
        kind = self.kinds.get(row.op, row.op)
        return self.folders.get(kind, {}).get(row.implementation) or RUNGS.get(row.implementation, row.implementation)

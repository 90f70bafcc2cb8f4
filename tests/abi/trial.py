"""The two trial minors: today's header and sample, the second with one addition to everything that may grow.

They play two released minors until 1.0 freezes some: minor FIRST is the header as it is, minor SECOND appends. A folder
made by `overlay` holds a header that contains both, as a later ep_api.h would.

Usage: trial.py SOURCE_ROOT FOLDER    writes that folder, with the sizes of both minors in frozen_sizes.def
"""
import os
import sys

import frozen
import header

FIRST, SECOND = 0x7001, 0x7002
GUARD = f"\n#if EP_ABI_TARGET_MINOR >= {SECOND:#x}\n%s\n#endif\n"

# The members that each growing struct gets at its end.
MEMBERS = {
    "ep_host": "  int64_t (*trial_double)(const ep_host* host, int64_t value);",
    "ep_plugin_ops": "  int64_t (*trial_greet)(ep_plugin* plugin, int64_t value);",
    "ep_device_info": "  uint64_t trial_units;",
    "ep_device_ops": "  ep_status (*trial_echo)(ep_device* device, int64_t value, int64_t* out_value, ep_error** error);",
    "ep_support_info": "  uint64_t trial_cost;",
    "ep_primitive_info": "  uint64_t trial_bytes;",
    "ep_stream_desc": "  uint64_t trial_hint;",
    "ep_graph_desc": "  uint64_t trial_nodes;",
    "ep_graph_info": "  uint64_t trial_graph_bytes;",
    "ep_import_desc": "  uint64_t trial_access;",
    "ep_adopt_desc": "  uint64_t trial_owner;",
    "ep_layout_info": "  uint64_t trial_tiles;",
    "ep_command_list_desc": "  uint64_t trial_branches;",
    "ep_command_list_info": "  uint64_t trial_commands;",
    "ep_dialect_info": "  uint64_t trial_clock;",
    "ep_module_desc": "  uint64_t trial_level;",
    "ep_module_info": "  uint64_t trial_instructions;",
    "ep_kernel_info": "  uint64_t trial_occupancy;",
}
CONSTANTS = "#define EP_TRIAL_FLAG UINT64_C(1)"
ROW = "EP_PRIMITIVE(trial_kind, 0x10000, ep_no_attributes, NONE)"

# The sample's code that fills them: (text that occurs once, text to insert before it).
SAMPLE = [
    ("static ep_status device_open(", """
static ep_status trial_echo(ep_device* device, int64_t value, int64_t* out_value, ep_error** error) {
  (void)error;
  const ep_host* host = device->host;
  int newer = host->struct_size >= offsetof(ep_host, trial_double) + sizeof host->trial_double && host->trial_double;
  *out_value = newer ? host->trial_double(host, value) : value;
  return EP_STATUS_OK;
}
"""),
    ("  hand_out(out_ops, &ops, sizeof ops);\n  *out_device = device;", "  ops.trial_echo = trial_echo;"),
    ("  hand_out(out_info, &info, sizeof info);\n  *out_primitive = primitive;", "  info.trial_bytes = 77;"),
    ("  hand_out(out_info, &terms, sizeof terms);", "  terms.trial_cost = 66;"),
    ("  hand_out(out_info, &info, sizeof info);\n  return EP_STATUS_OK;\n}\n\nstatic void device_close(",
     "  info.trial_units = 55;"),
    ("ep_status ep_plugin_query_v0(", """
static int64_t trial_greet(ep_plugin* plugin, int64_t value) { return plugin ? value + 1 : 0; }
"""),
    ("  hand_out(out_ops, &ops, sizeof ops);\n  return EP_STATUS_OK;", "  ops.trial_greet = trial_greet;"),
]


def insert_before(text, place, added):
    if text.count(place) != 1:
        raise RuntimeError(f"the sample holds {text.count(place)} times what must stand there once:\n{place}")
    return text.replace(place, GUARD.lstrip() % added + place)


def plain(root, folder):
    """Copies the header, its tables and the sample into `folder`."""
    write_sources(folder, *read_sources(root))


def overlay(root, folder):
    """Writes the header and tables with both minors, and the sample that fills the additions, into `folder`."""
    headers, sample = read_sources(root)
    for name, text in headers.items():
        if name == "ep_api.h":
            for struct, member in MEMBERS.items():
                text = header.append_member(text, struct, GUARD % member)
            text = text.replace("typedef int32_t ep_status;", GUARD.lstrip() % CONSTANTS + "typedef int32_t ep_status;", 1)
        elif name == "primitives.def":
            text += GUARD % ROW
        headers[name] = text
    for place, added in SAMPLE:
        sample = insert_before(sample, place, added)
    write_sources(folder, headers, sample)


def freeze(root, work):
    """{minor: folder} of both minors, frozen below `work`: FIRST from this tree, SECOND from one that imitates a later
    tree."""
    folders = {}
    for minor, sources in ((FIRST, plain), (SECOND, overlay)):
        sources(root, os.path.join(work, "sources"))
        folders[minor] = os.path.join(work, f"{minor:#x}")
        frozen.write_minor(os.path.join(work, "sources"), minor, folders[minor])
    return folders


def sizes_text(root, folder):
    """frozen_sizes.def of the tree that `overlay` wrote into `folder`."""
    rows = [row for minor in (FIRST, SECOND) for row in frozen.size_rows(frozen.facts(folder, minor), minor)]
    return frozen.sizes_text(root) + "\n".join(rows) + "\n"


def read_sources(root):
    headers = {}
    for name in header.FILES:
        with open(os.path.join(root, "ep_api", name)) as file:
            headers[name] = file.read()
    with open(os.path.join(root, "sdk/app/examples/provider/sample.c")) as file:
        return headers, file.read()


def write_sources(folder, headers, sample):
    os.makedirs(os.path.join(folder, "ep_api"), exist_ok=True)
    for name, text in headers.items():
        write_if_different(os.path.join(folder, "ep_api", name), text)
    write_if_different(os.path.join(folder, "sample.c"), sample)


def write_if_different(path, text):
    if os.path.exists(path):
        with open(path) as file:
            if file.read() == text:
                return
    with open(path, "w") as file:
        file.write(text)


if __name__ == "__main__":
    overlay(sys.argv[1], sys.argv[2])
    write_if_different(os.path.join(sys.argv[2], "ep_api", frozen.SIZES), sizes_text(sys.argv[1], sys.argv[2]))

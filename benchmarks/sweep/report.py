"""The table of a sweep: a summary of each room, and the rows, worst first. As text, and as a part of README.md."""

import collections
import math
import pathlib
import textwrap

README = pathlib.Path(__file__).with_name("README.md")
HEADING = "## Newest table\n"
BAR, SHORT_BAR, SHORT = 1.2, 1.5, 20e-6  # the largest ratio; that of a call of Tenon that takes less than SHORT seconds
STEPS = (1.2, 1.5, 2)
WORST = 40  # rows in README.md


def summaries(rows):
    """(room, number of rows, geometric mean of the ratios, rows above each step), most rows first; the last one is of all."""
    rooms = collections.defaultdict(list)
    for row in rows:
        rooms[row["room"]].append(row["ratio"])
    ordered = sorted(rooms.items(), key=lambda item: -len(item[1]))
    for room, ratios in [*ordered, ("all", [row["ratio"] for row in rows])] if rows else []:
        yield room, len(ratios), math.exp(sum(map(math.log, ratios)) / len(ratios)), [sum(ratio > step for ratio in ratios) for step in STEPS]


def over(row):
    return row["ratio"] > (BAR if row["ours"] >= SHORT else SHORT_BAR)


def worst_first(found):
    return sorted((row for row in found if "ratio" in row), key=lambda row: -row["ratio"])


def titled(found):
    """The rows that are not ratios, by title: (title, lines)."""
    yield "different values", [f"{row['name']}: {'; '.join(row['faults'])[:300]}" for row in found if row.get("faults")]
    for key, title in (("refused", "refused by Tenon alone"), ("died", "crashed or hung"), ("error", "failed in the sweep itself")):
        yield title, [f"{row['name']}: {row[key]}" for row in found if key in row]


def text(found, about, least):
    rows = worst_first(found)
    lines = [f"{about}; microseconds", "   ratio        tenon      PyTorch  room              call"]
    lines += [f"{row['ratio']:8.2f} {row['ours'] * 1e6:12.2f} {row['theirs'] * 1e6:12.2f}  {row['room']:16}  {row['name']}" for row in rows if row["ratio"] >= least]
    lines += ["", "room              rows   mean  above " + "  ".join(f"{step:4}" for step in STEPS)]
    lines += [f"{room:16} {count:5} {mean:6.2f}        " + "  ".join(f"{each:4}" for each in above) for room, count, mean, above in summaries(rows)]
    for title, some in titled(found):
        lines += ["", f"{title}:", *some] if some else []
    lines += ["", f"{sum(map(over, rows))} of {len(rows)} rows above {BAR} ({SHORT_BAR} where a call takes less than {SHORT * 1e6:.0f} us)"]
    return "\n".join(lines)


def write_readme(found, about):
    """Replaces the newest table in README.md."""
    rows = worst_first(found)
    lines = [HEADING, f"{about}.", "", "| room | rows | geometric mean | " + " | ".join(f"above {step}" for step in STEPS) + " |", "|---" * (3 + len(STEPS)) + "|"]
    lines += [f"| {room} | {count} | {mean:.2f} | " + " | ".join(map(str, above)) + " |" for room, count, mean, above in summaries(rows)]
    lines += ["", f"The worst {WORST} rows of calls that take at least {SHORT * 1e6:.0f} us (times in us):", "",
              "| ratio | Tenon | PyTorch | room | call |", "|---|---|---|---|---|"]
    long = [row for row in rows if row["ours"] >= SHORT]
    lines += [f"| {row['ratio']:.1f} | {row['ours'] * 1e6:.1f} | {row['theirs'] * 1e6:.1f} | {row['room']} | {textwrap.shorten(row['name'], 80)} |" for row in long[:WORST]]
    README.write_text(README.read_text().split(HEADING)[0] + "\n".join(lines) + "\n")

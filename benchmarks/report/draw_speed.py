"""Draws speed.txt as benchmarks/speed.svg: Tenon's time as a share of the faster peer's.

Usage: draw_speed.py            writes the picture
       draw_speed.py --check    fails if the picture is not what the table draws
"""
import html
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
TABLE = FOLDER / "speed.txt"
PICTURE = FOLDER.parent / "speed.svg"
LEFT, WIDTH, ROW, TOP, MOST = 230, 420, 26, 64, 1.25  # MOST: the ratio at the right end


def read(text):
    """The facts about the measurement, and the rows: name, Tenon's time, the peer's time."""
    facts, rows = {}, []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        if "|" in line:
            name, ours, theirs = (cell.strip() for cell in line.split("|"))
            rows.append((name, float(ours), float(theirs)))
        else:
            key, value = line.split(": ", 1)
            facts[key] = value
    return facts, rows


def label(x, y, text, more=""):
    return f'<text x="{x:g}" y="{y:g}"{more}>{html.escape(text)}</text>'


def draw(facts, rows):
    bottom = TOP + ROW * len(rows)
    one = LEFT + WIDTH / MOST
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="820" height="{bottom + 62}" '
             'font-family="sans-serif" font-size="13" fill="#222">',
             '<rect width="100%" height="100%" fill="#fff"/>',
             label(12, 22, "Time of Tenon as a share of the faster peer's time (shorter is better)", ' font-size="15"'),
             label(12, 42, f"{facts['machine']}, {facts['date']}; peers: {facts['peers']}", ' fill="#666"')]
    for number, (name, ours, theirs) in enumerate(rows):
        y, ratio = TOP + ROW * number, ours / theirs
        color = "#2b7a78" if ratio <= 1 else "#c8773a"
        length = WIDTH * min(ratio, MOST) / MOST
        lines += [label(LEFT - 10, y + 16, name, ' text-anchor="end"'),
                  f'<rect x="{LEFT}" y="{y + 3}" width="{length:.1f}" height="18" fill="{color}"/>',
                  label(LEFT + length + 6, y + 17, f"{ratio:.2f} ({ours:g} and {theirs:g} ms)")]
    lines += [f'<line x1="{one:g}" y1="{TOP - 6}" x2="{one:g}" y2="{bottom + 6}" stroke="#222" stroke-dasharray="3 3"/>',
              label(one, bottom + 22, "the faster peer", ' text-anchor="middle"'),
              label(12, bottom + 46, f"Measured by {facts['measured']}", ' fill="#666"'), "</svg>"]
    return "\n".join(lines) + "\n"


def main():
    picture = draw(*read(TABLE.read_text()))
    if sys.argv[1:] == ["--check"]:
        if not PICTURE.is_file() or PICTURE.read_text() != picture:
            sys.exit(f"{PICTURE} is not what {TABLE} draws; run {pathlib.Path(__file__).name}.")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        PICTURE.write_text(picture)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""The README's picture, of figures that ./dev peers has measured. usage: speed.py PEERS.md > speed.svg

Times of all_reduce between two processes over the message's size, both axes logarithmic. Of a library that was measured in several
ways, the fastest at each size.
"""

import math
import pathlib
import re
import sys

TABLE = re.compile(r"^\*\*all_reduce fp32, 2 ranks, steady\*\*\n\n(\| size \| weft:any .*?)\n\n", re.M | re.S)
SERIES = (  # name, columns, colour, strong
    ("Gloo", ("gloo:",), "#d6336c", False),
    ("MPICH", ("mpich:",), "#9c5fe0", False),
    ("Open MPI", ("openmpi:",), "#e8590c", False),
    ("weft", ("weft:any",), "#1c7ed6", True),
    ("weft, weftMemAlloc", ("weft:own",), "#2f9e44", True),
)
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 330, 62, 44, 150, 42
UNITS = {"K": 2**10, "M": 2**20}
STYLE = """text { font: 12px sans-serif; fill: #24292f } .title { font-weight: bold } .grid { stroke: #d0d7de }
polyline { fill: none; stroke-linejoin: round }
@media (prefers-color-scheme: dark) { text { fill: #d5dae0 } .grid { stroke: #30363d } }"""


def rows_of(document):
    """(column names, {size as written: microseconds by column})"""
    lines = TABLE.search(document)[1].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return cells[0][1:], {row[0]: [float(cell) for cell in row[1:]] for row in cells[2:]}


def bytes_of(size):
    return int(size.rstrip("KM")) * UNITS.get(size[-1], 1)


def curve(names, rows, prefixes):
    """(bytes, microseconds) of the fastest column of a library."""
    wanted = [i for i, name in enumerate(names) if name.startswith(prefixes)]
    return [(bytes_of(size), min(values[i] for i in wanted)) for size, values in rows.items()]


def scale(least, most, start, end):
    factor = (end - start) / (math.log(most) - math.log(least))
    return lambda value: start + factor * (math.log(value) - math.log(least))


def grid(sizes, x, y, decades):
    for decade in decades:
        label = f"{10 ** (decade % 3 if decade >= 0 else decade):g} {('us', 'ms', 's')[max(decade, 0) // 3]}"
        at = y(10**decade)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
        yield f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{label}</text>'
    for size in sizes:
        at = x(bytes_of(size))
        yield f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{size}{"" if size[-1] in "KM" else " B"}</text>'


def line(name, points, colour, strong, x, y, label_at):
    places = " ".join(f"{x(size):.1f},{y(time):.1f}" for size, time in points)
    width = 2.6 if strong else 1.6
    yield f'<polyline points="{places}" stroke="{colour}" stroke-width="{width}"/>'
    yield f'<text x="{WIDTH - RIGHT + 8}" y="{label_at + 4:.1f}" style="fill: {colour}">{name}</text>'


def spread(places, gap):
    """Moves labels downwards until they do not overlap."""
    last = -gap
    for place in sorted(places, key=places.get):
        last = places[place] = max(places[place], last + gap)
    return places


def picture(document):
    names, rows = rows_of(document)
    curves = {name: curve(names, rows, prefixes) for name, prefixes, _, _ in SERIES}
    times = [time for points in curves.values() for _, time in points]
    decades = range(math.floor(math.log10(min(times))), math.ceil(math.log10(max(times))) + 1)
    sizes = list(rows)
    x = scale(bytes_of(sizes[0]), bytes_of(sizes[-1]), LEFT + 10, WIDTH - RIGHT)
    y = scale(10 ** decades[0], 10 ** decades[-1], HEIGHT - BOTTOM, TOP)
    labels = spread({name: y(points[-1][1]) for name, points in curves.items()}, 15)
    machine = re.search(r" on (.*?), 2 cores", document)[1].replace("(R)", "")
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">'
    yield "<!-- SPDX-License-Identifier: Apache-2.0 -->"
    yield f"<style>\n{STYLE}\n</style>"
    yield f'<text class="title" x="{LEFT}" y="20">all_reduce of fp32 between two processes, {machine}: time by bytes, less is better</text>'
    yield from grid(sizes, x, y, decades)
    for name, _, colour, strong in SERIES:
        yield from line(name, curves[name], colour, strong, x, y, labels[name])
    yield "</svg>"


if __name__ == "__main__":
    print("\n".join(picture(pathlib.Path(sys.argv[1]).read_text())))

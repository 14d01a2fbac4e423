# SPDX-License-Identifier: Apache-2.0
"""Pages of weft-train --report as a browser shows them. usage: report.py WEFT_TRAIN FOLDER

Chromium without a window (Debian's chromium-headless-shell) lays out each page at three widths: no text lies over another or is
cut off, none is small, and nothing asks for more width than there is. In the picture each line of each chart has ink of
its colour. The page has no script; a copy of it gets one here that writes down where things are. The pictures stay in FOLDER.
"""

import html
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from PIL import Image

BROWSER = ["chromium-headless-shell", "--no-sandbox", "--hide-scrollbars", "--disable-gpu", "--enable-logging=stderr", "--v=0"]
WIDTHS = {1200: 2, 800: 1, 480: 1}  # of the window, and the columns of charts there
LEAST_TEXT = 8  # pixels high
FLAGS = "--layers 2 --hidden 64 --heads 2 --threads 1 --quiet --vocab-size 300"

MEASURE = """
const boxOf = e => { const r = e.getBoundingClientRect(); return [r.left, r.top + scrollY, r.right, r.bottom + scrollY]; };
const all = (e, what) => [...e.querySelectorAll(what)];
const plots = all(document, 'svg').map(svg => ({
  box: boxOf(svg), name: svg.getAttribute('aria-label'),
  texts: all(svg, 'text').map(t => ({words: t.textContent, box: boxOf(t)})),
  lines: all(svg, 'polyline').map(l => ({colour: getComputedStyle(l).stroke, box: boxOf(l)})),
}));
const cut = all(document, '.tile, th, td, h1, h2, p, figcaption').filter(e => e.scrollWidth > e.clientWidth + 1)
  .map(e => e.textContent);
const found = {plots, cut, width: document.documentElement.scrollWidth, height: document.documentElement.scrollHeight};
const out = document.createElement('pre');
out.id = 'measured';
out.textContent = JSON.stringify(found);
document.body.append(out);
"""


def browse(*arguments):
    done = subprocess.run([*BROWSER, *arguments], capture_output=True, text=True, timeout=60, check=True)
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert not said, said
    return done.stdout


def layout_of(page, width):
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "copy.html"
        copy.write_text(page.read_text().replace("</body>", f"<script>{MEASURE}</script></body>"))
        shown = browse(f"--window-size={width},800", "--dump-dom", f"file://{copy}")
    return json.loads(html.unescape(re.search(r'<pre id="measured">(.*?)</pre>', shown, re.S)[1]))


def overlap(a, b):
    return min(a[2], b[2]) - max(a[0], b[0]) > 0.5 and min(a[3], b[3]) - max(a[1], b[1]) > 0.5


def check_texts(plot):
    texts = plot["texts"]
    for i, text in enumerate(texts):
        left, top, right, bottom = text["box"]
        inside = left >= plot["box"][0] - 1 and right <= plot["box"][2] + 1
        assert inside and top >= plot["box"][1] - 1 and bottom <= plot["box"][3] + 1, (plot["name"], text, "is cut off")
        assert bottom - top >= LEAST_TEXT, (plot["name"], text, "is too small to read")
        for other in texts[i + 1 :]:
            assert not overlap(text["box"], other["box"]), (plot["name"], text, other, "lie over each other")


def check_ink(plot, picture):
    """Each line has a pixel of its colour, or nearly, in half of the columns that it goes through; a later one may hide it."""
    for line in plot["lines"][::-1][:1] if len(plot["lines"]) > 2 else plot["lines"]:
        colour = tuple(map(int, re.findall(r"\d+", line["colour"])[:3]))
        left, top, right, bottom = (round(edge) for edge in line["box"])
        box = picture.crop((left - 2, top - 2, right + 2, bottom + 2))
        columns = {
            x
            for x in range(box.width)
            for y in range(box.height)
            if all(abs(a - b) < 60 for a, b in zip(box.getpixel((x, y)), colour))
        }
        assert len(columns) > box.width / 2, (plot["name"], line, f"ink in {len(columns)} of {box.width} columns")


def check(page, charts):
    for width, columns in WIDTHS.items():
        found = layout_of(page, width)
        assert len(found["plots"]) == charts, (page, width, len(found["plots"]))
        assert found["width"] <= width and not found["cut"], (page, width, found["width"], found["cut"])
        lefts = {round(plot["box"][0]) for plot in found["plots"]}
        assert len(lefts) == columns, (page, width, lefts)
        shot = page.with_name(f"{page.stem}-{width}.png")
        browse(f"--window-size={width},{found['height']}", f"--screenshot={shot}", f"file://{page}")
        picture = Image.open(shot).convert("RGB")
        for plot in found["plots"]:
            check_texts(plot)
            check_ink(plot, picture)
        print(f"{page.name} at {width} pixels: {charts} charts, {sum(len(p['texts']) for p in found['plots'])} labels")


def main(train, folder):
    folder = pathlib.Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    text = folder / "a rather long name & <one> with a \"quote\" that is the name of a text, and goes on for a while.txt"
    text.write_text("".join(f"The square of {i} is {i * i}.\n" for i in range(2000)))
    for name, charts, flags in (
        ("run", 7, "--ranks 2 --steps 120 --eval-every 20 --eval-batches 1 --recipe pythia-6.9b-trn1 --scale-down --params fp32 "
                   "--rounding nearest --lr 5e-3 --peak-tflops 0.1 --price trn1.32xlarge --target-loss 3"),
        ("alone", 5, "--steps 1"),
        ("bert", 6, "--steps 40 --eval-every 10 --eval-batches 1 --recipe bert-1.5b-dl1 --scale-down --price 3.5"),
        ("scaling", 2, "--scaling 1,2,4 --scaling-seconds 0.5 --scaling-rounds 2 --recipe bert-large-phase1 --scale-down"),
    ):
        page = folder / f"{name}.html"
        command = [train, "--data", text, *FLAGS.split(), *flags.split(), "--report", page]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        check(page, charts)
    print(f"The pictures: {folder}")


if __name__ == "__main__":
    main(*sys.argv[1:])

# SPDX-License-Identifier: Apache-2.0
"""Pages of weft-train --report, read as XML and as HTML. usage: report_test.py WEFT_TRAIN"""

import csv
import html.parser
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

FLAGS = "--layers 2 --hidden 32 --heads 2 --seq 16 --batch 1 --threads 1 --quiet"
ADVERSARIAL = b"a <script>alert(1)</script> & \"b\" 'c' ]]> -- \xff\x01 \xe2\x82\xac"
STEPS, EVERY = 9, 3


class Nesting(html.parser.HTMLParser):
    """Every tag that is opened is closed, in order, and nothing is loaded or run."""

    def __init__(self):
        super().__init__()
        self.open = []
        self.errors = []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.handle_startendtag(tag, attributes)

    def handle_startendtag(self, tag, attributes):
        names = {name for name, _ in attributes}
        if tag in ("script", "link", "iframe", "object", "img", "base") or names & {"src", "href", "action", "xlink:href"}:
            self.errors.append(f"<{tag} {attributes}>")
        self.errors += [name for name in names if name.startswith("on")]

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.errors.append(f"</{tag}>")


class ReportTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def page(self, flags):
        """The file of a run on a text with a terrible name, as XML and as text."""
        text = bytes(self.folder) + b"/" + ADVERSARIAL.replace(b"/", b"")
        with open(text, "w") as file:
            file.write("".join(f"{i} squared is {i * i}.\n" for i in range(500)))
        path = self.folder / "page.html"
        command = [*f"{sys.argv[1]} {FLAGS} --report {path} {flags}".split(), b"--data", text]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        source = path.read_text(encoding="utf-8")
        nesting = Nesting()
        nesting.feed(source)
        self.assertEqual((nesting.errors, nesting.open), ([], []))
        for reference in ("@import", "url(", "http://", "https://"):
            self.assertNotIn(reference, source)
        return xml.etree.ElementTree.fromstring(source), source

    def charts(self, page):
        """{caption: [points of each line]}, all within the picture and none the same."""
        charts = {}
        for figure in page.iter("figure"):
            (svg,) = figure.iter("svg")
            width, height = map(float, svg.get("viewBox").split()[2:])
            lines = [[tuple(map(float, p.split(","))) for p in line.get("points").split()] for line in svg.iter("polyline")]
            for line in lines:
                self.assertTrue(all(0 <= x <= width and 0 <= y <= height for x, y in line), line)
                self.assertEqual(len({x for x, _ in line}), len(line), "points lie over each other")
            charts[figure.find("figcaption").text] = lines
        return charts

    def test_a_run_has_a_point_for_each_step_in_each_chart(self):
        page, source = self.page(
            f"--steps {STEPS} --ranks 2 --eval-every {EVERY} --eval-batches 1 --csv {self.folder}/csv --peak-tflops 0.1 "
            "--price trn1.32xlarge --target-loss 100 --recipe pythia-6.9b-trn1 --scale-down --params fp32 --rounding nearest "
            "--vocab-size 300"
        )
        counts = {caption: [len(line) for line in lines] for caption, lines in self.charts(page).items()}
        every = [STEPS // EVERY]
        self.assertEqual(
            counts,
            {
                "Loss, the target dashed": [STEPS],
                "Validation loss, the target dashed": every,
                "Validation perplexity": every,
                "Gradient norm, before clipping": [STEPS],
                "Learning rate": [STEPS],
                "Throughput of all ranks": [STEPS],
                "Exposed communication, of a step": [STEPS],
            },
        )
        cells = [cell.text or "" for cell in page.iter() if cell.tag in ("td", "th")]
        self.assertIn("2 on 1 host, 1 thread each", cells)
        self.assertIn("10,102,387", cells, "what was published")
        self.assertTrue(any(cell.startswith(f"reached after step {EVERY - 1} (") for cell in cells), cells)
        self.assertIn("\ufffd", next(cell for cell in cells if "alert(1)" in cell), "what was no character")
        self.assertEqual(source.count("alert(1)"), 1)
        self.compare(self.charts(page), list(csv.DictReader((self.folder / "csv").read_text().splitlines())))

    def compare(self, charts, rows):
        """A chart goes up where the values do."""
        for caption, column in {"Gradient norm, before clipping": "grad_norm", "Learning rate": "lr"}.items():
            values, heights = [float(row[column]) for row in rows], [-y for _, y in charts[caption][0]]
            for a, b, low, high in zip(values, values[1:], heights, heights[1:]):
                self.assertTrue((b - a) * (high - low) >= 0, (caption, a, b, low, high))

    def test_a_scaling_table_is_a_page(self):
        page, _ = self.page("--scaling 1,2 --scaling-seconds 0.2 --scaling-rounds 1 --recipe bert-large-phase1 --scale-down")
        counts = {caption: [len(line) for line in lines] for caption, lines in self.charts(page).items()}
        self.assertEqual(counts, {"Throughput": [2, 2, 2], "Efficiency, a rank beside one alone": [2, 2]})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

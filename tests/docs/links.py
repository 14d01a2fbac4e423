# SPDX-License-Identifier: Apache-2.0
"""links.py ROOT: the links of all pages lead to files, and to headings, that are there."""

import pathlib
import re
import subprocess
import sys

CODE = re.compile(r"^```.*?^```$", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]+))?\)")


def anchor_of(heading):
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def anchors_of(page):
    return {anchor_of(heading) for heading in re.findall(r"^#+ (.*)$", CODE.sub("", page.read_text()), re.M)}


def complaints_of(page, root):
    for target, anchor in LINK.findall(CODE.sub("", page.read_text())):
        if ":" in target:
            continue  # of the web
        file = page.parent / target if target else page
        if not file.exists():
            yield f"{page.relative_to(root)} links to {target}, which is not there"
        elif anchor and anchor not in anchors_of(file):
            yield f"{page.relative_to(root)} links to {target}#{anchor}, which is no heading there"


def pages_of(root):
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=root, capture_output=True, text=True, check=False).stdout
    return [root / name for name in listed.split()] or [root / "README.md", *root.glob("docs/**/*.md")]


def main(root):
    said = [line for page in pages_of(root) if page.exists() for line in complaints_of(page, root)]
    print("\n".join(said) or "all links lead somewhere")
    return bool(said)


sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))

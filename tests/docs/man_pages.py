# SPDX-License-Identifier: Apache-2.0
"""Each call of the public headers has a manual page that is whole, and that man sets without a warning. usage: man_pages.py ROOT"""

import pathlib
import re
import subprocess
import sys
import tempfile

FUNCTION = re.compile(r"WEFT_API [\w\s*]+?\b(weft\w+)\(")
SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "RETURN VALUE", "ERRORS", "SEE ALSO"]


def make(root, folder, *headers):
    return subprocess.run(
        [sys.executable, "-B", root / "docs/man_pages.py", folder, *headers], capture_output=True, text=True
    )


def sections_of(page):
    parts = re.split(r"^\.SH (.*)\n", page, flags=re.M)[1:]
    return dict(zip(parts[::2], parts[1::2]))


def complaints_of(name, folder):
    file = folder / f"{name}.3"
    if not file.exists():
        yield f"{name} has no page"
        return
    page = file.read_text()
    if page.startswith(".so man3/"):
        page = (folder / page.removeprefix(".so man3/").strip()).read_text()
    sections = sections_of(page)
    if list(sections) != SECTIONS:
        yield f"{name}: its sections are {', '.join(sections)}"
        return
    if not re.search(rf"\b{name}\b.* \\- \w", sections["NAME"]):
        yield f"{name}: NAME is {sections['NAME']}"
    if f"{name}(" not in sections["SYNOPSIS"]:
        yield f"{name} is not in its SYNOPSIS"
    for section in ("DESCRIPTION", "RETURN VALUE", "ERRORS"):
        if len(sections[section].split()) < (1 if section == "ERRORS" else 3):
            yield f"{name}: {section} is {sections[section]!r}"


def warnings_of(folder):
    pages = [page for page in sorted(folder.iterdir()) if not page.read_text().startswith(".so ")]
    said = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", *pages], capture_output=True, text=True)
    yield from said.stderr.splitlines()


def complaints(root, folder):
    headers = [root / "include/weft/weft.h", root / "include/weft/shard.h"]
    made = make(root, folder, *headers)
    yield from made.stderr.splitlines()
    names = [name for header in headers for name in FUNCTION.findall(header.read_text())]
    if len(names) < 70:
        yield f"only {len(names)} functions found in the headers: has their form changed?"
    for name in names:
        yield from complaints_of(name, folder)
    yield from warnings_of(folder)
    bare = folder / "weft.h"
    bare.write_text(headers[0].read_text().replace("/* Waits until all ranks have called it. */", ""))
    if "weftBarrier" not in make(root, folder / "bare", bare).stderr:
        yield "man_pages.py does not notice a call without a comment"


def main(root):
    with tempfile.TemporaryDirectory() as folder:
        found = list(complaints(root, pathlib.Path(folder)))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))

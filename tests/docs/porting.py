# SPDX-License-Identifier: Apache-2.0
"""The page about porting names every function of weft.h, and none that is not there; NCCL's calls that weft lacks have a reason. usage: porting.py ROOT"""

import pathlib
import re
import sys

FUNCTION = re.compile(r"WEFT_API [\w\s*]+?\b(weft\w+)\(")
NAME = re.compile(r"\bweft[A-Z]\w*")


def complaints(page, header):
    functions = set(FUNCTION.findall(header))
    if len(functions) < 50:
        yield f"only {len(functions)} functions found in weft.h: has its form changed?"
    for name in sorted(functions - set(NAME.findall(page))):
        yield f"docs/porting.md does not name {name}"
    for name in sorted(set(NAME.findall(page)) - set(NAME.findall(header))):
        yield f"docs/porting.md names {name}, which weft.h does not have"
    for row in re.findall(r"^\| (.*) \| - \| *\|$", page, re.M):
        yield f"docs/porting.md does not say why there is nothing like {row}"


def main(root):
    page = (root / "docs/porting.md").read_text()
    header = (root / "include/weft/weft.h").read_text()
    planted = page.replace("weftBarrier", "weftBarrier2").replace("| - | there are no device kernels |", "| - | |")
    found = list(complaints(page, header))
    if len(list(complaints(planted, header))) < len(found) + 3:
        found.append("porting.py does not notice a wrong name, or a reason that is missing")
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))

# SPDX-License-Identifier: Apache-2.0
"""What docs/troubleshooting.md quotes is said by the sources: the pieces of a quotation, which … separates, are all in literals of
one file. usage: troubleshooting.py ROOT"""

import ast
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "house"))
import marks  # noqa: E402

ROW = re.compile(r"^\| `(.+?)` \| (.+?) \| (.+?) \|$", re.M)


def literals_of_cpp(source):
    """Literals that follow each other are one."""
    joined = ""
    for token in [*marks.tokens_of(source), ""]:
        if isinstance(token, marks.Literal):
            joined += token
        elif joined:
            yield joined
            joined = ""


def literals_of_python(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def literals(root):
    """What each file may say, as one text."""
    for folder in ("lib", "transports", "bindings"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cpp"):
                yield "\n".join(literals_of_cpp(path.read_text()))
            elif path.suffix == ".py":
                yield "\n".join(literals_of_python(path.read_text()))
    yield (root / "bindings/mpi/weft-mpi").read_text()


def complaints(page, files):
    rows = ROW.findall(page)
    if len(rows) < 40:
        yield f"only {len(rows)} rows were found in docs/troubleshooting.md: has its form changed?"
    for quoted, _, _ in rows:
        pieces = [piece.strip() for piece in quoted.split("…")]
        if not any(all(piece in text for piece in pieces) for text in files):
            yield f"docs/troubleshooting.md quotes what nothing says: {quoted}"


def main(root):
    page, files = (root / "docs/troubleshooting.md").read_text(), list(literals(root))
    found = list(complaints(page, files))
    planted = list(complaints(page.replace("joined twice", "came twice"), files))
    if len(planted) != len(found) + 1:
        found.append("troubleshooting.py does not notice a text that nothing says")
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))

# SPDX-License-Identifier: Apache-2.0
"""Each text of an error or of the log, and each WEFT_MARK, is met by a test. usage: marks.py ROOT RECORD

RECORD is what the tests of the build asan have met, a line each (tests/house/mark.cpp). marks.unreached lists what they
cannot meet: "[never] why" or "[sometimes] why", and below it the texts, as this prints them. Said of each violation, a line
each: a text that no test meets and that is not in the list; an entry that is no text. An entry of [never] that is met is
only noted, as a starved machine may meet it by chance.
"""

import pathlib
import re
import sys

TOKEN = re.compile(
    r'(?P<skip>\s+|//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*)|"(?P<literal>(?:[^"\\\n]|\\.)*)"'
    r"|'(?:[^'\\\n]|\\.)+'|(?P<word>[A-Za-z_][\w:]*|\d[\w.']*)|(?P<sign>.)",
    re.S | re.M,
)
PLACES = re.compile(r"\\\{(?:who|call|missing|ranges)\\\}")  # which base/status.cpp fills in
JOINS = re.compile(r"(\w+::)*(text|error|log\w+)")  # calls whose arguments follow each other in one text
SILENT = ("KnobInfo", "static_assert")  # whose literals nobody is told
NOTE = "note: "  # begins what is no violation
CLOSING = {"(": ")", "{": "}", "[": "]"}


class Literal(str):
    line = 0


class Group(list):
    """What stands in brackets: its arguments, each a list of literals, groups and other tokens."""

    name = ""


def tokens_of(source):
    line = 1
    for token in TOKEN.finditer(source):
        if token["literal"] is not None:
            literal = Literal(re.sub(r"\\(.)", lambda m: " " if m[1] in "nt" else m[1], token["literal"]))
            literal.line = line
            yield literal
        elif token["skip"] is None:
            yield token[0]
        line += token[0].count("\n")


def group_of(tokens, name="", end=None):
    """The group whose opening bracket has been read."""
    group, before = Group([[]]), ""
    group.name = name
    for token in tokens:
        literal = isinstance(token, Literal)
        if token == end and not literal:
            break
        if token == "," and not literal:
            group.append([])
        elif token in CLOSING and not literal:
            group[-1].append(group_of(tokens, before, CLOSING[token]))
        elif literal and group[-1] and isinstance(group[-1][-1], Literal):
            joined = Literal(group[-1][-1] + token)
            joined.line = group[-1][-1].line
            group[-1][-1] = joined
        else:
            group[-1].append(token)
        before = token
    return group


def is_prose(text):
    return sum(re.search("[A-Za-z]{2}", word) is not None for word in text.split()) > 1


def joined(group):
    """The literals of the arguments, with * for the others; where they begin."""
    pieces = [arg[0] if len(arg) == 1 and isinstance(arg[0], Literal) else "*" for arg in group]
    lines = [piece.line for piece in pieces if isinstance(piece, Literal)]
    return re.sub(r"\*+", "*", "".join(pieces)), min(lines, default=0)


def texts_in(group):
    """(text, line) of what is said anywhere in a group."""
    if group.name in SILENT:
        return
    joins = JOINS.fullmatch(group.name) is not None
    if joins or group.name == "WEFT_MARK":
        text, line = joined(group)
        if line and (is_prose(text) or not joins):
            yield text, line
    for arg in group:
        for part in arg:
            if isinstance(part, Group):
                yield from texts_in(part)
            elif isinstance(part, Literal) and is_prose(part) and not (joins and len(arg) == 1):
                yield str(part), part.line


def texts_of(root):
    """The line of each (path, text) of the library."""
    found = {}
    for folder in ("lib", "transports"):
        for source in sorted((root / folder).rglob("*.[ch]*")):
            path = str(source.relative_to(root))
            for text, line in texts_in(group_of(tokens_of(source.read_text()))):
                found.setdefault((path, text.strip("* ")), line)
    return found


def is_met(text, record):
    pieces = (PLACES.sub(".*", re.escape(piece)) for piece in text.split("*"))
    return re.search(".*".join(pieces), record) is not None


def read_list(lines):
    """{(path, text): (number of its line, whether it may be met)}"""
    entries, sometimes = {}, False
    for number, line in enumerate(lines, 1):
        if line.startswith("["):
            sometimes = line.startswith("[sometimes]")
        elif line and not line.startswith("#"):
            path, _, text = line.partition(": ")
            entries[path, text] = number, sometimes
    return entries


def violations(root, record, unreached):
    entries, texts = read_list(unreached), texts_of(root)
    for (path, text), line in texts.items():
        met, (number, sometimes) = is_met(text, record), entries.get((path, text), (0, False))
        if met and number and not sometimes:
            yield f"{NOTE}tests/house/marks.unreached:{number}: a test meets this, so it needs no entry: {path}: {text}"
        elif not met and not number:
            yield f"{path}:{line}: no test meets: {path}: {text}"
    for (path, text), (number, _) in entries.items():
        if (path, text) not in texts:
            yield f"tests/house/marks.unreached:{number}: there is no such text: {path}: {text}"


def main(root, record):
    unreached = pathlib.Path(__file__).with_name("marks.unreached").read_text().splitlines()
    found = list(violations(pathlib.Path(root).resolve(), pathlib.Path(record).read_text(errors="replace"), unreached))
    print("\n".join(found) or f"tests meet all texts but the {len(read_list(unreached))} in marks.unreached")
    return 0 if all(line.startswith(NOTE) for line in found) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

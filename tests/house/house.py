# SPDX-License-Identifier: Apache-2.0
"""What the tree must be for its map to be true. usage: house.py ROOT

docs/architecture.md has a table of rooms: | `folder/` | rooms that it may use | what lives there |. Said of each violation, a
line each: an include that the table does not allow, a room that it does not list or lists above what it uses, a file whose
namespace is not its room's, and a type that is defined twice.
"""

import collections
import pathlib
import re
import sys

ROW = re.compile(r"^\| `([\w/.-]+?)/?` \| (.*?) \|")
INCLUDE = re.compile(r'^#include "(.+?)"', re.M)
NAMESPACE = re.compile(r"^namespace (weft.*?) \{", re.M)
TYPE = re.compile(r"^(?:class|struct|union|enum class|enum struct|enum)(?: alignas\(\w+\))? (\w+)(?: final)?(?: :[^:{;].*)? \{", re.M)
SOURCES = ("*.h", "*.hpp", "*.cpp", "*.c")
MODULES = ("lib", "transports", "tests/verify")  # where each room has a namespace


def rooms_of(document):
    """The table's rooms in its order, each with those that it may use."""
    rows = (ROW.match(line) for line in document.splitlines())
    return {row[1]: re.findall(r"`(.+?)`", row[2]) for row in rows if row}


def sources_of(root, folder):
    return sorted(path for pattern in SOURCES for path in (root / folder).rglob(pattern))


def room_of(path, rooms):
    """The innermost room of the table that holds a file, by its path from the root."""
    inside = [room for room in rooms if path.startswith(room + "/")]
    return max(inside, key=len, default=None)


def find_include(root, source, name):
    """The file of the project that an include names, from the root; None for those of others."""
    for folder in (root / "lib", root, root / "include", source.parent):
        if (folder / name).is_file():
            return str((folder / name).resolve().relative_to(root))
    return None


def check_order(rooms):
    above = set()
    for room, uses in rooms.items():
        above.add(room)
        for used in uses:
            if used not in rooms:
                yield f"docs/architecture.md: {room} may use {used}, which is no room"
            elif used in above:
                yield f"docs/architecture.md: {room} may use {used}, which does not stand below it"


def check_includes(root, rooms):
    for folder in (*MODULES, "perf", "tools", "bindings"):
        for source in sources_of(root, folder):
            path = str(source.relative_to(root))
            room = room_of(path, rooms)
            if room is None:
                yield f"{path}: no room of docs/architecture.md"
                continue
            for name in INCLUDE.findall(source.read_text()):
                used = room_of(find_include(root, source, name) or path, rooms)
                if used not in (room, *rooms[room]):
                    yield f"{path}: includes {name}, but {room} may not use {used}"


def namespace_of(room):
    last = room.split("/")[-1]
    return {"base": "weft::inline base", "transports": "weft::transport"}.get(last, f"weft::{last}")


def check_namespaces(root, rooms):
    for folder in MODULES:
        for source in sources_of(root, folder):
            path = str(source.relative_to(root))
            wanted = namespace_of(room_of(path, rooms) or path)
            opened = NAMESPACE.findall(source.read_text())
            if opened and not any(n == wanted or n.startswith(wanted + "::") for n in opened):
                yield f"{path}: opens {', '.join(sorted(set(opened)))}, not {wanted}"


def types_of(text):
    """(namespace, name) of the types that a file defines for others to see: not those of unnamed namespaces."""
    inside, hidden = "", False
    for line in text.splitlines():
        if line.startswith("namespace {"):
            hidden = True
        elif line.startswith("}  // namespace"):
            hidden = hidden and line != "}  // namespace"
        elif found := re.match(r"namespace ([\w: ]+) \{", line):
            inside = found[1].replace("inline ", "")
        elif (found := TYPE.match(line)) and not hidden:
            yield inside, found[1]


def check_types(root):
    where = collections.defaultdict(list)
    for folder in ("include", *MODULES):
        for source in sources_of(root, folder):
            for defined in types_of(source.read_text()):
                where[defined].append(str(source.relative_to(root)))
    for (space, name), paths in sorted(where.items()):
        if len(paths) > 1:
            yield f"{space}::{name} is defined in {' and in '.join(paths)}"


def violations(root):
    rooms = rooms_of((root / "docs/architecture.md").read_text())
    yield from check_order(rooms)
    yield from check_includes(root, rooms)
    yield from check_namespaces(root, rooms)
    yield from check_types(root)


if __name__ == "__main__":
    found = list(violations(pathlib.Path(sys.argv[1]).resolve()))
    print("\n".join(found) or "the house is as its map says")
    sys.exit(1 if found else 0)

# SPDX-License-Identifier: Apache-2.0
"""weft_amalgamated.h and weft_amalgamated.cpp: weft for the ranks of one host, for projects that copy sources.
usage: amalgamate.py FOLDER

The header is weft.h. The source is every file of ROOMS after the headers that it includes, each once. A file of overlay/ takes
the place of the one with its name in lib/ or of another project: there is what libraries do for libweft.
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SEARCHED = (HERE / "overlay", ROOT / "lib", ROOT, ROOT / "include")

# Folders, lowest first, and the sources that are wanted of them: all, these, or all but these.
ALL = None
ROOMS = {
    "lib/base": ALL,
    "lib/forest": ALL,
    "lib/schedule": ALL,
    "lib/schedule/algorithms": ALL,
    "lib/formats": {"read"},
    "lib/topology": {"cores", "fabric", "fabric_file", "host", "numa"},
    "lib/reduce": {"reduce", "store_choice"},
    "lib/tune": ALL,
    "lib/plan": ALL,
    "transports": ALL,
    "transports/mapped": ALL,
    "transports/local": ALL,
    "transports/shm": ALL,
    "lib/watch": ALL,
    "lib/engine": ALL,
    "lib/net": ALL,
    "lib/bootstrap": ALL,
    "lib/launch": ALL,
    "lib/control": ALL,
    "lib/comm": ALL,
    "lib/api": {"blocks", "check", "collectives", "comm", "entry", "exchanges", "info", "issue", "memory", "registration",
                "streams", "submit", "together", "trace"},
}
# Compiled once for each instruction set, with the headers that end in -inl.h.
KERNELS = ("floats", "integers", "copy")
TARGETS = (("HWY_AVX3", "__x86_64__"), ("HWY_AVX2", "__x86_64__"), ("HWY_EMU128", None))

INCLUDE = re.compile(r'#include ["<](.+?)[">]')
DROPPED = re.compile(r"#pragma once|// SPDX-License-Identifier")


class Source:
    """The text as it grows, and what is in it already."""

    def __init__(self):
        self.text, self.system, self.seen = [], set(), {ROOT / "include/weft/weft.h"}

    def add(self, path):
        """A file after what it includes."""
        if path in self.seen:
            return
        self.seen.add(path)
        lines, body, depth = path.read_text().splitlines(), [], 0
        for line in lines:
            depth += line.startswith("#if") - line.startswith("#endif")
            include = INCLUDE.match(line)
            found = include and find(include[1], path)
            if found:
                self.add(found)
            elif include and (depth == 0 or path.stem.endswith("-inl")):
                self.system.add(include[1])
            elif not DROPPED.match(line):
                body.append(line)
        self.text += [f"// ---- {path.relative_to(ROOT)}", ""] + body + [""]

    def add_kernels(self):
        for number, (target, condition) in enumerate(TARGETS):
            once = {path for path in self.seen if path.stem.endswith("-inl") or path.name == "highway.h"}
            self.seen -= once
            self.text += [f"#if defined({condition})"] if condition else []
            self.text += ["#undef HWY_TARGET", f"#define HWY_TARGET {target}"]
            self.text += ["#undef HWY_TARGET_TOGGLE"] + (["#define HWY_TARGET_TOGGLE"] if number % 2 else [])
            self.text += ["#undef HWY_ONCE", f"#define HWY_ONCE {int(target == TARGETS[-1][0])}", ""]
            for name in KERNELS:
                self.seen.discard(ROOT / f"lib/reduce/{name}.cpp")
                self.add(ROOT / f"lib/reduce/{name}.cpp")
            self.text += [f"#endif  // {condition}", ""] if condition else []


def find(name, includer):
    folders = (*SEARCHED, includer.parent)
    return next((folder / name for folder in folders if (folder / name).is_file()), None)


def sources():
    for folder, wanted in ROOMS.items():
        for path in sorted((ROOT / folder).glob("*.cpp")):
            if (wanted is ALL or path.stem in wanted) and path.stem not in KERNELS:
                yield find(str(path.relative_to(ROOT)).removeprefix("lib/"), path)


def amalgamated():
    """The text of both files."""
    public = (ROOT / "include/weft/weft.h").read_text()
    version = ".".join(re.findall(r"#define WEFT_(?:MAJOR|MINOR|PATCH) (\d+)", public))
    banner = ["SPDX-License-Identifier: Apache-2.0"]
    banner += (HERE / "banner.txt").read_text().rstrip().replace("VERSION", version).splitlines()
    source = Source()
    for path in sources():
        source.add(path)
    source.add_kernels()
    head = ["// " + line if line else "//" for line in banner] + ["", '#include "weft_amalgamated.h"', ""]
    head += [f"#include <{name}>" for name in sorted(source.system)] + [""]
    header = ["/*"] + [(" * " + line).rstrip() for line in banner] + [" */", ""]
    return "\n".join(header) + public.partition("\n")[2], re.sub(r"\n{3,}", "\n\n", "\n".join(head + source.text))


def main(arguments):
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: amalgamate.py FOLDER: weft_amalgamated.h and weft_amalgamated.cpp are written there", file=sys.stderr)
        return 64
    folder = pathlib.Path(arguments[0])
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for suffix, text in zip(("h", "cpp"), amalgamated()):
            (folder / f"weft_amalgamated.{suffix}").write_text(text)
    except OSError as error:
        print(f"amalgamate: {error.filename}: {error.strerror}; fix: a folder that can be written to", file=sys.stderr)
        return 65
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

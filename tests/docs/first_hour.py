# SPDX-License-Identifier: Apache-2.0
"""first_hour.py ROOT CMAKE BUILD: the commands of the page's hour in C succeed, and print what it shows."""

import os
import re
import socket
import subprocess
import sys
import tempfile

SECTION = "## A program in C"


def blocks(page):
    """Of the section: (language, text)."""
    section = page[page.index(SECTION):]
    section = section[: section.index("\n## ", len(SECTION))]
    return re.findall(r"^```(\w+)\n(.*?)^```$", section, re.M | re.S)


def shown_in(line, output):
    pattern = ".*".join(re.escape(part) for part in line.split("…"))
    return re.search(f"^{pattern}$", output, re.M)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def main(root, cmake, build):
    with tempfile.TemporaryDirectory() as folder:
        weft = os.path.join(folder, "weft")
        subprocess.run([cmake, "--install", build, "--prefix", weft], check=True, stdout=subprocess.DEVNULL)
        os.symlink(os.path.join(root, "examples"), os.path.join(folder, "examples"))
        lib = os.path.join(weft, "lib")
        env = os.environ | {"PATH": f"{weft}/bin:{os.environ['PATH']}", "LD_LIBRARY_PATH": lib,
                            "PKG_CONFIG_PATH": f"{lib}/pkgconfig", "HOME": folder}
        with open(os.path.join(root, "docs/first-hour.md"), encoding="utf-8") as page:
            all_blocks = blocks(page.read())
        # One shell for all, as variables are exported.
        script = "\n".join(text for language, text in all_blocks if language == "sh")
        script = script.replace("29600", str(free_port()))  # others test as well
        ran = subprocess.run(["bash", "-e", "-c", script], cwd=folder, env=env, text=True, timeout=100,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        shown = [text for language, text in all_blocks if language == "text"]
        missing = [line for text in shown for line in text.splitlines() if not shown_in(line, ran.stdout)]
        if ran.returncode != 0 or missing or not shown:
            sys.exit(f"exit code {ran.returncode}; not printed: {missing}; what was printed:\n{ran.stdout}")


main(*sys.argv[1:])

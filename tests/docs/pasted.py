# SPDX-License-Identifier: Apache-2.0
"""pasted.py ROOT CMAKE BUILD: the doors of C and MPI: the commands that these sections show succeed, and print what is shown."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

# (page, section, what must be there for it), in the order in which they are read.
SECTIONS = [
    ("README.md", "A program", "cc"),
    ("README.md", "Starting ranks", "mpirun"),
    ("README.md", "MPI programs", "mpicc"),
    ("docs/first-hour.md", "A program in C", "cc"),
    ("docs/first-hour.md", "An MPI program", "mpicc"),
]
DONE = re.compile(r"^(\./dev build|cmake --install .*)$", re.M)  # here, before all of them
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}


def blocks(root, page, title):
    """Of the section: (language, text)."""
    with open(os.path.join(root, page), encoding="utf-8") as file:
        section = re.search(f"^## {title}$(.*?)(?=^## )", file.read(), re.M | re.S)[1]
    return re.findall(r"^```(\w+)\n(.*?)^```$", section, re.M | re.S)


def shown_in(line, output):
    pattern = ".*".join(re.escape(part) for part in line.split("…"))
    return re.search(f"^{pattern}$", output, re.M)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def follow(root, page, title, folder, env):
    """In one shell, as variables are exported."""
    all_blocks = blocks(root, page, title)
    script = DONE.sub("", "\n".join(text for language, text in all_blocks if language == "sh"))
    for port in ("29500", "29600"):  # others test as well
        script = script.replace(port, str(free_port()))
    ran = subprocess.run(["bash", "-e", "-c", script], cwd=folder, env=env, text=True, timeout=100,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    shown = [text for language, text in all_blocks if language == "text"]
    missing = [line for text in shown for line in text.splitlines() if not shown_in(line, ran.stdout)]
    if ran.returncode != 0 or missing or not script.strip():
        sys.exit(f"{page}, {title}: exit code {ran.returncode}; not printed: {missing}; what was printed:\n{ran.stdout}")


def main(root, cmake, build):
    with tempfile.TemporaryDirectory() as folder:
        weft = os.path.join(folder, "weft")
        subprocess.run([cmake, "--install", build, "--prefix", weft], check=True, stdout=subprocess.DEVNULL)
        os.symlink(os.path.join(root, "examples"), os.path.join(folder, "examples"))
        lib = os.path.join(weft, "lib")
        env = os.environ | AS_ROOT | {"PATH": f"{weft}/bin:{os.environ['PATH']}", "LD_LIBRARY_PATH": lib,
                                      "PKG_CONFIG_PATH": f"{lib}/pkgconfig", "HOME": folder}
        for page, title, program in SECTIONS:
            if shutil.which(program):
                follow(root, page, title, folder, env)


main(*sys.argv[1:])

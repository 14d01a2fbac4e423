# SPDX-License-Identifier: Apache-2.0
"""Finds and opens libweft.so: WEFT_LIBRARY, else beside this package, else the system's."""

from __future__ import annotations

import ctypes
import os
import sysconfig

from ._version import VERSION

SONAME = "libweft.so.0"


def candidates() -> list[str]:
    """Paths to try, in order. One that is asked for by name is the only one."""
    asked = os.environ.get("WEFT_LIBRARY")
    if asked:
        return [asked]
    here = os.path.dirname(os.path.abspath(__file__))
    built = os.path.join(here, "..", "..", "lib", SONAME)  # BUILD/python/weft, BUILD/lib
    prefix = os.path.join(here, "..", "..", "..")  # PREFIX/lib/python3/dist-packages/weft
    multiarch = sysconfig.get_config_var("MULTIARCH") or ""
    installed = [os.path.join(prefix, SONAME), os.path.join(prefix, multiarch, SONAME)]
    return [path for path in (built, *installed) if os.path.exists(path)] + [SONAME]


def load() -> ctypes.CDLL:
    """The library, opened; ImportError says what was tried and what to do."""
    failures = []
    for path in candidates():
        try:
            library = ctypes.CDLL(path, use_errno=False)
        except OSError as error:
            failures.append(f"{path}: {error}")
            continue
        refuse_other_version(library, path)
        return library
    raise ImportError(
        "libweft.so was not found; fix: install libweft0, or set WEFT_LIBRARY to its path. Tried: "
        + "; ".join(failures)
    )


def refuse_other_version(library: ctypes.CDLL, path: str) -> None:
    """Package and library are of one release: structures grow from one to the next."""
    code = ctypes.c_int()
    library.weftGetVersion(ctypes.byref(code))
    found = (code.value // 10000, code.value // 100 % 100)
    if found != VERSION[:2]:
        wanted = f"{VERSION[0]}.{VERSION[1]}"
        raise ImportError(
            f"{path} is weft {found[0]}.{found[1]}, but this Python package is for {wanted}; "
            "fix: install both of one release, or correct WEFT_LIBRARY"
        )

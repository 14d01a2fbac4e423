# SPDX-License-Identifier: Apache-2.0
"""Every example of the package and of its page runs and prints what it says."""

import doctest
import importlib
import pathlib
import pkgutil
import unittest

import weft

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/python.md"
NEEDS_TORCH = {"torch_optimizer", "_torch_door"}


def load_tests(_, tests, __):
    for module in pkgutil.iter_modules(weft.__path__):
        if module.name not in NEEDS_TORCH and not module.name.startswith("_torch"):
            tests.addTests(doctest.DocTestSuite(importlib.import_module(f"weft.{module.name}")))
    if PAGE.exists():
        tests.addTests(doctest.DocFileSuite(str(PAGE), module_relative=False))
    return tests


if __name__ == "__main__":
    unittest.main()

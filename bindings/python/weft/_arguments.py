# SPDX-License-Identifier: Apache-2.0
"""Arguments of callers as the library takes them. ctypes cuts what does not fit: here it is refused."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from .errors import refuse

INT_MAX = 2**31 - 1  #: of C
SIZE_MAX = 2**63 - 1  #: of what can be in memory


def whole(call: str, what: str, value: Any, least: int = -INT_MAX, most: int = INT_MAX) -> int:
    """A whole number; 2.0 is one, too."""
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        number = least - 1
    if not least <= number <= most or number != value:
        refuse(call, f"{what} is {value!r}", f"pass a whole number from {least} to {most}")
    return number


def rank(call: str, what: str, value: Any, ranks: int) -> int:
    """One of `ranks`."""
    if type(value) is int and 0 <= value < ranks:
        return value
    number = _index(value)
    if number is None:
        refuse(call, f"{what} is {value!r}, no whole number", "pass a rank, as int(...)")
    if not 0 <= number < ranks:
        refuse(call, f"{what} is {number}", f"pass a rank from 0 to {ranks - 1}")
    return number


def numbers(call: str, what: str, values: Any, ranks: int) -> list[int]:
    """Counts, displacements: one a rank."""
    try:
        found = [_index(value) for value in values]
    except TypeError:
        found = []
    if len(found) != ranks or not all(n is not None and 0 <= n <= SIZE_MAX for n in found):
        said = found if found and None not in found else repr(values)
        refuse(call, f"{what} is {said} for {ranks} ranks", f"pass {ranks} whole numbers from 0 on")
    return found  # type: ignore[return-value]


def text(call: str, what: str, value: Any) -> bytes:
    """As C has it."""
    if isinstance(value, str) and "\0" not in value:
        try:
            return value.encode()
        except UnicodeEncodeError:
            pass
    refuse(call, f"{what} is {value!r}", "pass a str that UTF-8 can write, without NUL")


def fill(call: str, structure: Any, names: Mapping[str, str], values: Any) -> None:
    """structure.FIELD = values.NAME, of each pair NAME: FIELD: numbers and booleans."""
    for name, field in names.items():
        value = getattr(values, name)
        try:
            setattr(structure, field, value)
        except TypeError:
            refuse(call, f"{name} is {value!r}", "pass a number, or of a choice True or False")
        held = getattr(structure, field)
        if isinstance(held, int) and held != value:
            refuse(call, f"{name} is {value!r}, which does not fit", "pass a smaller one, from 0 on")


def _index(value: Any) -> int | None:
    try:
        return operator.index(value)
    except TypeError:
        return None

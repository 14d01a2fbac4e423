# SPDX-License-Identifier: Apache-2.0
"""The ctypes declarations are those of the headers: functions, structures and enumerators."""

import ctypes
import pathlib
import re
import unittest

import weft
from weft import _c, _shard_c

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOT_BOUND = {
    "weftCommInitRank": "weftCommInitRankConfig with no config",
    "weftCommInitAll": "weftCommInitAllConfig with no config",
    "weftExplain": "the first line of weftCommExplain",
}
STRUCTURES = {
    "weftConfig_t": "Config",
    "weftOpts_t": "Opts",
    "weftErrorInfo_t": "ErrorInfo",
    "weftMemStats_t": "MemStats",
    "weftOpSpan_t": "OpSpan",
    "weftUniqueId": "UniqueId",
}
SHARD_STRUCTURES = {
    "weftParam_t": "Param",
    "weftShardConfig_t": "ShardConfig",
    "weftShardInfo_t": "ShardInfo",
    "weftStepArgs_t": "StepArgs",
    "weftStepStats_t": "StepStats",
}
INTEGERS = ("int", "weftResult_t", "weftDataType_t", "weftRedOp_t")
HANDLES = ("weftComm_t", "weftStream_t", "weftEvent_t", "weftShard_t", "weftStepFn", "void*")
PLAIN = {
    **dict.fromkeys(INTEGERS, ctypes.c_int),
    **dict.fromkeys(HANDLES, ctypes.c_void_p),
    "unsigned int": ctypes.c_uint,
    "unsigned": ctypes.c_uint,
    "size_t": ctypes.c_size_t,
    "uint64_t": ctypes.c_uint64,
    "uint32_t": ctypes.c_uint32,
    "int64_t": ctypes.c_int64,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "char*": ctypes.c_char_p,
}


def header(name):
    text = (ROOT / "include/weft" / name).read_text()
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def ctype(declared, structures, module):
    """What ctypes calls a C type. A function pointer is a pointer."""
    if "(*" in declared:
        return module.StreamFn if declared == "void (*)(void*)" else ctypes.c_void_p
    name = re.sub(r"\bconst\b|\bWEFT_OR_NULL\b", "", declared)
    name = re.sub(r"\s+", " ", name).strip().replace(" *", "*")
    if name in structures:
        return getattr(module, structures[name])
    if name in PLAIN:
        return PLAIN[name]
    assert name.endswith("*"), f"unknown type {declared!r}"
    return ctypes.POINTER(ctype(name[:-1], structures, module))


def without_name(parameter):
    """The type of `const void* sendbuff` or `void (*fn)(void*)`."""
    parameter = re.sub(r"\s*WEFT_OR_NULL", "", parameter.strip())
    if "(*" in parameter:
        return re.sub(r"\(\*\w+\)", "(*)", parameter)
    return re.match(r"(.*?)\w+$", parameter, re.S)[1]


def parameters(text):
    """Split at the commas that are in no parentheses."""
    parts = re.split(r",(?![^(]*\))", text)
    return [] if text.strip() in ("", "void") else [without_name(part) for part in parts]


def functions(text):
    """Name: (what it returns, what it takes)."""
    found = re.finditer(r"WEFT_API\s+([\w\s*]+?)\s*\b(weft\w+)\((.*?)\);", text, re.S)
    return {match[2]: (match[1], parameters(match[3])) for match in found}


def fields(text, name):
    """(name, C type) of the members of a structure."""
    body = re.search(r"typedef struct \{([^{}]*)\} " + name + ";", text, re.S)[1]
    for member in body.split(";"):
        member = " ".join(member.split())
        if "(*" in member:
            yield re.search(r"\(\*(\w+)\)", member)[1], "void*"
        elif "[" in member:
            yield re.match(r".*?(\w+)\[", member)[1], None
        elif member:
            base, names = re.match(r"(.*?[\s*])(\w+(?:, \w+)*)$", member).groups()
            for each in names.split(", "):
                yield each, base


def values(text, name):
    """Name: value of an enumeration."""
    body = re.search(r"typedef enum \{([^{}]*)\} " + name + ";", text, re.S)[1]
    return {key: int(value, 0) for key, value in re.findall(r"(\w+) = (\w+)", body)}


def spelled(name):
    """weftInvalidArgument is INVALID_ARGUMENT."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.removeprefix("weft")).upper()


def function_complaints(text, module, structures, not_bound):
    declared = functions(text)
    for name, (returns, takes) in declared.items():
        if name in module.SIGNATURES:
            wanted = [ctype(each, structures, module) for each in takes]
            if wanted != module.SIGNATURES[name]:
                yield f"{name} takes {wanted}"
            if ctype(returns, structures, module) != _c.RETURNS.get(name, ctypes.c_int):
                yield f"{name} returns {returns}"
        elif name not in not_bound:
            yield f"{name} is neither bound nor listed with a reason"
    for name in {*module.SIGNATURES, *not_bound} - declared.keys():
        yield f"{name} is not in the header"


def structure_complaints(text, module, structures):
    for name, bound in structures.items():
        has = getattr(module, bound)._fields_
        wanted = list(fields(text, name))
        if [each for each, _ in has] != [each for each, _ in wanted]:
            yield f"{name} has {[each for each, _ in wanted]}"
            continue
        for (member, kind), (_, declared) in zip(has, wanted):
            if declared and kind != ctype(declared, structures, module):
                yield f"{name}.{member} is {declared}"


class Header(unittest.TestCase):
    def setUp(self):
        self.text = header("weft.h")

    def test_every_function_is_bound_as_it_is_declared(self):
        self.assertGreater(len(functions(self.text)), 50)
        self.assertEqual(list(function_complaints(self.text, _c, STRUCTURES, NOT_BOUND)), [])

    def test_structures_have_the_same_members(self):
        self.assertEqual(list(structure_complaints(self.text, _c, STRUCTURES)), [])

    def test_drift_is_noticed(self):
        drifts = {
            "weftBarrier(weftComm_t comm,": "weftBarrier(int more, weftComm_t comm,",
            "weftCommAbort(": "weftCommAbandon(",
            "size_t sendcount,": "int sendcount,",
            "const char* weftAlgorithms": "weftResult_t weftAlgorithms",
        }
        for old, new in drifts.items():
            self.assertIn(old, self.text)
            drifted = self.text.replace(old, new)
            self.assertTrue(list(function_complaints(drifted, _c, STRUCTURES, NOT_BOUND)), new)
        for old, new in {"int timeoutMs;": "long timeoutMs;", "int pid;": "int pids;"}.items():
            drifted = self.text.replace(old, new)
            with self.subTest(new):
                try:
                    self.assertTrue(list(structure_complaints(drifted, _c, STRUCTURES)))
                except AssertionError as error:
                    self.assertIn("unknown type", str(error))

    def test_enumerators_are_the_same(self):
        kinds = {
            "weftResult_t": weft.Result,
            "weftDataType_t": weft.DataType,
            "weftRedOp_t": weft.Op,
        }
        for name, kind in kinds.items():
            wanted = {spelled(key): value for key, value in values(self.text, name).items()}
            ends = ("NUM_RESULTS", "NUM_TYPES", "NUM_OPS", "MAX_RED_OP")
            aliases = ("CHAR", "INT", "HALF", "FLOAT", "DOUBLE")
            wanted = {k: v for k, v in wanted.items() if k not in (*ends, *aliases)}
            self.assertEqual({each.name: each.value for each in kind}, wanted)

    def test_constants_are_the_same(self):
        constants = dict(re.findall(r"#define (WEFT_\w+) \(?\(?(?:int\)?\))?(-?\w+)", self.text))
        for name in ("CONFIG_MAGIC", "OPTS_MAGIC", "ERROR_INFO_MAGIC", "UNIQUE_ID_BYTES"):
            self.assertEqual(int(constants[f"WEFT_{name}"].rstrip("u"), 0), getattr(_c, name))
        self.assertEqual(int(constants["WEFT_SPLIT_NOCOLOR"]), _c.SPLIT_NOCOLOR)
        release = [constants[f"WEFT_{part}"] for part in ("MAJOR", "MINOR", "PATCH")]
        self.assertEqual(weft.__version__, ".".join(release))


class ShardHeader(unittest.TestCase):
    def setUp(self):
        self.text = header("shard.h")

    def test_every_function_is_bound_as_it_is_declared(self):
        self.assertGreater(len(functions(self.text)), 15)
        self.assertEqual(list(function_complaints(self.text, _shard_c, SHARD_STRUCTURES, {})), [])

    def test_structures_have_the_same_members(self):
        self.assertEqual(list(structure_complaints(self.text, _shard_c, SHARD_STRUCTURES)), [])

    def test_enumerators_are_the_same(self):
        for name, kind, prefix in (
            ("weftOptimizer_t", _shard_c.Optimizer, "OPT_"),
            ("weftRounding_t", _shard_c.Rounding, "ROUND_"),
        ):
            found = values(self.text, name).items()
            wanted = {spelled(key).removeprefix(prefix): value for key, value in found}
            self.assertEqual({each.name: each.value for each in kind}, wanted)

    def test_constants_are_the_same(self):
        constants = dict(re.findall(r"#define WEFT_(\w+) (\w+)", self.text))
        for name, ours in {
            "SHARD_MAGIC": _shard_c.MAGIC,
            "PARAM_FROZEN": _shard_c.PARAM_FROZEN,
            "PARAM_NO_DECAY": _shard_c.PARAM_NO_DECAY,
            "PARAM_COPY": _shard_c.PARAM_COPY,
            "PARAM_SPLIT": _shard_c.PARAM_SPLIT,
        }.items():
            self.assertEqual(int(constants[name].rstrip("u"), 0), ours)

    def test_defaults_are_those_of_the_initializers(self):
        initializers = re.findall(
            r"#define WEFT_\w+_INITIALIZER\s*(?:\\\s*)+\{(.*?)\}", self.text, re.S
        )
        names = {**{k.name: k.value for k in weft.DataType}, "NULL": 0}
        for text, made in zip(initializers, (_shard_c.ShardConfig(), _shard_c.StepArgs())):
            words = [word.strip() for word in text.replace("\\", " ").split(",")][3:]
            wanted = [names.get(spelled(word), None) for word in words]
            wanted = [
                _number(word) if value is None else value for word, value in zip(words, wanted)
            ]
            ours = [getattr(made, name) or 0 for name, _ in made._fields_[3:]]
            self.assertEqual(ours, wanted)


def _number(word):
    known = {"weftOptAdamW": 0, "weftRoundNearest": 0, "NULL": 0}
    return known[word] if word in known else float(word)


if __name__ == "__main__":
    unittest.main()

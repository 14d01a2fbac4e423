# SPDX-License-Identifier: Apache-2.0
"""weft.h for ctypes: its enumerators, structures and functions, nothing more.

A test reads the header and compares, so a function that is added there is bound here or listed in
the test with a reason.
"""

from __future__ import annotations

import ctypes
import enum
from ctypes import POINTER, Structure, c_char, c_char_p, c_float, c_int, c_size_t
from ctypes import c_uint, c_uint32, c_uint64, c_void_p

from . import _library
from ._version import VERSION

VERSION_CODE = VERSION[0] * 10000 + VERSION[1] * 100 + VERSION[2]
UNDEF_INT = -(2**31)
SPLIT_NOCOLOR = -1
UNIQUE_ID_BYTES = 128
CONFIG_MAGIC = 0x77656674
OPTS_MAGIC = 0x6F707473
ERROR_INFO_MAGIC = 0x65727269


class Result(enum.IntEnum):
    """How a call ended: ``weftResult_t``."""

    SUCCESS = 0
    UNHANDLED_DEVICE_ERROR = 1
    SYSTEM_ERROR = 2
    INTERNAL_ERROR = 3
    INVALID_ARGUMENT = 4
    INVALID_USAGE = 5
    REMOTE_ERROR = 6
    IN_PROGRESS = 7
    TIMEOUT = 8
    MISMATCH = 9
    ABORTED = 10
    OUT_OF_MEMORY = 11
    AUTHENTICATION = 12


class DataType(enum.IntEnum):
    """What an element is: ``weftDataType_t``."""

    INT8 = 0
    UINT8 = 1
    INT32 = 2
    UINT32 = 3
    INT64 = 4
    UINT64 = 5
    FLOAT16 = 6
    FLOAT32 = 7
    FLOAT64 = 8
    BFLOAT16 = 9


class Op(enum.IntEnum):
    """How elements of different ranks become one: ``weftRedOp_t``."""

    SUM = 0
    PROD = 1
    MAX = 2
    MIN = 3
    AVG = 4
    BAND = 5
    BOR = 6
    BXOR = 7


class UniqueId(Structure):
    _fields_ = [("internal", c_char * UNIQUE_ID_BYTES)]


class Config(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("magic", c_uint),
        ("version", c_uint),
        ("timeoutMs", c_int),
        ("initTimeoutMs", c_int),
        ("commName", c_char_p),
        ("transport", c_char_p),
        ("reproducible", c_int),
        ("threads", c_int),
        ("parallelFor", c_void_p),
        ("parallelForContext", c_void_p),
        ("teamCalls", c_int),
        ("whileWaiting", c_void_p),
        ("whileWaitingContext", c_void_p),
    ]

    def __init__(self) -> None:
        super().__init__(ctypes.sizeof(Config), CONFIG_MAGIC, VERSION_CODE)
        self.timeoutMs = self.initTimeoutMs = UNDEF_INT
        self.reproducible = self.threads = self.teamCalls = UNDEF_INT


class Opts(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("magic", c_uint),
        ("version", c_uint),
        ("timeoutMs", c_int),
        ("algorithm", c_char_p),
        ("reproducible", c_int),
        ("label", c_char_p),
    ]

    def __init__(self) -> None:
        super().__init__(ctypes.sizeof(Opts), OPTS_MAGIC, VERSION_CODE)
        self.timeoutMs = self.reproducible = UNDEF_INT


class ErrorInfo(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("magic", c_uint),
        ("version", c_uint),
        ("result", c_int),
        ("rank", c_int),
        ("pid", c_int),
        ("port", c_int),
        ("host", c_char_p),
        ("device", c_char_p),
        ("call", c_char_p),
        ("message", c_char_p),
        ("fix", c_char_p),
        ("missingRanks", POINTER(c_int)),
        ("missingCount", c_int),
        ("variable", c_char_p),
    ]

    def __init__(self) -> None:
        super().__init__(ctypes.sizeof(ErrorInfo), ERROR_INFO_MAGIC, VERSION_CODE)
        self.rank = -1


class MemStats(Structure):
    _fields_ = [("size", c_size_t), ("shared", c_size_t), ("plans", c_size_t), ("other", c_size_t)]


class OpSpan(ctypes.Structure):
    _fields_ = [
        ("beginNs", c_uint64),
        ("endNs", c_uint64),
        ("bytes", c_uint64),
        ("segment", c_uint32),
        ("op", c_uint32),
        ("lane", c_uint32),
        ("kind", c_int),
        ("peer", c_int),
    ]


StreamFn = ctypes.CFUNCTYPE(None, c_void_p)

_comm = _stream = _event = _buffer = c_void_p
_sizes = POINTER(c_size_t)
_out_int, _out_handle = POINTER(c_int), POINTER(c_void_p)
_config, _opts = POINTER(Config), POINTER(Opts)
_type = _op = _result = c_int
_call = [_comm, _stream, _opts]  # what each collective ends with

# Name: what it takes. All return weftResult_t, but those of RETURNS.
SIGNATURES: dict[str, list] = {
    "weftGetVersion": [_out_int],
    "weftGetErrorString": [_result],
    "weftGetLastError": [_comm],
    "weftGetLastErrorInfo": [_comm, POINTER(ErrorInfo)],
    "weftGetUniqueId": [POINTER(UniqueId)],
    "weftCommInitRankConfig": [_out_handle, c_int, UniqueId, c_int, _config],
    "weftCommInitAllConfig": [_out_handle, c_int, _out_int, _config],
    "weftCommInitFromEnv": [_out_handle, _config],
    "weftCommSplit": [_comm, c_int, c_int, _out_handle, _config],
    "weftCommFinalize": [_comm],
    "weftCommDestroy": [_comm],
    "weftCommAbort": [_comm],
    "weftCommGetAsyncError": [_comm, _out_int],
    "weftCommCount": [_comm, _out_int],
    "weftCommUserRank": [_comm, _out_int],
    "weftCommLocalRank": [_comm, _out_int, _out_int],
    "weftCommMemStats": [_comm, POINTER(MemStats)],
    "weftCommEdges": [_comm, c_char_p, c_size_t],
    "weftCommExplain": [_comm, c_char_p, c_size_t, _type, _op, _opts, c_char_p, c_size_t],
    "weftCommTraceStart": [_comm, POINTER(OpSpan), c_size_t],
    "weftCommTraceStop": [_comm, _sizes],
    "weftOpName": [c_int],
    "weftAlgorithms": [c_char_p],
    "weftAllReduce": [_buffer, _buffer, c_size_t, _type, _op, *_call],
    "weftAllGather": [_buffer, _buffer, c_size_t, _type, *_call],
    "weftReduceScatter": [_buffer, _buffer, c_size_t, _type, _op, *_call],
    "weftAllGatherV": [_buffer, _buffer, _sizes, _sizes, _type, *_call],
    "weftReduceScatterV": [_buffer, _buffer, _sizes, _sizes, _type, _op, *_call],
    "weftGatherV": [_buffer, c_size_t, _buffer, _sizes, _sizes, _type, c_int, *_call],
    "weftScatterV": [_buffer, _sizes, _sizes, _buffer, c_size_t, _type, c_int, *_call],
    "weftAlltoAllV": [_buffer, _sizes, _sizes, _buffer, _sizes, _sizes, _type, *_call],
    "weftBroadcast": [_buffer, _buffer, c_size_t, _type, c_int, *_call],
    "weftReduce": [_buffer, _buffer, c_size_t, _type, _op, c_int, *_call],
    "weftGather": [_buffer, _buffer, c_size_t, _type, c_int, *_call],
    "weftScatter": [_buffer, _buffer, c_size_t, _type, c_int, *_call],
    "weftAlltoAll": [_buffer, _buffer, c_size_t, _type, *_call],
    "weftBarrier": _call,
    "weftSend": [_buffer, c_size_t, _type, c_int, *_call],
    "weftRecv": [_buffer, c_size_t, _type, c_int, *_call],
    "weftGroupStart": [],
    "weftGroupEnd": [],
    "weftRedOpCreatePreMulSum": [_out_int, c_void_p, _type, _comm],
    "weftRedOpDestroy": [_op, _comm],
    "weftMemAlloc": [_out_handle, c_size_t],
    "weftMemFree": [c_void_p],
    "weftPoolAlloc": [_out_handle, c_size_t],
    "weftPoolFree": [c_void_p],
    "weftCommRegister": [_comm, c_void_p, c_size_t, _out_handle],
    "weftCommDeregister": [_comm, c_void_p],
    "weftStreamCreate": [_out_handle],
    "weftStreamDestroy": [_stream],
    "weftStreamSynchronize": [_stream],
    "weftStreamQuery": [_stream],
    "weftStreamWaitEvent": [_stream, _event],
    "weftStreamCallback": [_stream, StreamFn, c_void_p],
    "weftEventCreate": [_out_handle],
    "weftEventDestroy": [_event],
    "weftEventRecord": [_event, _stream],
    "weftEventSynchronize": [_event],
    "weftEventQuery": [_event],
    "weftEventElapsedTime": [POINTER(c_float), _event, _event],
}
RETURNS = {"weftGetErrorString": c_char_p, "weftGetLastError": c_char_p, "weftAlgorithms": c_char_p, "weftOpName": c_char_p}


def declare(library: ctypes.CDLL, signatures: dict[str, list]) -> None:
    """Tells ctypes what the functions take and return."""
    for name, arguments in signatures.items():
        function = getattr(library, name)
        function.argtypes = arguments
        function.restype = RETURNS.get(name, c_int)


lib = _library.load()
declare(lib, SIGNATURES)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a .safetensors file without weft: by safetensors.torch where that is installed, else by the
format's description alone. Prints which, then of each tensor name, type, shape and the
SHA-256 of its values as float32; the file's metadata come last."""
import hashlib
import json
import struct
import sys


def plain(path):
    with open(path, "rb") as file:
        content = file.read()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8:8 + length])
    metadata = header.pop("__metadata__", {})
    data = content[8 + length:]
    read, ends = {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        assert begin == ends, f"a hole before {name}"
        ends, raw, kind = end, data[begin:end], entry["dtype"]
        if kind == "BF16":  # the upper half of a float32
            raw = b"".join(b"\0\0" + raw[i:i + 2] for i in range(0, len(raw), 2))
        code = "e" if kind == "F16" else "f"
        values = [x for (x,) in struct.iter_unpack("<" + code, raw)]
        read[name] = (kind, entry["shape"], values)
    assert ends == len(data), "a hole at the end"
    return "plain", read, metadata


def reference(path):
    import torch
    from safetensors import safe_open

    kinds = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16"}
    with safe_open(path, framework="pt") as file:
        read = {}
        for name in file.keys():
            tensor = file.get_tensor(name)
            read[name] = (kinds[tensor.dtype], list(tensor.shape), tensor.float().flatten().tolist())
        return "safetensors", read, file.metadata() or {}


def main(path):
    try:
        reader, read, metadata = reference(path)
    except ImportError:
        reader, read, metadata = plain(path)
    print(reader)
    for name, (kind, shape, values) in sorted(read.items()):
        raw = struct.pack(f"<{len(values)}f", *values)
        print(name, kind, "x".join(map(str, shape)), hashlib.sha256(raw).hexdigest())
    for key, value in sorted(metadata.items()):
        print("metadata", key, value)


main(sys.argv[1])

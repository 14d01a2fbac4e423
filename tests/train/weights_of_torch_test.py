# SPDX-License-Identifier: Apache-2.0
"""Weights that torch has saved, trained on by weft-train and read by torch again. usage: weights_of_torch_test.py WEFT_TRAIN

The models here are written a second time, from the tensors of Hugging Face's state dicts as their layers use them.
"""

import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import torch
except ImportError:
    print("skipped: there is no torch for this Python (python3-torch)")
    sys.exit(77)

from torch.nn.functional import cross_entropy, gelu, layer_norm, linear

LAYERS, HIDDEN, HEADS, LENGTH, WORDS = 2, 32, 2, 16, 256
TEXT = b"Seventeen bytes.."  # one sample, so that its loss is that of every step
FLAGS = "--layers 2 --hidden 32 --heads 2 --seq 16 --steps 1 --batch 1 --lr 0 --threads 1 --quiet"


def drawn(*shape):
    return torch.randn(*shape) * 0.2


def norm_of(name):
    return {f"{name}.weight": 1 + drawn(HIDDEN), f"{name}.bias": drawn(HIDDEN)}


def gpt2():
    """A GPT2LMHeadModel's, whose matrices are [inputs, outputs], with a head of its own."""
    state = {"transformer.wte.weight": drawn(WORDS, HIDDEN), "transformer.wpe.weight": drawn(LENGTH, HIDDEN)}
    for i in range(LAYERS):
        block = f"transformer.h.{i}."
        state |= norm_of(block + "ln_1") | norm_of(block + "ln_2")
        for name, inputs, outputs in (("attn.c_attn", 1, 3), ("attn.c_proj", 1, 1), ("mlp.c_fc", 1, 4), ("mlp.c_proj", 4, 1)):
            state[f"{block}{name}.weight"] = drawn(inputs * HIDDEN, outputs * HIDDEN)
            state[f"{block}{name}.bias"] = drawn(outputs * HIDDEN)
        state[block + "attn.bias"] = torch.ones(1, 1, LENGTH, LENGTH, dtype=torch.bool).tril()
    return state | norm_of("transformer.ln_f") | {"lm_head.weight": drawn(WORDS, HIDDEN)}


def neox():
    """A GPTNeoXForCausalLM's."""
    state = {"gpt_neox.embed_in.weight": drawn(WORDS, HIDDEN), "embed_out.weight": drawn(WORDS, HIDDEN)}
    for i in range(LAYERS):
        block = f"gpt_neox.layers.{i}."
        state |= norm_of(block + "input_layernorm") | norm_of(block + "post_attention_layernorm")
        for name, outputs, inputs in (
            ("attention.query_key_value", 3, 1),
            ("attention.dense", 1, 1),
            ("mlp.dense_h_to_4h", 4, 1),
            ("mlp.dense_4h_to_h", 1, 4),
        ):
            state[f"{block}{name}.weight"] = drawn(outputs * HIDDEN, inputs * HIDDEN)
            state[f"{block}{name}.bias"] = drawn(outputs * HIDDEN)
        state[block + "attention.rotary_emb.inv_freq"] = torch.ones(2)
    return state | norm_of("gpt_neox.final_layer_norm")


def attend(query, key, value):
    """Of [heads, length, width]."""
    scores = query @ key.transpose(1, 2) / math.sqrt(query.shape[-1])
    future = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
    mixed = scores.masked_fill(future, -math.inf).softmax(-1) @ value
    return mixed.transpose(0, 1).reshape(LENGTH, HIDDEN)


def heads_of(x):
    return x.view(LENGTH, HEADS, -1).transpose(0, 1)


def gpt2_logits(state, tokens):
    def at(name):
        return state["transformer." + name].float()

    def norm(x, name):
        return layer_norm(x, (HIDDEN,), at(name + ".weight"), at(name + ".bias"))

    def conv1d(x, name):
        return x @ at(name + ".weight") + at(name + ".bias")

    x = at("wte.weight")[tokens] + at("wpe.weight")
    for i in range(LAYERS):
        qkv = conv1d(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").split(HIDDEN, -1)
        x = x + conv1d(attend(*map(heads_of, qkv)), f"h.{i}.attn.c_proj")
        wide = conv1d(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc")
        x = x + conv1d(gelu(wide, approximate="tanh"), f"h.{i}.mlp.c_proj")
    return norm(x, "ln_f") @ state["lm_head.weight"].float().t()


def rotated(x):
    """The first quarter of each head, halves of it as pairs."""
    rows = x.shape[-1] // 4
    angles = torch.outer(torch.arange(LENGTH), 10000 ** (-torch.arange(0, rows, 2) / rows)).repeat(1, 2)
    turned, rest = x[..., :rows], x[..., rows:]
    half = torch.cat((-turned[..., rows // 2 :], turned[..., : rows // 2]), -1)
    return torch.cat((turned * angles.cos() + half * angles.sin(), rest), -1)


def neox_logits(state, tokens):
    def at(name):
        return state["gpt_neox." + name].float()

    def norm(x, name):
        return layer_norm(x, (HIDDEN,), at(name + ".weight"), at(name + ".bias"))

    def dense(x, name):
        return linear(x, at(name + ".weight"), at(name + ".bias"))

    x = at("embed_in.weight")[tokens]
    for i in range(LAYERS):
        block = f"layers.{i}."
        qkv = dense(norm(x, block + "input_layernorm"), block + "attention.query_key_value")
        query, key, value = qkv.view(LENGTH, HEADS, -1).transpose(0, 1).chunk(3, -1)
        mixed = dense(attend(rotated(query), rotated(key), value), block + "attention.dense")
        wide = dense(norm(x, block + "post_attention_layernorm"), block + "mlp.dense_h_to_4h")
        x = x + mixed + dense(gelu(wide), block + "mlp.dense_4h_to_h")
    return norm(x, "final_layer_norm") @ state["embed_out.weight"].float().t()


def safetensors_of(path):
    """As float32, by an own reader of a few lines."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__")
    data = bytearray(content[8 + length :])
    tensors = {}
    for name, entry in header.items():
        assert entry["dtype"] == "F32"
        begin, end = entry["data_offsets"]
        tensors[name] = torch.frombuffer(data[begin:end], dtype=torch.float32).view(entry["shape"])
    return tensors


class WeightsOfTorch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.text = self.folder / "text"
        self.text.write_bytes(TEXT)
        torch.manual_seed(3)

    def train(self, model, start, end, flags=""):
        """The loss of its first step."""
        command = f"{WEFT_TRAIN} {FLAGS} --model {model} --data {self.text} --init-from {start} --export {end} --csv {self.folder}/csv"
        subprocess.run(f"{command} {flags}".split(), check=True)
        return float((self.folder / "csv").read_text().splitlines()[1].split(",")[1])

    def check_tensors(self, exported, state):
        parameters = {name: tensor for name, tensor in state.items() if tensor.dtype != torch.bool and "inv_freq" not in name}
        self.assertEqual(sorted(exported), sorted(parameters))
        for name, tensor in parameters.items():
            self.assertEqual(exported[name].dtype, torch.float32)
            self.assertTrue(torch.equal(exported[name], tensor.float()), name)

    def check_loss(self, loss, logits):
        tokens = torch.tensor(list(TEXT))
        self.assertAlmostEqual(loss, cross_entropy(logits(tokens[:-1]), tokens[1:]).item(), delta=2e-5)

    def test_gpt2_by_pt_files(self):
        state = gpt2()
        state["lm_head.weight"] = drawn(HIDDEN, WORDS).t()  # with gaps
        state["transformer.h.1.mlp.c_fc.weight"] = torch.nn.Parameter(drawn(2 * HIDDEN, 4 * HIDDEN)[HIDDEN:].double())
        torch.save(state, self.folder / "x.pt")
        loss = self.train("gpt", self.folder / "x.pt", self.folder / "y.pt", "--ranks 2 --shard zero3")
        self.check_loss(loss, lambda tokens: gpt2_logits(state, tokens))
        self.check_tensors(torch.load(self.folder / "y.pt"), state)

    def test_neox_by_shards_of_bfloat16(self):
        state = {name: tensor.bfloat16() for name, tensor in neox().items()}
        names = sorted(state)
        files = {name: f"pytorch_model-{i % 2}.bin" for i, name in enumerate(names)}
        for file in set(files.values()):
            torch.save({name: state[name] for name in names if files[name] == file}, self.folder / file)
        (self.folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": files}))
        end = self.folder / "y.safetensors"
        loss = self.train("neox", self.folder, end, "--rotary zero-frequency")
        self.check_loss(loss, lambda tokens: neox_logits(state, tokens))
        self.check_tensors(safetensors_of(end), state)
        self.train("neox", end, end, "--params bf16")
        self.check_tensors(safetensors_of(end), state)


if __name__ == "__main__":
    WEFT_TRAIN = sys.argv.pop(1)
    unittest.main()

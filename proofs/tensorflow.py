"""TensorFlow judges our checkpoints: it reads what we write, we read what it writes, both find the same damage.

It lives in a venv of its own under `.proofs/`, made on the first run, and works in a child process.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bertkit import family
from bertkit.errors import BertkitError
from bertkit.parts.heads import Mlm, NextSentence, Pooler
from bertkit.parts.network import Network
from bertkit.weights import bundle, google
from bertkit.weights.bundle import Bundle
from tests.pretrained import SIMBERT, pretrained

CLAIM = (
    "TensorFlow reads the checkpoints we write, and we read those it writes, with equal names, kinds, shapes and bits; "
    "a changed byte is found by both"
)
COVERS = (
    "bertkit/weights/bundle.py",
    "bertkit/weights/table.py",
    "bertkit/weights/crc.py",
    "bertkit/weights/google.py",
)

VERSION = "2.21.0"
HOME = Path(__file__).resolve().parents[1] / ".proofs" / f"tensorflow-{VERSION}"
DAMAGES = 200
Result = dict[str, int | float | str]
Arrays = dict[str, Any]

# What the child does, in TensorFlow's own words. Tensors pass as NumPy's files; bfloat16, which it lacks, as float32.
CHILD = """
import json, os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

def load(path):
    names, kinds = json.load(open(path + ".json"))
    with np.load(path + ".npz") as arrays:
        return {name: tf.constant(arrays[f"a{i}"], kind) for i, (name, kind) in enumerate(zip(names, kinds))}

def dump(path, tensors):
    json.dump([list(tensors), [str(tensor.dtype) for tensor in tensors.values()]], open(path + ".json", "w"))
    plain = [t.astype(np.float32) if str(t.dtype) == "bfloat16" else t for t in tensors.values()]
    np.savez(path + ".npz", **{f"a{i}": tensor for i, tensor in enumerate(plain)})

def read(prefix, out):
    reader = tf.train.load_checkpoint(prefix)
    shapes, kinds = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    tensors = {name: np.asarray(reader.get_tensor(name)) for name in sorted(shapes, key=str.encode)}
    for name, tensor in tensors.items():
        assert list(tensor.shape) == shapes[name] and tensor.dtype == kinds[name].as_numpy_dtype, name
    dump(out, tensors)

def save(prefix, tensors, slices=None):
    names = list(tensors)
    tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=slices or [""] * len(names),
                      tensors=[tensors[name] for name in names])

def saver(source, prefix):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        values = enumerate(load(source).items())
        held = {name: tf.compat.v1.Variable(value, name=f"v{i}") for i, (name, value) in values}
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.train.Saver(held).save(session, prefix, write_meta_graph=False)

def sharded(source, prefix):
    tensors, parts = load(source), [f"{prefix}-part{i}" for i in range(3)]
    for i, part in enumerate(parts):
        save(part, dict(list(tensors.items())[i::3]))
    tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=parts, destination_prefix=prefix)

def sliced(source, prefix):
    (name, tensor), = load(source).items()
    save(prefix, {name: tensor[:2]}, [f"{tensor.shape[0]} {tensor.shape[1]} 0,2:-"])

def objects(source, prefix):
    values = {f"v{i}": tf.Variable(value) for i, value in enumerate(load(source).values())}
    tf.train.Checkpoint(**values).write(prefix)

def opened(listing, out):
    found = []
    for prefix in json.load(open(listing)):
        try:
            reader = tf.train.load_checkpoint(prefix)
            for name in reader.get_variable_to_shape_map():
                reader.get_tensor(name)
            found.append(True)
        except (tf.errors.OpError, ValueError, RuntimeError) as error:
            found.append(False)
    json.dump(found, open(out, "w"))

globals()[sys.argv[1]](*sys.argv[2:])
"""


def parts() -> Iterable[tuple[str, Callable[[], Result]]]:
    yield "venv", build
    yield "we write all kinds", partial(ours, kinds)
    yield "we write many names", partial(ours, many)
    yield "we write bert-tiny", partial(our_network, "bert-tiny")
    yield "we write bert-base", partial(our_network, "bert-base")
    for way in ("saver", "sharded"):
        yield f"{way} writes all kinds", partial(theirs, way, kinds)
        yield f"{way} writes SimBERT", partial(theirs, way, simbert)
        yield f"{way} writes bert-small and its optimizer", partial(their_network, way)
    yield "objects", their_objects
    yield "slices", their_slices
    yield "damage", damage


def summary(results: list[Result]) -> str:
    total = Counter[str]()
    for result in results:
        total.update({name: count for name, count in result.items() if isinstance(count, int)})
    return (
        f"TensorFlow {VERSION} read {total['written']:,} tensors of ours ({total['bytes'] / 1e6:,.0f} MB), we read "
        f"{total['read']:,} of its ({total['its'] / 1e6:,.0f} MB): all equal; "
        f"{total['found']} of {total['damages']} changed bytes found by both"
    )


def build() -> Result:
    """The venv, made once. What cannot be made fails the proof, with pip's reason."""
    if not (HOME / "made").is_file():
        run([sys.executable, "-m", "venv", "--clear", str(HOME)])
        run([str(HOME / "bin" / "python"), "-m", "pip", "install", "--quiet", f"tensorflow-cpu=={VERSION}"])
        (HOME / "made").touch()
    return {"venv": VERSION}


def run(command: list[str], **settings: Any) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800, **settings)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)[:120]}: {(done.stderr or done.stdout).strip()[-600:]}")


def child(verb: str, *arguments: Path) -> None:
    build()
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": ""}
    command = [str(HOME / "bin" / "python"), "-c", CHILD, verb, *map(str, arguments)]
    run(command, cwd=arguments[-1].parent, env=environment)


# What passes ────────────────────────────────────────────────────────────────────────────────────────────────────────


def kinds() -> Arrays:
    """Every kind of number in several shapes, among them none and one; names of all sorts."""
    dice, tensors = np.random.default_rng(0), {}
    for kind in bundle.NUMBERS.values():
        if kind != "bfloat16":
            for shape in ((), (0,), (1,), (3, 0, 2), (17, 5), (2, 3, 4, 5)):
                bits = dice.integers(0, 2 if kind == "bool" else 120, size=shape)
                tensors[f"a/{kind}/{'x'.join(map(str, shape)) or '猫 und ß'}"] = np.asarray(bits / 3).astype(kind)
    return tensors


def many() -> Arrays:
    """More names than one block of the index holds."""
    names = (f"bert/encoder/layer_{layer}/{part}" for layer in range(5000) for part in ("dense/bias", "dense/kernel"))
    return {name: np.float32([number, -number]) for number, name in enumerate(names)}


def simbert() -> Arrays:
    return read(pretrained(SIMBERT) / "bert_model.ckpt")


def read(prefix: Path) -> Arrays:
    opened = Bundle(prefix)
    return {name: opened.read(name) for name in opened.names}


def network(name: str) -> Any:
    torch.manual_seed(0)
    heads = {"pooler": Pooler(), "mlm": Mlm("gelu"), "next_sentence": NextSentence()}
    return Network(family.encoder(name, 30_522), heads).build()


def dump(tensors: Mapping[str, Any], path: Path, kinds: Mapping[str, str] | None = None) -> Path:
    said = [str((kinds or {}).get(name, tensor.dtype)) for name, tensor in tensors.items()]
    path.with_name(path.name + ".json").write_text(json.dumps([list(tensors), said]))
    np.savez(path.with_name(path.name + ".npz"), **{f"a{i}": tensor for i, tensor in enumerate(tensors.values())})
    return path


def load(path: Path) -> Arrays:
    names, _ = json.loads(path.with_name(path.name + ".json").read_text())
    with np.load(path.with_name(path.name + ".npz")) as arrays:
        return {name: arrays[f"a{i}"] for i, name in enumerate(names)}


def require_equal(one: Mapping[str, Any], other: Mapping[str, Any]) -> int:
    """How many bytes were compared."""
    assert list(one) == sorted(other, key=str.encode), set(one) ^ set(other)
    for name, tensor in one.items():
        theirs = other[name]
        assert (tensor.dtype, tensor.shape) == (theirs.dtype, theirs.shape), name
        assert tensor.tobytes() == theirs.tobytes(), name
    return sum(tensor.nbytes for tensor in one.values())


# The parts ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def ours(make: Callable[[], Arrays]) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        home, tensors = Path(folder), make()
        bundle.write(tensors, home / "x.ckpt")
        child("read", home / "x.ckpt", home / "out")
        return {"written": len(tensors), "bytes": require_equal(load(home / "out"), tensors)}


def our_network(name: str) -> Result:
    """What TensorFlow reads is Google's names and shapes; through our reader it is the network, bit for bit."""
    with tempfile.TemporaryDirectory() as folder:
        home, made = Path(folder), network(name)
        google.write(made, {"model_type": "bert"}, home)
        child("read", home / "bert_model.ckpt", home / "out")
        seen = load(home / "out")
        again, _, report = google.read(home)
        assert not report.left
        assert all(torch.equal(*pair) for pair in zip(made.parameters(), again.parameters(), strict=True))
        inner = made.spec.encoder.feeds[0].inner
        assert seen["bert/encoder/layer_1/intermediate/dense/kernel"].shape == (made.spec.encoder.width, inner)
        query = made.encoder.attentions[1].qkv.weight.detach().chunk(3)[0].numpy()
        assert np.array_equal(seen["bert/encoder/layer_1/attention/self/query/kernel"], query.T)
        assert np.array_equal(seen["cls/predictions/output_bias"], made.heads["mlm"].bias.detach().numpy())
        return {"written": len(seen), "bytes": require_equal(seen, read(home / "bert_model.ckpt"))}


def theirs(way: str, make: Callable[[], Arrays]) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        home, tensors = Path(folder), make()
        tensors["half/é"] = np.float32([1.5, -2.25, 2**100, 0])  # exact in bfloat16
        child(way, dump(tensors, home / "in", {"half/é": "bfloat16"}), home / "x.ckpt")
        size = require_equal(read(home / "x.ckpt"), tensors)
        assert Bundle(home / "x.ckpt").dtype("half/é") == "bfloat16"
        files = len(list(home.glob("x.ckpt.data-*")))
        assert files == (3 if way == "sharded" else 1)
        return {"read": len(tensors), "its": size}


def their_network(way: str) -> Result:
    """Google's variables with the slots of its optimizer, saved by TensorFlow."""
    with tempfile.TemporaryDirectory() as folder:
        home, made = Path(folder), network("bert-small")
        google.write(made, {"model_type": "bert"}, home)
        tensors = read(home / "bert_model.ckpt")
        for file in home.glob("bert_model.ckpt.*"):
            file.unlink()
        slots = {f"{name}/{slot}": 0 * x for name, x in tensors.items() for slot in ("adam_m", "adam_v")}
        everything = {**tensors, **slots, "global_step": np.int64(7)}
        child(way, dump(everything, home / "in"), home / "model.ckpt-7")
        again, _, report = google.read(home)
        assert report.left == ("adam_m", "adam_v", "global_step")
        assert all(torch.equal(*pair) for pair in zip(made.parameters(), again.parameters(), strict=True))
        return {"read": len(everything), "its": require_equal(read(home / "model.ckpt-7"), everything)}


def their_objects() -> Result:
    """A checkpoint of objects holds a text among its variables: it is listed, and the numbers are read."""
    with tempfile.TemporaryDirectory() as folder:
        home, tensors = Path(folder), {"a": np.float32([[1, 2], [3, 4]]), "b": np.int64(5)}
        child("objects", dump(tensors, home / "in"), home / "x")
        opened = Bundle(home / "x")
        texts = [name for name in opened.names if opened.dtype(name).startswith("type")]
        assert texts == ["_CHECKPOINTABLE_OBJECT_GRAPH"]
        for place, tensor in enumerate(tensors.values()):
            assert np.array_equal(opened.read(f"v{place}/.ATTRIBUTES/VARIABLE_VALUE"), tensor)
        return {"read": len(tensors), "its": 0}


def their_slices() -> Result:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        child("sliced", dump({"a": np.ones((4, 3), np.float32)}, home / "in"), home / "x")
        assert "partitioned" in refusal(home / "x")
    return {}


def damage() -> Result:
    """One byte changed anywhere that counts: TensorFlow refuses, and so do we."""
    dice, prefixes, refused = random.Random(0), [], []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        bundle.write(kinds(), home / "x")
        whole = {end: (home / f"x{end}").read_bytes() for end in (".index", ".data-00000-of-00001")}
        block = len(whole[".index"]) - 100  # what follows are blocks TensorFlow may skip, and padding
        for number in range(DAMAGES):
            end = dice.choice(list(whole))
            at = dice.randrange(block if end == ".index" else len(whole[end]))
            prefix = home / f"d{number}"
            for name, content in whole.items():
                changed = bytearray(content)
                if name == end:
                    changed[at] ^= 1 << dice.randrange(8)
                prefix.with_name(prefix.name + name).write_bytes(changed)
            prefixes.append(str(prefix))
            refused.append(bool(refusal(prefix)))
        prefixes.append(str(home / "x"))
        (home / "listing").write_text(json.dumps(prefixes))
        child("opened", home / "listing", home / "found")
        seen = json.loads((home / "found").read_text())
    assert seen.pop() is True
    assert refused == [True] * DAMAGES, "we did not find a changed byte"
    assert seen == [False] * DAMAGES, "TensorFlow did not find a changed byte"
    return {"damages": DAMAGES, "found": DAMAGES}


def refusal(prefix: Path) -> str:
    """Why a checkpoint is not read; empty where it is."""
    try:
        read(prefix)
    except BertkitError as error:
        return str(error)
    return ""

"""Graphs: valid ONNX, each weight stored once, and heads, pools and modules on top that give what torch gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from bertkit.batch import Padded, collate
from bertkit.errors import BertkitError
from bertkit.parts import heads, pool
from bertkit.parts.dense import ACTIVATIONS, Dense
from bertkit.parts.network import NetworkModule
from bertkit.runtime.engines import graph
from bertkit.runtime.engines.graph import Graph
from bertkit.runtime.engines.outputs import Outputs
from bertkit.runtime.engines.products import Floats, Integers, Product
from tests.runtime.networks import ENCODERS, SMALL, examples, network

onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'bertkit[engines]'")
runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime: pip install 'bertkit[engines]'")

ROWS = examples(9, 1, 30, 4, segments=2)
LABELS = ("a", "b", "c")
HEADS: dict[str, heads.Head] = {
    "pooler": heads.Pooler(),
    "classifier": heads.Classify(LABELS),
    "labels": heads.MultiLabel(LABELS),
    "number": heads.Regress(),
    "choice": heads.Choice(),
    "next_sentence": heads.NextSentence(),
    "tags": heads.Tag(LABELS),
    "chain": heads.Chain(LABELS),
    "span": heads.Span(),
    "mlm": heads.Mlm(),
    "replaced": heads.Detect(),
}
POOLS = (
    *(each for each in pool.POOLS.values() if each != pool.LastLayers(4)),
    *(pool.LastLayers(2), pool.Mean(layer=0), pool.named("cls+mean+pooler")),
)


def run(made: Graph, rows: list[Any] = ROWS) -> dict[str, np.ndarray]:
    """What ONNX Runtime makes of the graph's outputs, by name."""
    session = runtime.InferenceSession(made.nodes.model().SerializeToString())
    values = session.run(None, graph.arrays(collate(rows, Padded), made.spec.encoder))
    return dict(zip((output.name for output in session.get_outputs()), values, strict=True))


@pytest.fixture(scope="module")
def net() -> NetworkModule:
    return network(ENCODERS["electra"], HEADS)  # narrow embeddings: the masked language model narrows again


@pytest.mark.parametrize("product", [Floats(), Integers()])
@pytest.mark.parametrize("family", ENCODERS)
def test_graphs_are_valid(family: str, product: Product) -> None:
    made = Graph(network(ENCODERS[family]), product).tell_hidden().nodes.model()
    onnx.checker.check_model(made, full_check=True)
    told = made.graph.output[0]
    assert told.name == "last_hidden_state"
    assert [axis.dim_param or axis.dim_value for axis in told.type.tensor_type.shape.dim] == [
        *("B", "L"),
        ENCODERS[family].width,
    ]


@pytest.mark.parametrize("product", [Floats(), Integers()])
def test_shared_weights_are_stored_once(product: Product) -> None:
    made = Graph(network(ENCODERS["albert, all shared"]), product).tell_hidden().nodes.model()
    matrices = {each.name for each in made.graph.initializer if len(each.dims) == 2 and ".embed." not in each.name}
    assert len(matrices) == 4  # queries, keys and values; out; up; down


def test_a_tied_table_is_stored_once(net: NetworkModule) -> None:
    made = Graph(net, Floats())
    Outputs(made).head("mlm")
    table = tuple(net.encoder.embed.tokens.weight.shape)
    stored = [each.name for each in made.nodes.model().graph.initializer if tuple(each.dims) in (table, table[::-1])]
    assert stored == ["encoder.embed.tokens.weight"]


def test_heads(net: NetworkModule) -> None:
    made = Graph(net, Floats())
    outputs = Outputs(made)
    for name in HEADS:
        outputs.tell(name, outputs.head(name))
    batch = collate(ROWS, Padded)
    tokens = batch.layout.mask
    for name, values in run(made).items():
        with torch.inference_mode():
            expected = net.logits(name, net(batch), batch.layout)
        assert values.shape == expected.shape
        seen = tokens if HEADS[name].reads == "tokens" else slice(None)
        assert float((torch.from_numpy(values) - expected)[seen].abs().max()) < 1e-4, name


def test_pools(net: NetworkModule) -> None:
    modules = {f"pool {number}": each.build(net) for number, each in enumerate(POOLS)}
    for module in modules.values():
        for weight in module.parameters():
            weight.data.normal_()
    made = Graph(net, Floats())
    outputs = Outputs(made)
    for name, module in modules.items():
        outputs.tell(name, outputs.pool(module))
    for name, values in run(made).items():
        with torch.inference_mode():
            expected = modules[name](collate(ROWS, Padded)).numpy()
        np.testing.assert_allclose(values, expected, atol=1e-4, err_msg=str(modules[name].spec))


def test_dense_modules_and_lengths_of_one(net: NetworkModule) -> None:
    width, activations = net.spec.encoder.width, list(ACTIVATIONS)
    specs = [Dense(width, 5, activation=each, bias=bool(n % 2)) for n, each in enumerate(activations)]
    specs += [Dense(width, 5, residual=True), Dense(width, width, residual=True)]
    modules = {f"dense {number}": spec.build() for number, spec in enumerate(specs)}
    made = Graph(net, Floats())
    outputs = Outputs(made)
    mean = outputs.pool(pool.Mean().build(net))
    for name, module in modules.items():
        outputs.tell(name, outputs.scaled(outputs.dense(mean, name, module)))
    with torch.inference_mode():
        means = pool.Mean().build(net)(collate(ROWS, Padded))
        for name, values in run(made).items():
            expected = F.normalize(modules[name](means)).numpy()
            np.testing.assert_allclose(values, expected, atol=1e-4, err_msg=str(modules[name].spec))


def test_a_vector_of_zeros_stays_one() -> None:
    made = Graph(network(SMALL), Floats())
    outputs = Outputs(made)
    outputs.tell("zeros", outputs.scaled(made.nodes.add("Mul", outputs.mean(made.hidden), made.nodes.number(0.0))))
    assert not run(made)["zeros"].any()


def test_what_a_graph_cannot_have_is_named(net: NetworkModule) -> None:
    outputs = Outputs(Graph(net, Floats()))
    with pytest.raises(BertkitError, match="unknown pool that a graph can have 'AfterPrompt'"):
        outputs.pool(pool.AfterPrompt(pool.Mean(), 2).build(net))
    with pytest.raises(BertkitError, match="reads layer -4, but this model has 0"):
        outputs.pool(pool.LastLayers(4).build(net))
    with pytest.raises(BertkitError, match="unknown head of this model 'tagz': did you mean 'tags'"):
        outputs.head("tagz")


def test_weights_in_a_file_of_their_own(tmp_path: Path) -> None:
    made = Graph(network(SMALL), Floats()).tell_hidden()
    made.nodes.save(tmp_path / "model.onnx")
    onnx.checker.check_model(str(tmp_path / "model.onnx"), full_check=True)
    assert (tmp_path / "model.onnx").stat().st_size < 20_000 < (tmp_path / "model.onnx.data").stat().st_size
    session = runtime.InferenceSession(str(tmp_path / "model.onnx"))
    [states] = session.run(None, graph.arrays(collate(ROWS, Padded), SMALL))
    np.testing.assert_array_equal(states, run(made)["last_hidden_state"])

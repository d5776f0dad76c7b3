"""Name tables are two-way and total."""

from __future__ import annotations

import pytest

from bertkit.errors import BertkitError
from bertkit.family import families
from bertkit.names import Names
from bertkit.parts.heads import Chain
from bertkit.parts.network import Network

TABLE = Names({"layers.{}.qkv": ("block.{}.q", "block.{}.k"), "norm": "LayerNorm.weight"})
OURS = ["layers.0.qkv", "layers.11.qkv", "norm"]
THEIRS = ["block.0.q", "block.0.k", "block.11.q", "block.11.k", "LayerNorm.weight"]


def test_a_plan_uses_every_name_once() -> None:
    plan = TABLE.plan(OURS, THEIRS, "file")
    assert plan.sources == {
        "layers.0.qkv": ("block.0.q", "block.0.k"),
        "layers.11.qkv": ("block.11.q", "block.11.k"),
        "norm": ("LayerNorm.weight",),
    }
    assert plan.left == ()


@pytest.mark.parametrize(
    ("theirs", "message"),
    [
        (THEIRS[1:], "file lacks block.0.q"),
        ([*THEIRS[:4], "LayerNorm.weights"], "file lacks LayerNorm.weight. Nearest that is there: LayerNorm.weights"),
        ([*THEIRS, "block.12.q"], "file has block.12.q, for which the model of its config has no place"),
    ],
)
def test_what_is_missing_or_astray_fails(theirs: list[str], message: str) -> None:
    with pytest.raises(BertkitError, match=message):
        TABLE.plan(OURS, theirs, "file")


@pytest.mark.parametrize(
    "name", ["block.0.qx", "xblock.0.q", "block.00.q", "block.-1.q", "block.9999999.q", "block.0.q\n"]
)
def test_lookalikes_are_strangers(name: str) -> None:
    assert TABLE.own(name) is None
    assert TABLE.plan(OURS, [*THEIRS, name], "file").left == (name,)


@pytest.mark.parametrize("name", families())
def test_family_tables_go_both_ways_and_miss_nothing(name: str) -> None:
    family = families()[name]
    encoder = min(family.sizes.values(), key=lambda size: size(30).width)(30)
    config = family.config(Network(encoder))
    heads = {head: filed.read(config) for head, filed in family.dialect.heads.items()}
    network = Network(encoder, {**heads, "tag": Chain(("O", "B"))})
    names = family.dialect.names(network)
    parameters = [name for name, _ in network.build().named_parameters()]
    foreign = [theirs for ours in parameters for theirs in names.foreign(ours)]
    assert len(set(foreign)) == len(foreign)
    for ours in parameters:
        assert {names.own(theirs) for theirs in names.foreign(ours)} == {ours}
    dialect, kind = family.dialect, family.dialect.architecture(network)
    assert all(dialect.canonical(dialect.spell(network, theirs), kind) == theirs for theirs in foreign)

"""From the name of an engine to what runs a network."""

from __future__ import annotations

from bertkit.errors import BertkitError, unknown
from bertkit.parts.network import NetworkModule
from bertkit.runtime import tune
from bertkit.runtime.engines import ENGINES
from bertkit.runtime.engines.engine import FP32, Setup
from bertkit.runtime.runner import Runner

AUTO = "auto"


def choose(network: NetworkModule, engine: str, precision: str = FP32) -> Runner | None:
    """A network on the engine of a name, in the layout of threads that was fastest; None for torch as it is.

    `auto` is what was measured to be fastest; nothing is measured here.
    """
    if engine not in (AUTO, *ENGINES):
        raise unknown("engine", engine, (AUTO, *ENGINES))
    device = next(network.parameters()).device
    if engine == "torch" or (engine == AUTO and device.type != "cpu"):
        return None
    if device.type != "cpu":
        raise BertkitError(f"the engine {engine} computes on a CPU, and the model is on {device}: take torch")
    measured = tune.remembered(network, precision)
    choice = measured and measured.choice(None if engine == AUTO else engine, precision)
    if engine == AUTO:
        return Runner(network, choice.single, choice.bulk) if choice else None
    kind, cores = ENGINES[engine], tune.cores()
    kind.require(network.spec.encoder, precision)
    usual = Setup(engine, precision, 1, cores), Setup(engine, precision, cores, 1)
    return Runner(network, *((choice.single, choice.bulk) if choice else usual))

"""From the name of an engine to what runs a network."""

from __future__ import annotations

import logging
from dataclasses import replace

from bertkit.errors import BertkitError, look_up, unknown
from bertkit.parts.network import NetworkModule
from bertkit.runtime import tune
from bertkit.runtime.engines import ENGINES
from bertkit.runtime.engines.engine import FP32, INT8
from bertkit.runtime.runner import Runner

log = logging.getLogger("bertkit")
AUTO = "auto"
MUCH = 500_000
"""characters of text for which it is worth some seconds to find the fastest engine"""


def choose(
    network: NetworkModule, engine: str, precision: str = FP32, kept: tuple[str, ...] = (), int8_engine: str = ""
) -> Runner | None:
    """A network on the engine of a name, in the layout of threads that was fastest; None for torch as it is.

    `auto` is what was measured to be fastest; nothing is measured here. A quantised network has an engine that was
    found to be right for it, which auto takes: engines round in different ways.
    """
    if engine not in (AUTO, *ENGINES):
        raise unknown("engine", engine, (AUTO, *ENGINES))
    device = network.device
    if engine == "torch" or (engine == AUTO and device.type != "cpu"):
        return None
    if device.type != "cpu":
        raise BertkitError(f"the engine {engine} computes on a CPU, and the model is on {device}: take torch")
    if precision == INT8 and engine == AUTO:
        if not int8_engine:
            raise BertkitError("int8 rounds, and each engine in its own way: name one, or see bertkit quantize")
        engine = int8_engine
        reason = look_up("engine", engine, ENGINES).absence()
        if reason:
            log.warning("a quantised model is computed in fp32, for %s", reason)
            return None
    measured = tune.remembered(network, precision)
    choice = measured and measured.choice(None if engine == AUTO else engine, precision)
    if engine == AUTO:
        return Runner(network, choice.single, choice.bulk) if choice else None
    ENGINES[engine].require(network.spec.encoder, precision)
    cores = tune.cores()
    usual = [ENGINES[engine].arranged(precision, workers, cores // workers) for workers in (1, cores)]
    setups = [choice.single, choice.bulk] if choice else usual
    return Runner(network, *(replace(setup, kept=kept) for setup in setups))

"""infinity-emb's engine in this process, without its server: texts go through its queue in batches of 32."""

from __future__ import annotations

import numpy as np
from infinity_emb import EngineArgs, SyncEngineArray

from bench.child import Call, serve
from bench.pipe import Array


def embed(model: str, texts: list[str]) -> Call:
    engine = _Engine(model)
    return lambda: engine.embed(texts)


def query(model: str, texts: list[str]) -> Call:
    engine = _Engine(model)
    return lambda: np.concatenate([engine.embed([text]) for text in texts])


class _Engine:
    def __init__(self, model: str) -> None:
        # fp32 as it is; BetterTransformer is gone from the transformers that it runs with
        options = {"engine": "torch", "device": "cpu", "dtype": "float32", "bettertransformer": False}
        settings = EngineArgs(model_name_or_path=model, model_warmup=False, **options)
        self._name = settings.served_model_name
        self._engines = SyncEngineArray.from_args([settings])

    def embed(self, texts: list[str]) -> Array:
        vectors, _ = self._engines.embed(model=self._name, sentences=texts).result()
        return np.stack(vectors)


if __name__ == "__main__":
    serve({"embed": embed, "query": query}, ["infinity-emb"])

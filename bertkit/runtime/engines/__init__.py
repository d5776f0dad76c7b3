"""The engines by name. Each imports the library it is made of when it is built."""

from __future__ import annotations

from bertkit.runtime.engines.ctranslate2 import CTranslate2
from bertkit.runtime.engines.eager import Eager
from bertkit.runtime.engines.engine import Engine
from bertkit.runtime.engines.onednn import OneDnn
from bertkit.runtime.engines.onnx import Onnx
from bertkit.runtime.engines.openvino import OpenVino

ENGINES: dict[str, type[Engine]] = {kind.name: kind for kind in (Eager, OneDnn, CTranslate2, Onnx, OpenVino)}

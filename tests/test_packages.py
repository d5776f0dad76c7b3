"""Engines are imported without a word to anybody."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest


def needs(package: str) -> pytest.MarkDecorator:
    absent = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(absent, reason=f"needs {package}: pip install 'bertkit[engines]'")


@needs("onnxruntime")
@pytest.mark.skipif(os.name != "posix", reason="elsewhere it is the system that is told")
def test_onnxruntime_reports_to_nobody(tmp_path: Path) -> None:
    """From 1.29 on importing it is enough for a number of the machine and a queue of events in the user's cache."""
    program = "from bertkit import packages; packages.load('onnxruntime').get_available_providers()"
    free = {name: value for name, value in os.environ.items() if name not in ("CI", "ORT_DISABLE_TELEMETRY")}
    homes = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], env=free | homes, timeout=120, check=True)
    assert not list(tmp_path.iterdir())


@needs("openvino")
def test_openvino_reports_to_nobody() -> None:
    """Importing it sends an event; through bertkit, what would send it is never imported."""
    program = """
import sys
from bertkit import packages
engine = packages.load("openvino")
assert engine.Core().available_devices
loaded = [name for name in sys.modules if name.startswith("openvino_telemetry")]
assert not loaded, loaded
from openvino.tools.ovc import telemetry
assert "stub" in type(telemetry).__module__, type(telemetry)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


@needs("openvino")
def test_what_was_imported_already_stays() -> None:
    program = """
import sys, types
mine = sys.modules["openvino_telemetry"] = types.ModuleType("openvino_telemetry")
from bertkit import packages
packages.load("openvino")
assert sys.modules["openvino_telemetry"] is mine
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr

"""Engines are imported without a word to anybody."""

import importlib.util
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("openvino") is None, reason="needs openvino: pip install 'bertkit[engines]'"
)


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

"""Every reader of foreign files, some thousand damaged files in all; `proofs/fuzz.py` goes on for an hour."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.readers import READERS

CASES = 200


def test_damaged_files_are_opened_or_refused_with_words() -> None:
    command = [sys.executable, "-m", "tests.readers", str(CASES)]  # alone, so that its memory can be bounded
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-6000:]
    found = json.loads(done.stdout)
    assert list(found) == list(READERS)
    for name, counts in found.items():
        assert counts["opened"] + counts["refused"] == CASES, name
        assert counts["whole"] == 1, f"{name}: the undamaged file must open"
        assert counts["refused"] > 0, f"{name}: no damage was noticed"

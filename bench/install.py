"""Build the environments of the peers that cannot live in ours: `python -m bench.install [PEER …]`.

Each is `.bench/PEER`, of exactly the versions in `bench/peers/PEER.txt`; one that is as its lock says is left alone.
One that cannot be built leaves its reason, which the bench shows in its rows.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence

from bench import peer
from bertkit.errors import BertkitError, unknown


def install(name: str) -> str:
    """What was done, in a line."""
    home, failed = peer.HOME / name, peer.HOME / f"{name}.failed"
    if peer.built(name):
        return "is built"
    shutil.rmtree(home, ignore_errors=True)
    failed.unlink(missing_ok=True)
    # a lock is whole: nothing is added to it, and what it leaves out on purpose stays out
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python"), "--disable-pip-version-check"]
    empty = [sys.executable, "-m", "venv", "--without-pip", str(home)]
    for command in (empty, [*pip, "install", "--quiet", "--no-deps", "-r", str(peer.lock(name))]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            reason = str(peer.AbsentError(_reason(done.stdout + done.stderr)))
            shutil.rmtree(home, ignore_errors=True)
            failed.write_text(reason, encoding="utf-8")
            return f"cannot be built: {reason}"
    shutil.copyfile(peer.lock(name), home / "built.txt")  # last: it says that the rest is there
    return "built"


def _reason(said: str) -> str:
    """pip's last line is seldom the reason; the first that begins with ERROR is."""
    lines = said.strip().splitlines()
    return next((line for line in lines if line.startswith("ERROR")), lines[-1] if lines else "pip said nothing")


def main(names: Sequence[str]) -> int:
    """The command line; 0 also when a peer cannot be built, for its rows will say so."""
    locked = [name for name in peer.names() if peer.lock(name).exists()]
    try:
        for name in names:
            if name not in locked:
                raise unknown("peer", name, locked)
    except BertkitError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    peer.HOME.mkdir(exist_ok=True)
    for name in names or locked:
        print(f"{name} …", flush=True)
        print(f"{name} {install(name)}", flush=True)
    print("Next: make bench")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

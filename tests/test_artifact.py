"""An artifact appears whole or not at all, is refused when damaged, and never costs a user a file."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bertkit
from bertkit import artifact, manifest, workspace
from bertkit.errors import BertkitError


def save(path: Path, files: dict[str, bytes], **options: bool) -> None:
    with artifact.directory(path, "test", **options) as temporary:
        for name, content in files.items():
            (temporary / name).parent.mkdir(parents=True, exist_ok=True)
            (temporary / name).write_bytes(content)


def names(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir())


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save(tmp_path / "saved", {"config.json": b"{}", "weights/a.bin": b"0123456789"})
    return tmp_path / "saved"


@pytest.fixture(params=["exchange", "two renames"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "two renames":
        monkeypatch.setattr(workspace, "_exchange", lambda one, other: False)
    return str(request.param)


# --- what is written --------------------------------------------------------------------------------------------------


def test_the_manifest_lists_every_file_with_its_size_and_hash(tmp_path: Path) -> None:
    facts: dict[str, int] = {}
    with artifact.directory(tmp_path / "deep" / "er" / "model", "model", facts=facts) as temporary:
        (temporary / "a").write_bytes(b"abc")
        facts["layers"] = 2
    found = artifact.verify(tmp_path / "deep" / "er" / "model")
    assert (found.kind, found.facts, found.bertkit) == ("model", {"layers": 2}, bertkit.__version__)
    assert found.files == {"a": manifest.File(3, hashlib.sha256(b"abc").hexdigest())}
    assert names(tmp_path / "deep" / "er") == ["model"]


def test_the_manifest_is_the_same_bytes_for_the_same_content(tmp_path: Path) -> None:
    save(tmp_path / "one", {"a": b"1", "b/c": b"2"})
    save(tmp_path / "two", {"b/c": b"2", "a": b"1"})
    one, two = ((tmp_path / name / manifest.NAME).read_bytes() for name in ("one", "two"))
    assert one == two
    assert json.loads(one)["format"] == 1


def test_nothing_is_visible_before_the_end(tmp_path: Path) -> None:
    with artifact.directory(tmp_path / "saved", "test") as temporary:
        assert not (tmp_path / "saved").exists()
        assert temporary.stat().st_dev == tmp_path.stat().st_dev
        assert all(name.startswith(".saved.") for name in names(tmp_path))
    assert names(tmp_path) == ["saved"]


def test_an_exception_leaves_nothing_and_passes_through(tmp_path: Path) -> None:
    with pytest.raises(TypeError), artifact.directory(tmp_path / "saved", "test") as temporary:
        (temporary / "half").write_bytes("no bytes")  # type: ignore[arg-type]
    assert names(tmp_path) == []


@pytest.mark.parametrize("name", ["模型 één", "with space", "a|b*[c]?", "lock", "old", "-rf", "new\nline", "é" * 100])
def test_unusual_names(tmp_path: Path, name: str) -> None:
    for content in (b"old", b"new"):
        save(tmp_path / name, {name: content, f"{name}/{name}".replace(name, "d-" + name[:50], 1): b""}, overwrite=True)
    assert artifact.verify(tmp_path / name).files[name].size == 3
    assert (tmp_path / name / name).read_bytes() == b"new"
    assert names(tmp_path) == [name]


def test_a_name_that_is_no_unicode_comes_back(tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff\xfe")
    save(tmp_path / "saved", {name: b"x"})
    assert list(artifact.verify(tmp_path / "saved").files) == [name]
    (tmp_path / "saved" / name).unlink()
    with pytest.raises(BertkitError, match="missing") as caught:
        artifact.verify(tmp_path / "saved")
    str(caught.value).encode()  # can be printed


segments = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=12)
trees = st.dictionaries(
    st.lists(segments.filter(lambda name: name not in (".", "..")), min_size=1, max_size=3).map(
        # Directories and files are told apart by their last letter, so that no name is both.
        lambda parts: "/".join([*(part + "d" for part in parts[:-1]), parts[-1] + "f"])
    ),
    st.binary(max_size=64),
    max_size=6,
)


@settings(max_examples=40, deadline=None)
@given(trees, trees)
def test_any_tree_round_trips_and_replaces_any_other(first: dict[str, bytes], second: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as parent:
        path = Path(parent, "saved")
        for tree in (first, second):
            save(path, tree, overwrite=True)
            found = artifact.verify(path)
            assert {name: (path / name).read_bytes() for name in found.files} == tree
            assert manifest.unlisted(path, found) == []
        assert names(Path(parent)) == ["saved"]


@pytest.mark.parametrize("make", [lambda path: path.symlink_to("/etc/passwd"), os.mkfifo], ids=["link", "pipe"])
def test_links_and_pipes_are_not_saved(tmp_path: Path, make: Callable[[Path], None]) -> None:
    told = "'odd' is a link or a device"
    with pytest.raises(BertkitError, match=told), artifact.directory(tmp_path / "saved", "test") as temporary:
        make(temporary / "odd")
    assert names(tmp_path) == []


def test_a_link_as_destination_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to("runs/3")
    for content in (b"old", b"new"):
        save(tmp_path / "latest", {"a": content}, overwrite=True)
        assert (tmp_path / "runs" / "3" / "a").read_bytes() == content
    assert (tmp_path / "latest").is_symlink()
    assert artifact.verify(tmp_path / "latest").kind == "test"
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(BertkitError, match="loop"):
        save(tmp_path / "loop", {})


# --- what is replaced -------------------------------------------------------------------------------------------------


def test_an_artifact_is_replaced_only_when_asked(saved: Path, way: str) -> None:
    with pytest.raises(BertkitError, match=r"exists and is not empty.*overwrite=True"):
        save(saved, {"b": b"new"})
    assert (saved / "config.json").read_bytes() == b"{}"
    save(saved, {"b": b"new"}, overwrite=True)
    assert names(saved) == ["b", manifest.NAME]
    assert names(saved.parent) == ["saved"]


def test_the_refusal_comes_before_the_work(saved: Path) -> None:
    with pytest.raises(BertkitError), artifact.directory(saved, "test"):
        pytest.fail("hours of work")
    with pytest.raises(BertkitError), artifact.file(saved / "config.json"):
        pytest.fail("hours of work")


def test_a_users_files_are_never_deleted(saved: Path) -> None:
    (saved / "weights" / "notes.txt").write_text("mine")
    (saved / "link").symlink_to("/etc/passwd")
    with pytest.raises(BertkitError, match=r"also holds 'link', 'weights/notes.txt'"):
        save(saved, {}, overwrite=True)
    assert (saved / "weights" / "notes.txt").read_text() == "mine"
    assert artifact.verify(saved).kind == "test"  # notes do no harm to reading


def test_a_users_file_that_comes_during_the_work_is_kept(saved: Path) -> None:
    with pytest.raises(BertkitError, match=r"notes.txt"), artifact.directory(saved, "test", overwrite=True):
        (saved / "notes.txt").write_text("mine")
    assert (saved / "notes.txt").read_text() == "mine"
    assert names(saved.parent) == ["saved"]


def test_a_foreign_directory_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "manifest.json").write_text("{}")
    with pytest.raises(BertkitError, match="not written by bertkit"):
        save(tmp_path / "home", {}, overwrite=True)
    assert names(tmp_path / "home") == ["manifest.json"]
    (tmp_path / "file").write_text("text")
    with pytest.raises(BertkitError, match="is a file"):
        save(tmp_path / "file", {}, overwrite=True)


def test_an_empty_directory_is_filled(tmp_path: Path) -> None:
    (tmp_path / "saved").mkdir()
    save(tmp_path / "saved", {"a": b"1"})
    assert artifact.verify(tmp_path / "saved").files["a"].size == 1


def test_a_destination_that_appears_during_the_work_wins(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match="exists and is not empty"), artifact.directory(tmp_path / "saved", "test"):
        save(tmp_path / "saved", {"a": b"other"})
    assert (tmp_path / "saved" / "a").read_bytes() == b"other"
    assert names(tmp_path) == ["saved"]


# --- what is damaged --------------------------------------------------------------------------------------------------


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4] ^= 1
    path.write_bytes(content)


def link(path: Path) -> None:
    twin = path.parent.parent.parent / "twin"
    path.rename(twin)
    path.symlink_to(twin)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (flip, "'weights/a.bin' has SHA-256 [0-9a-f]{64} where 84d89877"),
        (lambda path: os.truncate(path, 7), "'weights/a.bin' has 7 bytes where 10 were written"),
        (Path.unlink, r"'weights/a.bin' is missing \(10 bytes were written\)"),
        (link, "'weights/a.bin' is a link"),
    ],
)
def test_damage_is_named(saved: Path, damage: Callable[[Path], None], told: str) -> None:
    damage(saved / "weights" / "a.bin")
    with pytest.raises(
        BertkitError,
        match=told + ".*Restore it from a copy; or, if you changed it on purpose, delete bertkit-manifest.json",
    ):
        artifact.verify(saved)


def test_a_directory_behind_a_link_is_not_read(saved: Path) -> None:
    (saved / "weights").rename(saved.parent / "elsewhere")
    (saved / "weights").symlink_to(saved.parent / "elsewhere")
    with pytest.raises(BertkitError, match=r"'weights/a.bin' is missing"):
        artifact.verify(saved)


def listing(name: object = "a", size: object = 1, sha256: object = "0" * 64, **changes: object) -> str:
    entry = {name: {"bytes": size, "sha256": sha256}}
    return json.dumps({"format": 1, "kind": "test", "bertkit": "0", "facts": {}, "files": entry} | changes)


HOSTILE = {
    "empty": "",
    "binary": "\x00\xff",
    "a list": "[]",
    "deep": "[" * 200_000,
    "no format": "{}",
    "a yes for a format": listing(format=True),
    "a newer format": listing(format=2),
    "absolute": listing("/etc/passwd"),
    "above": listing("../saved/a"),
    "above, later": listing("a/../../b"),
    "not plain": listing("./a"),
    "no name": listing(""),
    "a zero byte": listing("a\0b"),
    "a negative size": listing(size=-1),
    "a text for a size": listing(size="1"),
    "a huge size": '{"format": ' + "9" * 10_000 + "}",
    "a short hash": listing(sha256="00"),
    "a file that is a list": listing(files={"a": []}),
    "files that are a list": listing(files=[]),
    "no kind": listing(kind=None),
    "facts that are text": listing(facts="none"),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_manifest_is_a_clear_error(saved: Path, text: str) -> None:
    (saved / manifest.NAME).write_text(text)
    for attempt in (artifact.verify, artifact.read_manifest, lambda path: save(path, {}, overwrite=True)):
        with pytest.raises(BertkitError, match=manifest.NAME):
            attempt(saved)
    assert "config.json" in names(saved)


def test_a_huge_manifest_is_not_read(saved: Path) -> None:
    os.truncate(saved / manifest.NAME, 2**40)  # sparse: takes no room on the disk
    with pytest.raises(BertkitError, match="larger than"):
        artifact.verify(saved)


def test_a_foreign_directory_has_no_manifest(tmp_path: Path, saved: Path) -> None:
    assert artifact.read_manifest(tmp_path) is None
    (saved / manifest.NAME).rename(tmp_path / "blob")
    (saved / manifest.NAME).symlink_to(tmp_path / "blob")  # as the Hub's cache does
    assert artifact.read_manifest(saved) is None
    with pytest.raises(BertkitError, match="did not write it"):
        artifact.verify(saved)
    with pytest.raises(BertkitError, match="does not exist"):
        artifact.verify(tmp_path / "nowhere")
    with pytest.raises(BertkitError, match="is not a directory"):
        artifact.read_manifest(tmp_path / "blob")


# --- a full disk, a closed door ---------------------------------------------------------------------------------------


@pytest.fixture
def small_disk() -> Iterator[None]:
    """No file may grow past 100,000 bytes: a write fails in the system, as on a full disk."""
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.usefixtures("small_disk")
def test_a_write_the_system_refuses(saved: Path) -> None:
    with pytest.raises(BertkitError, match=r"saved was not written: a file is larger than.*unchanged"):
        save(saved, {"a": b"x" * 200_000}, overwrite=True)
    with (
        pytest.raises(BertkitError, match=r"vectors.npy was not written"),
        artifact.file(saved.parent / "vectors.npy") as handle,
    ):
        handle.write(b"x" * 200_000)
    assert artifact.verify(saved).files["weights/a.bin"].size == 10
    assert names(saved.parent) == ["saved"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk(tmp_path: Path) -> None:
    with (
        pytest.raises(BertkitError, match=r"saved was not written: the disk is full. Free some space"),
        artifact.directory(tmp_path / "saved", "test"),
        open("/dev/full", "wb", buffering=0) as full,  # noqa: PTH123
    ):
        full.write(b"x")
    assert names(tmp_path) == []


def test_a_full_disk_told_by_rust(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match="the disk is full"), artifact.directory(tmp_path / "saved", "test"):
        raise RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)")


def test_a_sync_that_fails(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(BertkitError, match=r"was not written: Input/output error"):
        save(saved, {}, overwrite=True)
    assert artifact.verify(saved).files["weights/a.bin"].size == 10
    assert names(saved.parent) == ["saved"]


def test_an_error_of_the_callers_own_inputs_passes_through(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), artifact.directory(tmp_path / "saved", "test"):
        (tmp_path / "corpus.txt").read_bytes()


def test_a_directory_one_may_not_write_to(tmp_path: Path) -> None:
    code = """
import os, sys
from bertkit import artifact
if os.geteuid() == 0:
    os.setegid(65534); os.seteuid(65534)  # root may write anywhere
with artifact.directory(sys.argv[1], "test"):
    pass
"""
    (tmp_path / "closed").mkdir(mode=0o555)
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    done = python(code, tmp_path / "closed" / "saved")
    assert "BertkitError" in done.stderr
    assert "permission denied. Give a path you may write to" in done.stderr
    assert names(tmp_path / "closed") == []


def python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


# --- one file ---------------------------------------------------------------------------------------------------------


def test_a_file_can_be_patched_and_appears_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "out" / "vectors.npy"
    with artifact.file(path) as handle:
        handle.write(b"???? body")
        handle.seek(0)
        handle.write(b"head")
        assert not path.exists()
    assert path.read_bytes() == b"head body"
    assert path.stat().st_nlink == 1
    assert names(path.parent) == ["vectors.npy"]


def test_a_file_is_replaced_only_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "vectors.npy"
    path.write_bytes(b"old")
    with pytest.raises(BertkitError, match=r"exists\. Give another path"), artifact.file(path):
        pass
    with pytest.raises(TypeError), artifact.file(path, overwrite=True) as handle:
        handle.writelines([b"half", "no bytes"])  # type: ignore[list-item]
    assert path.read_bytes() == b"old"
    with artifact.file(path, overwrite=True) as handle:
        handle.write(b"new")
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["vectors.npy"]
    with pytest.raises(BertkitError, match="not a regular file"), artifact.file(tmp_path, overwrite=True):
        pass


def test_a_file_that_appears_during_the_work_wins(tmp_path: Path) -> None:
    path = tmp_path / "vectors.npy"
    with pytest.raises(BertkitError, match="exists"), artifact.file(path):
        path.write_bytes(b"other")
    assert path.read_bytes() == b"other"


# --- several processes, and sudden death ------------------------------------------------------------------------------

RACE = """
import sys, time
from bertkit import artifact
path, name, overwrite, start = sys.argv[1:]
try:
    with artifact.directory(path, "test", overwrite=overwrite == "True") as temporary:
        for number in range(20):
            (temporary / f"{name}{number}").write_text(name)
        time.sleep(max(0, float(start) - time.time()))
except Exception as error:
    print(type(error).__name__, error)
else:
    print("won")
"""


@pytest.mark.parametrize("overwrite", [False, True])
def test_two_processes_leave_one_whole_result(tmp_path: Path, overwrite: bool) -> None:
    start = time.time() + 0.7
    arguments = [[sys.executable, "-c", RACE, tmp_path / "saved", name, str(overwrite), str(start)] for name in "ab"]
    racers = [subprocess.Popen(line, stdout=subprocess.PIPE, text=True) for line in arguments]
    told = sorted(racer.communicate(timeout=60)[0] for racer in racers)
    if overwrite:
        assert told == ["won\n", "won\n"]
    else:
        assert told[0].startswith("BertkitError")
        assert "exists and is not empty" in told[0]
        assert told[1] == "won\n"
    files = artifact.verify(tmp_path / "saved").files
    assert len(files) == 20
    assert len({name[0] for name in files}) == 1
    assert names(tmp_path) == ["saved"]


def test_a_reader_never_sees_damage_while_a_writer_replaces(saved: Path) -> None:
    code = """
import sys
from bertkit import artifact
for number in range(60):
    with artifact.directory(sys.argv[1], "test", overwrite=True) as temporary:
        for name in range(number % 7):
            (temporary / f"{name}").write_text(str(number))
"""
    writer = subprocess.Popen([sys.executable, "-c", code, saved])
    read = 0
    while writer.poll() is None:
        read += artifact.verify(saved).kind == "test"
    assert writer.returncode == 0
    assert read > 10


def test_a_living_writer_keeps_its_workspace_and_a_dead_one_loses_it(tmp_path: Path) -> None:
    path = tmp_path / "saved"
    dead = tmp_path / f".saved.{'0' * 16}.tmp"
    (dead / "new").mkdir(parents=True)
    neighbour = tmp_path / f".saved.b.{'0' * 16}.tmp"  # of another destination, "saved.b"
    neighbour.mkdir()
    with artifact.directory(path, "test", overwrite=True) as living:
        (living / "a").write_text("living")
        assert not dead.exists()
        save(path, {"a": b"second"}, overwrite=True)
        assert living.exists()
    assert (path / "a").read_text() == "living"
    assert names(tmp_path) == sorted([neighbour.name, "saved"])


DYING = """
import os, random, signal, sys
from bertkit import artifact, workspace
path, way, moment = sys.argv[1:]
if way == "two renames":
    workspace._exchange = lambda one, other: False

def save(content):
    with artifact.directory(path, "test", overwrite=True) as temporary:
        for number in range(3):
            (temporary / str(number)).write_text(content)

if moment == "any":
    print("ready", flush=True)
    while True:
        save(random.choice(["old", "new"]))

def die_at(moment):
    def hook(event, arguments):
        nonlocal moment
        if event.partition(".")[0] in ("open", "os", "fcntl", "shutil"):
            moment -= 1
            if moment == -1:  # once: the kill is an event too
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)

killed = {"old": 0, "new": 0}
while True:
    save("old")
    assert os.listdir(os.path.dirname(path)) == ["saved"], os.listdir(os.path.dirname(path))
    child = os.fork()
    if not child:
        die_at(sum(killed.values()))
        save("new")
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        break
    assert len(artifact.verify(path).files) == 3
    found = {open(os.path.join(path, str(number))).read() for number in range(3)}
    assert len(found) == 1, found
    killed[found.pop()] += 1
print(killed["old"], killed["new"])
"""


@pytest.mark.parametrize("way_of", ["exchange", "two renames"])
def test_killed_before_each_single_operation_of_a_save(tmp_path: Path, way_of: str) -> None:
    """Python tells an audit hook of every open, rename and removal: die at the first, at the second, and so on."""
    done = python(DYING, tmp_path / "saved", way_of, "each")
    assert done.returncode == 0, done.stderr
    old, new = map(int, done.stdout.split())
    assert old > 20
    assert new > 5
    assert names(tmp_path) == ["saved"]


@pytest.mark.parametrize("way_of", ["exchange", "two renames"])
def test_killed_at_random_moments(tmp_path: Path, way_of: str) -> None:
    path = tmp_path / "saved"
    chance = random.Random(0)
    for _ in range(3):
        save(path, {str(number): b"old" for number in range(3)}, overwrite=True)
        with subprocess.Popen([sys.executable, "-c", DYING, path, way_of, "any"], stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(chance.uniform(0, 0.2))
            child.kill()
        assert len(artifact.verify(path).files) == 3
        assert len({(path / str(number)).read_bytes() for number in range(3)}) == 1
    save(path, {}, overwrite=True)
    assert names(tmp_path) == ["saved"]


def test_a_reader_puts_back_what_was_taken_away_between_two_renames(saved: Path) -> None:
    abandoned = saved.with_name(f".saved.{'1' * 16}.tmp")
    (abandoned / "new").mkdir(parents=True)
    saved.rename(abandoned / "old")
    assert artifact.verify(saved).files["weights/a.bin"].size == 10
    assert names(saved.parent) == ["saved"]


def test_the_old_one_comes_back_when_the_second_rename_fails(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename, calls = Path.rename, []

    def fail_at_the_third(path: Path, target: Path) -> Path:  # after the plain rename and that of the old one
        calls.append(path.name)
        if len(calls) == 3:
            raise OSError(errno.EIO, "Input/output error")
        return rename(path, target)

    monkeypatch.setattr(workspace, "_exchange", lambda one, other: False)
    monkeypatch.setattr(Path, "rename", fail_at_the_third)
    with pytest.raises(BertkitError, match="Input/output error"):
        save(saved, {"b": b"new"}, overwrite=True)
    assert calls == ["new", "saved", "new", "old"]
    assert artifact.verify(saved).files["weights/a.bin"].size == 10
    assert names(saved.parent) == ["saved"]


def test_the_old_one_is_given_up_in_one_step_before_it_is_removed(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    removed: list[list[str]] = []
    remove = shutil.rmtree

    def watch(path: Path, ignore_errors: bool) -> None:
        removed.append(names(path))
        remove(path, ignore_errors=ignore_errors)

    monkeypatch.setattr(workspace, "_exchange", lambda one, other: False)
    monkeypatch.setattr(shutil, "rmtree", watch)
    save(saved, {"b": b"new"}, overwrite=True)
    assert removed == [["lock", "trash"]]  # half of an "old" would be taken for the last good artifact


def test_nothing_is_exchanged_unless_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename, refused = Path.rename, [OSError(errno.ENOTEMPTY, "another writer was there, and is gone again")]

    def refuse_once(path: Path, target: Path) -> Path:
        if refused:
            raise refused.pop()
        return rename(path, target)

    monkeypatch.setattr(workspace, "_exchange", lambda one, other: pytest.fail("it may be another writer's result"))
    monkeypatch.setattr(Path, "rename", refuse_once)
    save(tmp_path / "saved", {"a": b"1"})
    assert artifact.verify(tmp_path / "saved").files["a"].size == 1

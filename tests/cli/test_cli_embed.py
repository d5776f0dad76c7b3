"""`bertkit embed`: the vectors are the library's, in the order of the lines, and memory holds a window of them."""

import io
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch

import bertkit
from bertkit.cli import embed
from bertkit.model import Model
from bertkit.runtime.ledger import kept_of
from bertkit.runtime.npy import NpyWriter
from bertkit.text.truncate import Chunk, Cut
from bertkit.text.window import FIRST
from tests.cli.running import Bertkit

LINES = [f"the {'cat' if number % 3 else 'dog'} {' on' * (number % 3)} {number % 10}" for number in range(5000)]


@pytest.fixture
def five_thousand(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("".join(f"{line}\n" for line in LINES))
    return path


def test_file_to_npy(run: Bertkit, tiny: Path, model: Model, five_thousand: Path, tmp_path: Path) -> None:
    output = tmp_path / "vectors.npy"
    ran = run("embed", tiny, "--input", five_thousand, "--output", output)
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.splitlines() == [
        f"bertkit: {tiny}: took encoder, mlm; left none; made new none",
        f"5,000 vectors of width 128 in {output}. Next: numpy.load({str(output)!r})",
    ]
    vectors = np.load(output)
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, model.embed(LINES))
    np.testing.assert_allclose(vectors[4321], model.embed(LINES[4321]), atol=1e-5)


def test_standard_input_to_npy_with_facts_for_a_program(
    run: Bertkit, tiny: Path, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["the cat", "", "猫 😀", "on " * 600]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(texts).encode())))
    output = tmp_path / "vectors.npy"
    ran = run("embed", tiny, "-i", "-", "-o", output, "--json")
    assert ran.code == 0
    assert json.loads(ran.out) == {
        "texts": 4,
        "width": 128,
        "output": str(output),
        "cut_texts": 1,
        "cut_tokens": 90,
        "chunked_texts": 0,
        "chunks": 0,
    }
    assert "1 of 4 texts cut to 512 tokens (90 tokens lost)" in ran.err
    np.testing.assert_array_equal(np.load(output), model.embed(texts))


def test_json_lines(run: Bertkit, tiny: Path, model: Model) -> None:
    texts = ["the [b]cat[/b]", "狗", ""]
    ran = run("embed", tiny, *texts, "--json")
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert [line["text"] for line in lines] == texts
    np.testing.assert_array_equal(np.array([line["vector"] for line in lines], np.float32), model.embed(texts))


@pytest.mark.parametrize("pool", ["cls", "max", "first-last"])
def test_pool_and_normalize(run: Bertkit, tiny: Path, model: Model, pool: str) -> None:
    ran = run("embed", tiny, "a cat", "--pool", pool, "--normalize", "--json")
    vector = np.array(json.loads(ran.out)["vector"], np.float32)
    np.testing.assert_array_equal(vector, model.embed(["a cat"], pool=pool, normalize=True)[0])
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


def test_preview_shows_every_text_of_the_command_line(run: Bertkit, tiny: Path, model: Model) -> None:
    texts = ["the [red]cat[/red]", "two\nlines\x1b[31m", *map(str, range(13))]
    ran = run("embed", tiny, *texts)
    lines = ran.out.splitlines()
    assert len(lines) == 15
    numbers = " ".join(f"{value:+.3f}" for value in model.embed(texts)[0][:6])
    assert lines[0] == f"[{numbers} …]  the [red]cat[/red]"
    assert lines[1].endswith("  two·lines·[31m")  # no text may colour the terminal
    assert "15 vectors of width 128" in ran.err


def test_preview_reads_ten_lines_of_a_long_file(
    run: Bertkit, tiny: Path, five_thousand: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []

    def noted(*_: object) -> Iterator[str]:
        for number in count():  # without end: who forgot --output does not wait for a preview
            read.append(number)
            yield f"cat {number}"

    monkeypatch.setattr(embed, "texts_from", noted)
    ran = run("embed", tiny, "--input", five_thousand)
    assert len(ran.out.splitlines()) == 10
    assert len(read) == 11
    assert "Only the first 10 texts were read. To have all: --output vectors.npy" in ran.err


def test_json_lines_hold_one_window(model: Model) -> None:
    read = count()

    def endless() -> Iterator[str]:
        while True:
            yield f"cat {next(read)}"

    lines = embed.json_lines(model.embed_stream, endless(), Cut())
    assert json.loads(next(lines))["text"] == "cat 0"
    assert next(read) == FIRST
    for _ in range(FIRST - 1):
        last = next(lines)
    assert json.loads(last)["text"] == f"cat {FIRST - 1}"


def test_output_is_written_window_by_window(
    run: Bertkit, tiny: Path, five_thousand: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, read_at_writes = 0, []

    def noted(*_: object) -> Iterator[str]:
        nonlocal read
        for _ in range(5000):
            read += 1
            yield "cat"

    write = NpyWriter.write
    monkeypatch.setattr(embed, "texts_from", noted)
    monkeypatch.setattr(NpyWriter, "write", lambda *given: (read_at_writes.append(read), write(*given))[1])
    assert run("embed", tiny, "--input", five_thousand, "-o", tmp_path / "out.npy").code == 0
    assert read_at_writes == [256, 768, 1792, 3840, 5000]  # windows double


def test_empty_file(run: Bertkit, tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    ran = run("embed", tiny, "-i", tmp_path / "empty.txt", "-o", tmp_path / "empty.npy")
    assert ran.code == 0
    assert "empty.txt holds no texts" in ran.err
    assert "0 vectors of width 128" in ran.err
    assert np.load(tmp_path / "empty.npy").shape == (0, 128)


def test_existing_output(run: Bertkit, tiny: Path, tmp_path: Path) -> None:
    output = tmp_path / "vectors.npy"
    output.write_bytes(b"precious")
    ran = run("embed", tiny, "a cat", "-o", output)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        f"bertkit: error: --output {output} exists. Give another name, or add --overwrite to replace it\n"
    )
    assert output.read_bytes() == b"precious"
    assert run("embed", tiny, "a cat", "-o", output, "--overwrite").code == 0
    assert np.load(output).shape == (1, 128)


def test_output_in_a_new_directory(run: Bertkit, tiny: Path, tmp_path: Path) -> None:
    output = tmp_path / "new" / "deeper" / "vectors.npy"
    assert run("embed", tiny, "a cat", "-o", output).code == 0
    assert [path.name for path in output.parent.iterdir()] == ["vectors.npy"]


def test_bad_line_is_repaired_and_the_same_command_goes_on(
    run: Bertkit, tiny: Path, model: Model, tmp_path: Path
) -> None:
    source, output = tmp_path / "bad.txt", tmp_path / "out.npy"
    source.write_bytes(b"the cat\n" * 4500 + b"caf\xe9\n")
    ran = run("embed", tiny, "-i", source, "-o", output)
    assert ran.code == 1
    assert "line 4501 is not UTF-8 (byte 0xe9 at place 4)" in ran.err
    assert f"3,840 vectors are kept in {output}.part; the same command goes on after them\n" in ran.err
    assert not output.exists()
    source.write_bytes(b"the cat\n" * 4500 + "café\n".encode())
    ran = run("embed", tiny, "-i", source, "-o", output)
    assert (ran.code, "going on after 3,840 vectors" in ran.err) == (0, True)
    np.testing.assert_allclose(np.load(output)[[0, -1]], model.embed(["the cat", "café"]), atol=1e-5)
    assert set(tmp_path.iterdir()) == {source, output}


# an interrupted run ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def two_thousand(five_thousand: Path) -> Path:
    five_thousand.write_text("".join(f"{line}\n" for line in LINES[:2000]))
    return five_thousand


@pytest.fixture
def interrupted(
    run: Bertkit, tiny: Path, two_thousand: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[Path, str]]:
    """An output of which some windows are kept, after Ctrl-C in the one after them, and what was said."""

    def start(*options: object, windows: int = 2) -> tuple[Path, str]:
        write, done = NpyWriter.write, []

        def interrupting(self: NpyWriter, rows: np.ndarray) -> None:
            if len(done) == windows:
                os.kill(os.getpid(), signal.SIGINT)
            done.append(len(rows))
            write(self, rows)

        monkeypatch.setattr(NpyWriter, "write", interrupting)
        before = signal.getsignal(signal.SIGINT)
        ran = run("embed", tiny, "-i", two_thousand, "-o", tmp_path / "out.npy", *options)
        signal.signal(signal.SIGINT, before)
        monkeypatch.setattr(NpyWriter, "write", write)
        assert ran.code == 130
        return tmp_path / "out.npy", ran.err.splitlines()[-1]

    return start


def test_ctrl_c_says_what_is_kept(interrupted: Callable[..., tuple[Path, str]]) -> None:
    output, said = interrupted(windows=0)
    assert said == "bertkit: stopped; nothing was written"
    assert not Path(f"{output}.part").exists()
    _, said = interrupted(windows=3)
    assert said == f"bertkit: stopped; 1,792 vectors are kept in {output}.part. The same command goes on"


def test_what_was_cut_is_counted_through(
    run: Bertkit, tiny: Path, interrupted: Callable[..., tuple[Path, str]], two_thousand: Path, tmp_path: Path
) -> None:
    two_thousand.write_text("on " * 600 + "\n" + "the cat\n" * 1500 + "on " * 600 + "\n")
    output, _ = interrupted("--truncate", "chunk", "--stride", "400", "--pool", "max")
    options = ("-i", two_thousand, "--truncate", "chunk", "--stride", "400", "--pool", "max", "--json")
    told = [json.loads(run("embed", tiny, *options, "-o", path).out) for path in (output, tmp_path / "whole.npy")]
    assert [one.pop("output") for one in told] == [str(output), str(tmp_path / "whole.npy")]
    assert told[0] == told[1]
    assert (told[0]["chunked_texts"], told[0]["chunks"]) == (2, 4)
    assert output.read_bytes() == (tmp_path / "whole.npy").read_bytes()


def test_places_of_texts_are_those_of_the_whole_input(
    run: Bertkit, tiny: Path, interrupted: Callable[..., tuple[Path, str]], two_thousand: Path
) -> None:
    output, _ = interrupted("--truncate", "error")
    lines = two_thousand.read_text().splitlines()
    two_thousand.write_text("\n".join([*lines[:1000], "on " * 600, *lines[1000:]]))
    ran = run("embed", tiny, "-i", two_thousand, "-o", output, "--truncate", "error")
    assert "texts[1000] (line 1001): it has 600 tokens" in ran.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--pool", "cls"], "pool is"),
        (["--normalize"], 'normalize is "as the model: False" there and true here'),
        (["--truncate", "tail"], "truncate is another"),
    ],
)
def test_other_options_do_not_go_on(
    run: Bertkit,
    tiny: Path,
    interrupted: Callable[..., tuple[Path, str]],
    two_thousand: Path,
    options: list[str],
    said: str,
) -> None:
    output, _ = interrupted()
    command = ("embed", tiny, "-i", two_thousand, "-o", output, *options)
    ran = run(*command)
    (error,) = [line for line in ran.err.splitlines() if "error" in line]
    assert error.startswith(f"bertkit: error: {output}.part holds 768 vectors, and was made otherwise: {said}")
    assert error.endswith("or add --overwrite (overwrite=True) to begin anew")
    assert not output.exists()
    assert run(*command, "--overwrite").code == 0
    assert len(np.load(output)) == 2000
    assert not Path(f"{output}.part").exists()


def test_another_model_or_another_text_does_not_go_on(
    run: Bertkit, tiny: Path, model: Model, interrupted: Callable[..., tuple[Path, str]], two_thousand: Path
) -> None:
    output, _ = interrupted()
    other = bertkit.load(tiny)
    with torch.no_grad():
        other.network.encoder.embed.tokens.weight[7, 3] += 1e-3
    ran = run("embed", other.save(output.with_name("other")), "-i", two_thousand, "-o", output)
    assert "was made otherwise: weights is another. Repeat" in ran.err
    lines = two_thousand.read_text().splitlines()
    lines[100] = lines[100][::-1]
    two_thousand.write_text("\n".join(lines))
    ran = run("embed", tiny, "-i", two_thousand, "-o", output)
    assert "was made of other texts: the first 768 of the input are not the same now" in ran.err
    assert kept_of(output).items == 768


def test_overwriting_is_interrupted_too(
    run: Bertkit, tiny: Path, interrupted: Callable[..., tuple[Path, str]], two_thousand: Path, tmp_path: Path
) -> None:
    (tmp_path / "out.npy").write_bytes(b"old")
    output, said = interrupted("--overwrite")
    assert output.read_bytes() == b"old"
    assert said.endswith(f"768 vectors are kept in {output}.part. The same command without --overwrite goes on")
    ran = run("embed", tiny, "-i", two_thousand, "-o", output)
    assert (ran.code, "going on after 768 vectors" in ran.err) == (0, True)
    assert len(np.load(output)) == 2000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "vectors.txt"], "--output vectors.txt must end in .npy"),
        (["-o", "taken/x.npy"], "was not written"),
        (["--pool", "men"], "unknown pool 'men': did you mean 'mean'?"),
    ],
)
def test_refused(
    run: Bertkit, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("taken").touch()  # a file where a directory would have to be
    ran = run("embed", tiny, "a cat", *arguments)
    assert (ran.code, ran.out) == (1, "")
    errors = [line for line in ran.err.splitlines() if "error" in line]
    assert len(errors) == 1
    assert errors[0].startswith("bertkit: error: ")
    assert said in errors[0]
    assert list(tmp_path.iterdir()) == [tmp_path / "taken"]


def test_too_long_is_refused_when_asked(run: Bertkit, tiny: Path) -> None:
    ran = run("embed", tiny, "cat " * 600, "--truncate", "error", "--json")
    assert (ran.code, ran.out) == (1, "")
    assert "texts[0] (line 1): it has 600 tokens, and there is room for 510" in ran.err


@pytest.mark.parametrize(("policy", "lost"), [("head", 90), ("tail", 90), ("head+tail", 90), ("chunk", 0)])
def test_policies_for_long_texts(run: Bertkit, tiny: Path, model: Model, policy: str, lost: int) -> None:
    texts = ["the cat", "on " * 300 + "cat " * 300]
    ran = run("embed", tiny, *texts, "--truncate", policy, "--json")
    found = [json.loads(line) for line in ran.out.splitlines()]
    assert [line["cut_tokens"] for line in found] == [0, lost]
    assert [line["chunks"] for line in found] == [1, 2 if policy == "chunk" else 1]
    np.testing.assert_array_equal([line["vector"] for line in found], model.embed(texts, truncate=policy))
    said = "1 of 2 texts " + (
        "read in 2 chunks of at most 512 tokens" if policy == "chunk" else "cut to 512 tokens (90 tokens lost)"
    )
    assert said in ran.err


def test_stride_of_chunks(run: Bertkit, tiny: Path, model: Model) -> None:
    text = "on " * 300 + "cat " * 300
    ran = run("embed", tiny, text, "--truncate", "chunk", "--stride", "40", "--json")
    line = json.loads(ran.out)
    assert line["chunks"] == 4
    np.testing.assert_array_equal(line["vector"], model.embed(text, truncate=Chunk(40)))
    ran = run("embed", tiny, text, "--stride", "40")
    assert (ran.code, "--stride belongs to --truncate chunk, not to head" in ran.err) == (1, True)


def test_unknown_choice_is_a_usage_error(run: Bertkit, tiny: Path) -> None:
    ran = run("embed", tiny, "a cat", "--truncate", "eror")
    assert ran.code == 2
    assert "--truncate" in ran.err
    assert "'head'" in ran.err

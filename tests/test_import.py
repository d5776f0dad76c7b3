"""What may not be imported: help must feel instant, and text needs no torch."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = (
    *("torch", "numpy", "tokenizers", "transformers", "huggingface_hub", "safetensors"),
    *("pyarrow", "sentencepiece", "jieba", "sentencex", "zstandard"),
)


def imported(code: str) -> set[str]:
    """The heavy packages that a fresh interpreter holds after running `code`."""
    program = f"import json, sys\n{code}\nprint(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def command(*arguments: str) -> str:
    return (
        f"import bertkit.cli\nsys.argv = {['bertkit', *arguments]!r}\n"
        "try:\n    bertkit.cli.main()\nexcept SystemExit as exit:\n    assert not exit.code, exit.code"
    )


def test_import_is_light() -> None:
    assert imported("import bertkit; bertkit.__version__; dir(bertkit); bertkit.BertkitError") == set()


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["embed", "--help"], ["info", "--help"]])
def test_help_is_light(arguments: list[str]) -> None:
    assert imported(command(*arguments)) == set()


def test_every_command_has_light_help() -> None:
    commands = ("info", "tokenize", "lengths", "embed", "fill", "convert", "doctor")
    assert imported("\n".join(command(name, "--help") for name in commands)) == set()


def test_every_command_of_a_group_has_light_help() -> None:
    commands = [("corpus",), *(("corpus", verb) for verb in ("build", "inspect", "audit")), ("vocab", "train")]
    assert imported("\n".join(command(*names, "--help") for names in commands)) == set()


def test_a_corpus_needs_no_torch(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A cat sat on the mat.\n\nA dog ran.\n", encoding="utf-8")
    text, shards = str(tmp_path / "a.txt"), str(tmp_path / "shards")
    runs = [
        command("corpus", "build", text, "--tokenizer", "minilm", "--output", shards),
        command("corpus", "inspect", shards, "--inputs", "segment-pairs"),
        command("corpus", "audit", text, "--tokenizer", "minilm", "--html", str(tmp_path / "page.html")),
    ]
    assert imported("\n".join([*runs, "print()"])) == {"numpy", "tokenizers", "safetensors"}


def test_tokenize_needs_no_torch() -> None:
    assert imported(command("tokenize", "minilm", "a cat", "--json")) == {"tokenizers"}


def test_lengths_needs_no_torch() -> None:
    assert imported(command("lengths", __file__, "--json")) == {"tokenizers", "numpy"}


def test_text_room_needs_no_torch() -> None:
    assert imported("from bertkit import Tokenizer; import bertkit.artifact, bertkit.weights.find") == {"tokenizers"}


def test_the_check_sees_torch() -> None:
    assert "torch" in imported("import bertkit; bertkit.load")

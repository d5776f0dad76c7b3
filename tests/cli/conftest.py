"""The command as a user runs it, in this process, and a small model on disk."""

import sys
from pathlib import Path

import pytest

import bertkit
from bertkit.cli import main
from bertkit.model import Model
from bertkit.parts.heads import Mlm
from bertkit.text import Tokenizer
from tests.cli.running import Bertkit, Ran

WORDS = "the cat dog sat on a mat play ##ing ##ed runs fast . [ ] / b red 0 1 2 3 4 5 6 7 8 9 猫 狗"
DIGITS = [f"##{digit}" for digit in range(10)]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Bertkit:
    """`bertkit ARGUMENTS...` through `main`, where errors become messages and exit codes."""

    def running(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["bertkit", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit:
            main()
        captured = capsys.readouterr()
        return Ran(int(exit.value.code or 0), captured.out, captured.err)

    return running


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a bert-tiny of random weights and a masked-language-model head."""
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer.from_vocabulary([*specials, *WORDS.split(), *DIGITS])
    path = tmp_path_factory.mktemp("models") / "tiny"
    return bertkit.create("bert-tiny", tokenizer, {"mlm": Mlm()}, seed=0).save(path)


@pytest.fixture(scope="session")
def model(tiny: Path) -> Model:
    """The same, opened by the library."""
    return bertkit.load(tiny)

"""A labelled dataset that every machine has: paragraphs of Python's documentation, and the part of the library they
are about."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bertkit import artifact
from bertkit.corpus import python_docs
from bertkit.corpus.chance import key, number
from bertkit.errors import BertkitError
from bertkit.tasks.split import folds

PARTS = {
    "concurrency": "asyncio concurrent multiprocessing queue sched selectors subprocess threading _threading_local",
    "files": "_pyio bz2 configparser csv dbm fileinput filecmp genericpath glob gzip json lzma ntpath os pathlib "
    "pickle posixpath shelve shutil tarfile tempfile zipfile zipimport",
    "graphics": "tkinter turtle",
    "language": "_collections_abc abc ast code codeop collections contextlib copy dataclasses dis enum functools imp "
    "importlib inspect pkgutil pyclbr pydoc runpy symtable tokenize types typing weakref",
    "markup": "html plistlib xml",
    "network": "cgi email ftplib http imaplib ipaddress mailbox mimetypes nntplib poplib smtplib socket socketserver "
    "ssl telnetlib urllib webbrowser wsgiref xmlrpc",
    "numbers": "_pydecimal _strptime calendar datetime decimal fractions heapq numbers random statistics",
    "testing": "bdb cProfile doctest logging pdb profile pstats timeit trace traceback unittest warnings",
}
"""part of the library -> its modules"""
HELD_OUT = 10
"""one paragraph of so many is kept for exams"""


def rows() -> Iterator[tuple[str, str]]:
    """Part and paragraph, each paragraph once."""
    parts = {module: part for part, modules in PARTS.items() for module in modules.split()}
    return ((parts[module], text) for module, text in python_docs.by_module() if module in parts)


def write(folder: Path, most: int | None = None, seed: int = 0) -> tuple[Path, Path]:
    """Two tables, label<TAB>text: at most so many rows to learn from, and rows for exams. Those that are there stay."""
    train, dev = folder / "train.tsv", folder / "dev.tsv"
    if not (train.is_file() and dev.is_file()):
        found = list(rows())
        if len({part for part, _ in found}) < 2:
            raise BertkitError("this Python carries no documentation of its library: there is nothing to learn from")
        fold = folds([part for part, _ in found], [""] * len(found), HELD_OUT, seed)
        order = np.argsort(number(key(seed), np.arange(len(found))), kind="stable")
        folder.mkdir(parents=True, exist_ok=True)
        for path, places in ((train, order[fold[order] > 0][:most]), (dev, np.flatnonzero(fold == 0))):
            with artifact.file(path, overwrite=True) as file:
                file.writelines("{}\t{}\n".format(*found[place]).encode() for place in places.tolist())
    return train, dev

"""CMRC 2018's scores (https://aclanthology.org/D19-1600): exact match and F1 of Chinese answers, as its script counts.

Texts are compared without case and without some punctuation: Chinese marks, and of ASCII - : _ * ^ / \\ ~ ` + = alone.
For F1 a text is segments: each Chinese character is one, and what stands between them is words. What two texts have in
common is their longest run of segments, not all segments that both have as in SQuAD. Scores are percent.

The script cuts words with NLTK; here the same rules of the Penn Treebank are written out that matter for answers. Left
out are those for sentences inside of an answer, and for gonna, cannot and their like.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher

from bertkit.errors import BertkitError
from bertkit.evaluate.spans import Fit, Question, Spans

_PUNCTUATION = str.maketrans("", "", "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
_CHINESE = re.compile("([\u4e00-\u9fa5])")
_ALONE = re.compile(r"\.{2,}|[]\[(){}<>;@#$%&?!\"«»„‘]|,(?!\d)")  # 1,000 is one word
_LAST_STOP = re.compile(r"(?<=[^.])\.(?=[])}>\"'»\s]*$)")
_SHORTENED = re.compile(r"(?<=[^\s'])('s|'m|'d|'ll|'re|'ve|n't|')(?=\s|$)")


def plain(text: str) -> str:
    """What is compared.

    >>> plain(" 《BERT-base》，2018年。")
    'bertbase2018年'
    """
    return text.lower().strip().translate(_PUNCTUATION)


def segments(text: str) -> list[str]:
    """Chinese characters and the words between them. What punctuation parted is one word, as in the script.

    >>> segments("约1,200.5公里, 即GPT-2 (small)")
    ['约', '1,200.5', '公', '里', ',', '即', 'gpt2', '(', 'small', ')']
    """
    found: list[str] = []
    for part in _CHINESE.split(plain(text)):
        found += [part] if _CHINESE.fullmatch(part) else _words(part)
    return found


def _words(text: str) -> list[str]:
    text = _LAST_STOP.sub(r" . ", text)
    return _SHORTENED.sub(r" \1", _ALONE.sub(r" \g<0> ", text)).split()


def fit(found: str, true: str) -> Fit:
    """Of one answer and one true one. Where nothing is left to compare F1 is 0, as in the script.

    >>> fit("北京大学", "在北京的大学")
    Fit(exact=0.0, f1=0.4)
    """
    left, right = segments(found), segments(true)
    same = SequenceMatcher(None, left, right, autojunk=False).find_longest_match().size
    return Fit(float(plain(found) == plain(true)), 2 * same / (len(left) + len(right)) if same else 0.0)


def best(found: str, answers: Sequence[str]) -> Fit:
    """Of one answer and all true ones, each score for itself; where there is none, none is right."""
    if not answers:
        right = float(not plain(found))
        return Fit(right, right)
    fits = [fit(found, answer) for answer in answers]
    return Fit(max(one.exact for one in fits), max(one.f1 for one in fits))


def score(asked: Iterable[Question], found: Mapping[str, str]) -> Spans:
    """The scores of predictions by question id; a question without one counts as wrong."""
    rows = list(asked)
    if not rows:
        raise BertkitError("there is no question to score")
    fits = [best(found[one.id], one.answers) for one in rows if one.id in found]
    missing = tuple(one.id for one in rows if one.id not in found)
    exact, f1 = (100.0 * sum(scores) / len(rows) for scores in (zip(*fits, strict=True) if fits else ((), ())))
    return Spans(exact, f1, len(rows), missing=missing)

"""Specs refuse what makes no sense, and say so."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertkit.errors import BertkitError
from bertkit.family import bert
from bertkit.parts.attention import Attention
from bertkit.parts.encoder import Encoder
from bertkit.parts.feed import Feed
from bertkit.parts.heads import Classify
from bertkit.spec import from_json, to_json

TINY = bert.encoder("tiny", 50)


def test_json_is_plain_and_comes_back_equal() -> None:
    text = json.dumps(to_json(TINY))
    assert from_json(json.loads(text)) == TINY


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Attention(0, 64), "Attention.heads is 0: it must be at least 1"),
        (lambda: Attention("12", 64), "Attention.heads is '12': it must be a whole number"),
        (lambda: Attention(True, 64), "Attention.heads is True: it must be a whole number"),
        (lambda: Attention(2, 64, dropout=1.0), "Attention.dropout is 1.0: it must be below 1"),
        (lambda: Attention(2, 64, dropout=float("nan")), "Attention.dropout is nan: it must be at least 0"),
        (lambda: Attention(2, 64, epsilon=None), "Attention.epsilon is None: it must be a number"),
        (lambda: Feed(64, "gleu"), "unknown activation 'gleu': did you mean 'gelu'?"),
        (lambda: Classify(()), "Classify needs labels, each once. Given: none"),
        (lambda: Classify(("a", "b", "a")), "Twice: a"),
        (lambda: Classify(("a",)), "Classify chooses among two labels or more"),
        (lambda: replace(TINY, order=((0, 0),)), "must run every block and no other: look at attention 1, feed 1"),
        (lambda: replace(TINY, order=((0, 0), (1, 1), (2, 1))), "look at attention 2"),
        (lambda: replace(TINY, attentions=[]), r"Encoder.attentions is \[\]: it must be a list"),
        (lambda: from_json({"part": "Atention"}), "unknown part 'Atention': did you mean 'Attention'"),
        (lambda: from_json({"part": ["x"]}), "unknown part"),
        (lambda: from_json({"part": "Feed", "iner": 3}), "unknown setting of Feed 'iner': did you mean 'inner'"),
        (lambda: from_json({"part": "Feed"}), "Feed lacks its setting 'inner'"),
    ],
)
def test_errors_say_what_was_given_and_what_exists(make, message: str) -> None:
    with pytest.raises(BertkitError, match=message):
        make()


def test_sharing_is_an_order() -> None:
    shared = Encoder(128, TINY.embed, TINY.attentions[:1], TINY.feeds, ((0, 0), (0, 1)))
    names = [name for name, _ in shared.build().named_parameters() if "qkv.weight" in name]
    assert names == ["attentions.0.qkv.weight"]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["part", "inner", "heads", "x"]), inner)
    ),
    max_leaves=8,
)


@given(
    st.sampled_from(["Attention", "Feed", "Embed", "Encoder", "Network", "Mean"]),
    st.dictionaries(
        st.sampled_from(["heads", "head", "inner", "width", "embed", "order", "layer", "encoder", "dropout"]), values
    ),
)
def test_any_json_gives_a_spec_or_one_clear_error(part: str, fields: dict) -> None:
    with contextlib.suppress(BertkitError):  # any other exception is a defect
        from_json({"part": part, **fields})

"""XLM-R: Unsupervised Cross-lingual Representation Learning at Scale
(Conneau, Khandelwal, Goyal, Chaudhary, Wenzek, Guzmán, Grave, Ott, Zettlemoyer, Stoyanov 2020),
https://arxiv.org/abs/1911.02116

RoBERTa on a hundred languages. Only its tokens differ: Unigram pieces of sentencepiece, whose numbers are moved by one
to make room for fairseq's `<s>`, `<pad>`, `</s>` and `<unk>`; 250,002 of them.
"""

from __future__ import annotations

from bertkit.family import roberta

FAMILY = roberta.family("xlm-roberta", roberta.dialect("XLMRoberta"))

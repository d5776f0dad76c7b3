"""From texts to a vocabulary: counting words, learning tokens, and judging them on held-out text; no torch."""

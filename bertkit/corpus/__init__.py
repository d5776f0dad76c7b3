"""From files to documents to shards of tokens on disk, and from shards to examples; no torch."""

"""Modules that two or more papers use; each comes with the spec that builds it."""

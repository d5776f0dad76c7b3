"""Strings to outputs, fast and in bounded memory: the one path that every command uses."""

"""Smaller and faster networks: each is kept only if it is, and if it answers as well as before."""

"""Schedulers in Python, to read and to begin with."""

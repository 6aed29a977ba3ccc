"""Example schedulers in Python."""

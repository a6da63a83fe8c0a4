"""Picks for a Label Studio project: its tasks are the pool, its annotations the labels, and the picks come first."""

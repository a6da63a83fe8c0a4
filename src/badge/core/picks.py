"""The version of the picks: with the same version, the same seed gives the same picks.

Raise it when the picks of any strategy change for some seed, on purpose. `tests/strategies/test_picks_version.py` holds
hashes of the picks of every strategy on a fixed pool, and fails when they change without it.
"""

PICKS_VERSION = 1

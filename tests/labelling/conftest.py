"""A browser for the tests of the page; those that need one are skipped where there is none."""

from pages import browser

__all__ = ["browser"]

"""`python -m badge` is `badge`."""

from badge.cli import main

main()

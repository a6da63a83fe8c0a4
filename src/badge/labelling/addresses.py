"""Addresses that people type."""

from urllib.parse import SplitResult, urlsplit


def web_address(url: str) -> SplitResult | None:
    """The parts of an address of the web; None if it is none."""
    try:
        parts = urlsplit(url)
    except ValueError:  # brackets that hold no address
        return None
    return parts if parts.scheme in ("http", "https") and parts.hostname else None

"""Labels from people."""

"""Labels from people: a page of our own, Label Studio."""

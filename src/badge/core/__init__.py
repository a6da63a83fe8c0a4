"""What everything else stands on: random numbers, arrays at the door, progress, names."""

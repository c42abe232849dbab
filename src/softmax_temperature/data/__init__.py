"""Data sets: where they come from, how they are split, and how later stages read them."""

"""The paper "Temperature check" (Agarwala et al. 2020)."""

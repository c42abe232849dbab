"""The paper `temperature_check`: Temperature check (Agarwala et al. 2020)."""

"""The paper "How to keep cool while training" (2022)."""

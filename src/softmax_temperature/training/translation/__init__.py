"""Machine translation, the downstream task of the focal paper (appendix K)."""

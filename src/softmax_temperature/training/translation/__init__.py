"""Machine translation, the downstream task of the focal paper (appendix K): vocabulary,
network, search and scores.
"""

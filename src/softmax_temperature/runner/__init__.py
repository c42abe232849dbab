"""Cells and what they leave: fingerprints, artifacts, checkpoints, engines, and the
errors a user can mend.
"""

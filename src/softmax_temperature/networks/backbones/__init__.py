"""Backbones: frozen networks by name, each with its own preprocessing and a record of what it is."""

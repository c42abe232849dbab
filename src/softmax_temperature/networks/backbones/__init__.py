"""Backbones: frozen networks by name, each with its own preprocessing and a record of what it is.

`sources.locate_weights` finds the weights before any work; `loading.load_backbone` makes the network.
"""

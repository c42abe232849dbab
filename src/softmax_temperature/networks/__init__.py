"""The papers' networks, and the frozen backbones."""

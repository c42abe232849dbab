"""The papers' networks and the backbones that no library offers, one file each."""

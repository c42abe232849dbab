"""The papers' networks, the frozen backbones, and their embeddings."""

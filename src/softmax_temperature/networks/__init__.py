"""The papers' networks, the frozen backbones, and the embeddings that these make."""

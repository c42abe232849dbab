"""Fine-tune your classifier: finding correlations with temperature.

Chamand et al. 2022.
"""

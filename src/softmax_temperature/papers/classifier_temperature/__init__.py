"""The paper "Fine-tune your classifier: Finding correlations with temperature".

Chamand et al. 2022.
"""

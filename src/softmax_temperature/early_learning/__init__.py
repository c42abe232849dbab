"""Theory of early learning at inverse temperature β, measured on networks.

Source: the temperature_check paper. The tempered logits are Z = β z, where z are the
logits of a network with tangent kernel Θ. Under gradient flow of the summed
cross-entropy, in the rescaled time s = β² η t for a learning rate η,

    dZ/ds = Θ (Y - softmax(Z)).

β does not appear in this equation, so while Θ stays constant, networks with the same Θ
that start with equal Z keep equal Z. The parameters move by (1/β) Jᵀ (Y - softmax(Z))
per unit of s, so Θ changes less when β is larger.
"""

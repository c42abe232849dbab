"""Early learning with a softmax of inverse temperature β (temperature_check paper): its
theory, measured on networks.

The tempered logits are Z = β z, with z those of a network and Θ its tangent kernel.
Under gradient flow of the summed cross-entropy, in the rescaled time s = β² η t of a
learning rate η,

    dZ/ds = Θ (Y - softmax(Z)),

in which β does not appear: as long as Θ stays what it was, equal Z at the start means
equal Z ever after. Parameters move by (1/β) Jᵀ (Y - softmax(Z)) in a unit of s, so Θ
changes the less, the larger β is.
"""

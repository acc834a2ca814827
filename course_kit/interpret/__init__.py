"""Look into a trained model: switch heads off, put activations in, read layers out, weigh attention with values.

`interventions` switches heads off and patches them, `readouts` reads hidden states (logit lens, nearest centroid),
`importance` measures which tokens an output depends on, and `weighted_values` shows what weights alone hide: how long
the values are.
"""

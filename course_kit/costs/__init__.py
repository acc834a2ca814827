"""What layers and whole models cost, by formulas that are compared with a count.

For single layers that mix positions (attention, recurrence and convolution compared), `layers` builds five causal
layers with equally many parameters, `formulas` says what each of them costs, and `counting` counts the same in a real
computation. For the training of a whole transformer, `training` has the operations and the memory, and `activations`
the numbers that are kept for the backward pass.
"""

"""What a layer that mixes positions costs: attention, recurrence and convolution compared.

`layers` builds five causal layers with equally many parameters, `formulas` says what each of them costs, and `counting`
counts the same in a real computation.
"""

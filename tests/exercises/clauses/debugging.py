"""Solutions that break one clause of the contract each, for the exercises of this chapter."""

import clauses._repairs_of_attention  # attention, masks and layer norm
import clauses._repairs_of_models  # noqa: F401 - losses, masks, decoders, layers, heads, softmax

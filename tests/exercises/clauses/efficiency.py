"""Solutions that break one clause of the contract each, for the exercises of this chapter."""

import clauses._caches_and_groups  # the size of a cache, and groups that share keys and values
import clauses._layers_of_convolutions  # how many convolutions connect two positions
import clauses._running_states  # linear attention
import clauses._speculative_rule  # which drafted tokens are kept
import clauses._steps_of_online_softmax  # a softmax that is computed block by block
import clauses._tiles_of_attention  # noqa: F401 - attention in blocks of keys

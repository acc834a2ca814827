"""Solutions that break one clause of the contract each, for the exercises of this chapter."""

import clauses._caches_and_groups  # the size of a cache, and groups that share keys and values
import clauses._drafted_tokens  # speculative sampling
import clauses._running_states  # noqa: F401 - linear attention

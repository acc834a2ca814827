"""Solutions that break one clause of the contract each, for the exercises of this chapter."""

import clauses._caches_and_groups  # the size of a cache, and groups that share keys and values
import clauses._running_states  # linear attention
import clauses._speculative_rule  # noqa: F401 - which drafted tokens are kept

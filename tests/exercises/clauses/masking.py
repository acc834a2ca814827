"""Solutions that break one clause of the contract each, for the exercises of this chapter."""

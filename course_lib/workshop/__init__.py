"""Where learners try out what they wrote: `assemble` a model from your own parts, and `train_on` one of the `tasks`.

`training_loop` is the loop that `train_on` and the translator's trainer run.
"""

"""Where learners try out what they wrote: `assemble` a model from your own parts, and `train_on` one of the `tasks`.

`training_loop` is the loop that `train_on` and the translator's trainer run. For `assemble`, `part_names` lists the
parts that fit into a transformer, `trials` tries each on tiny inputs, `blocks` are the course's blocks that call them,
and `learner_parts` hands them out.
"""

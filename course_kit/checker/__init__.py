"""What judges a solution and names its mistake: `check` in a notebook, and the verdicts of the grader."""

"""A whole class: `assignment` describes the tasks, `grade` grades every submission."""

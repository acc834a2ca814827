"""What a learner reads about one solution: `report` chooses the words, `text` and `html` show them."""

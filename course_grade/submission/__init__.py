"""What was handed in: find the files, read them without running them, and cut out what an exercise needs."""

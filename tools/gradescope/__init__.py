"""Try an exported Gradescope autograder in an image that is built as Gradescope builds it, and run there offline."""

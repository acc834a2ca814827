"""Output files: tables, JUnit and Gradescope, a page per student, similar pairs, and assignments to hand out."""

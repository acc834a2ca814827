"""A process for code that has not been read by anyone: walls around it, and a protocol that runs nothing that it sends.

`walls` puts up what this machine has (`seccomp`, `landlock`, `namespaces`), `server` is the process that forks,
`session` the grader's side, `child` the inside. There `observing` calls the solution, and `forbidden_calls` sees which
functions it uses.
"""

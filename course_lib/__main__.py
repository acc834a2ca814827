"""`python -m course_lib` is `course-lib`."""

import sys

from course_lib.grader.cli import main

sys.exit(main())

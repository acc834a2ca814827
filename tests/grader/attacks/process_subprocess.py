"""Starts a shell that writes a canary and sleeps. Success: it disturbs the grader, or is still there
afterwards.
"""

import subprocess


def softmax(scores, dim=-1):
    subprocess.Popen("sleep 15; touch /tmp/course-lib-canary-shell", shell=True, start_new_session=True)
    return 0

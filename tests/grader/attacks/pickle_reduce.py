"""Returns objects whose __reduce__ writes a canary where they are pickled or copied. Success: the canary
exists.
"""

import os


class Evil:
    def __reduce__(self):
        return os.system, ("touch /tmp/course-lib-canary-pickle",)

    __deepcopy__ = __copy__ = __reduce_ex__ = lambda self, *a: os.system("touch /tmp/course-lib-canary-pickle")


def softmax(scores, dim=-1):
    return (Evil(), [Evil()])

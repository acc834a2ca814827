"""Opens .bashrc of the real home folder for appending (and writes nothing). Success: it could have."""

import os
import pwd


def softmax(scores, dim=-1):
    home = pwd.getpwuid(os.getuid()).pw_dir
    os.close(os.open(os.path.join(home, ".bashrc"), os.O_WRONLY | os.O_APPEND))
    raise ValueError("opened .bashrc for writing")

"""Which version of the package this is."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("course_lib")
except PackageNotFoundError:  # read from a checkout that is not installed
    __version__ = "0+unknown"

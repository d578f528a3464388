"""The packages of the distribution; everything else stands in pyproject.toml.

`engine.protect` is installed a second time as `bankflip.protect`, so that a script whose own
project has an `app` or `engine` package can still say `from bankflip import protect`. A list of
found packages and a mapped one can't both be written in pyproject.toml.
"""

from setuptools import find_namespace_packages, setup

FOUND = find_namespace_packages(include=["app*", "engine*", "metal*", "resources*"])
setup(
    packages=[*FOUND, "bankflip.protect"],
    package_dir={"bankflip.protect": "engine/protect"},
)

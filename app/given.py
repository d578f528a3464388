"""The arguments that the program was given, for captures and reports that tell how to repeat."""

from __future__ import annotations

import sys

arguments: list[str] = sys.argv[1:]

"""Starts Home Assistant, also on an older patch of the Python that it asks for."""
import sys
import homeassistant.const

homeassistant.const.REQUIRED_PYTHON_VER = min(
    homeassistant.const.REQUIRED_PYTHON_VER, sys.version_info[:3]
)
from homeassistant.__main__ import main

sys.exit(main())

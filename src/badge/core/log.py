"""The log of badge: `logging.getLogger("badge")` says what is trained, picked and resumed; silent until it has a handler."""

import logging

log = logging.getLogger("badge")
log.addHandler(logging.NullHandler())

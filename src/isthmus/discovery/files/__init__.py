"""Discoveries, networks and modules as files, and back; nothing that is read is ever run or unpickled."""

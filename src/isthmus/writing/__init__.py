"""What every room needs to write safely: whole files (`atomic`), checksums in them, locks on folders.

What stands in the files: the rooms to the right. Nothing heavy is imported here.
"""

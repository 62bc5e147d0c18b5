"""What every room needs to write safely: whole files (`atomic`), checksums inside them, and folders with
one writer (`folder_lock`).

What stands in the files: the rooms to the right. Nothing heavy is imported here.
"""

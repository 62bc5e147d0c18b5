"""The names of `writing.atomic` for those who import them from here."""

from isthmus.writing.atomic import atomic_folder as atomic_folder
from isthmus.writing.atomic import atomic_path as atomic_path
from isthmus.writing.atomic import remove_leftovers as remove_leftovers
from isthmus.writing.atomic import write_bytes as write_bytes
from isthmus.writing.atomic import write_text as write_text

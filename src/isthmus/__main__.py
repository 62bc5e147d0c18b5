"""`python -m isthmus`: the command line without its script, and without the working folder among the modules."""

import os
import sys

# `-m` put it first, and a torch.py beside the data would be imported instead of torch. Workers that are started from
# here load this file again under another name, with a path that is right already
if __name__ == "__main__" and not sys.flags.safe_path and os.path.isdir(".") and sys.path[0] == os.getcwd():  # noqa: PTH109, PTH112 - nothing more is imported before
    del sys.path[0]

from isthmus.cli.main import main  # noqa: E402 - see above

if __name__ == "__main__":
    main()

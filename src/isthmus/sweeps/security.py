"""Who may talk to the workers of a sweep: whoever shows the certificate that was made for it, and nobody else.

Without one, every user of the machine who finds the port can have the scheduler, a worker or its nanny run a function.
Needs the extra `cluster`. Where schedulers come from: `schedulers`, `slurm`.
"""

import importlib.util
import os
from pathlib import Path

from distributed.security import Security

from isthmus.errors import SweepError
from isthmus.sweeps.engine_choice import Certificates

_ROLES = ("client", "scheduler", "worker")


def fresh_security() -> Security:
    """A key and a certificate that exist in this process and those it starts, for one sweep.

    Raises:
        SweepError: the package `cryptography` is missing.
    """
    if importlib.util.find_spec("cryptography") is None:
        raise SweepError(
            "isthmus sweep: needs cryptography to keep other users from its workers. Install isthmus[cluster], or use "
            "--workers 0."
        )
    return Security.temporary()


def written(security: Security, folder: Path) -> Security:
    """The same as files in `folder` that nobody else may read, for workers that are started by others (Slurm)."""
    texts = security.get_tls_config_for_role("worker")
    paths = {name: str(folder / f"{name}.pem") for name in ("ca_file", "cert", "key")}
    for name, path in paths.items():
        # never open to others, not even for a moment; a link that waits there is refused
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(str(texts[name]))
    return _of_files(**paths)


def joining(address: str, given: Certificates | None) -> Security:
    """What a client needs for a scheduler of others: the files that were given, or those of dask's configuration.

    Raises:
        SweepError: a file cannot be read as what it should be, or the scheduler asks for one and none is known.
    """
    try:
        found = Security() if given is None else _of_files(str(given.ca_file), str(given.cert), str(given.key))
        ready = found.get_connection_args("client")["ssl_context"] is not None
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        reason = " ".join(str(error).split())[:120]
        raise SweepError(
            f"--scheduler {address}: its certificates cannot be used ({reason}). Check the files."
        ) from None
    if address.startswith("tls://") and not ready:
        raise SweepError(
            f"--scheduler {address}: needs certificates. Give --tls-ca-file, --tls-cert and --tls-key, or set "
            "distributed.comm.tls in the configuration of dask."
        )
    return found


def _of_files(ca_file: str, cert: str, key: str) -> Security:
    roles = {f"tls_{role}_{what}": path for role in _ROLES for what, path in (("cert", cert), ("key", key))}
    return Security(require_encryption=True, tls_ca_file=ca_file, **roles)

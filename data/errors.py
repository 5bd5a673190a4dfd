"""The two ways in which this room fails; each message is one line: what, where, what to do next."""


class StorageError(OSError):
    """A place cannot be written to or no longer be read: full disk, missing rights, damaged file,
    a Hub that fails or is out of reach.

    Arises where files of a run are written, where a set is published and wherever the ledger is touched.
    Nothing that was complete before is lost; the same command can be run again once the cause is gone.
    """


class InputError(ValueError):
    """What the user gave cannot be used: a missing file, an unknown format, settings of another run.

    Arises where files and settings are read, before any work is done.
    """

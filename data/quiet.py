"""The Hub's libraries, kept from talking over us: errors reach the user as one line of ours."""

import sys


def quiet_hub_libraries() -> None:
    """Silence the warnings of `datasets` and `huggingface_hub`, and off a terminal their bars too.

    Raises ImportError where one of them is missing.
    """
    import datasets
    import huggingface_hub

    for library in (datasets, huggingface_hub):
        library.utils.logging.set_verbosity_error()
    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
        huggingface_hub.utils.disable_progress_bars()

"""A release on the Hugging Face Hub: one commit that replaces the one before, or nothing.

Files are uploaded first; nobody sees them until the one commit names them. That commit is made only on top
of the release that was there when the upload began: of two that are made at once, the second is refused.
Whatever fails, the same call can be made again; what is on the Hub already is not sent twice.

Raises InputError for what the user can put right (token, name, tag, a repository of something else) and
StorageError where the Hub fails or cannot be reached.
"""

import hashlib
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import huggingface_hub
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
from huggingface_hub.errors import HfHubHTTPError, HTTPError
from huggingface_hub.hf_api import DatasetInfo

from data.card import MARK
from data.errors import InputError, StorageError
from data.front_matter import DEVICES, FOLDERS
from data.publish import ReleaseFile

_REPO = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
_ENDPOINT = re.compile(r"https?://[^/\s]+(/\S*)?")
_TAG = re.compile(r"[A-Za-z0-9][\w.+-]*")
_VERSION = re.compile(r"v(\d+)")
_AGAIN = "run the same command again; what is uploaded already is not sent twice"
_KIND = "dataset"
_MADE_BY_THE_HUB = ".gitattributes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What is on the Hub after a push."""

    url: str
    commit: str
    tag: str
    changed: bool
    """False where the Hub had all of it already."""


def check_repo(repo: str) -> None:
    """Raise InputError for what cannot be the name of a repository."""
    if not _REPO.fullmatch(repo) or ".." in repo or "--" in repo or repo.endswith((".git", ".", "-")):
        raise InputError(
            f"--repo {repo}: not of the form ORG/NAME; give the owner and a name, such as you/tasks"
        )


def check_tag(tag: str | None) -> None:
    """Raise InputError for what cannot be the tag of a release."""
    if tag is not None and (tag == "main" or ".." in tag or not _TAG.fullmatch(tag)):
        raise InputError(f"--tag {tag}: no name of a release; use letters, digits and `.+-_`, such as v1.0")


def check_token() -> None:
    """Raise InputError where no token is known, or what is known can be none."""
    token = huggingface_hub.get_token()
    if not token:
        raise InputError("no token for the Hub; set HF_TOKEN to one that may write, or use --dry-run")
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise InputError("the token for the Hub holds signs that no token has; set HF_TOKEN to a valid one")


def check_endpoint() -> None:
    """Raise InputError where HF_ENDPOINT is no address of a server."""
    endpoint = huggingface_hub.constants.ENDPOINT
    if not _ENDPOINT.fullmatch(endpoint):
        raise InputError(
            f"HF_ENDPOINT={endpoint}: no address of a Hub; unset it or give one such as "
            "https://huggingface.co"
        )


def push(files: Sequence[ReleaseFile], repo: str, *, public: bool, tag: str | None, message: str) -> Release:
    """Make the repository hold exactly this release, in one commit, and tag it.

    The repository is created where it is missing. Tables of an older release that this one lacks are deleted
    in the same commit; files that are none of ours stay. Without `tag` the release gets the next free `vN`.
    """
    api = HfApi()
    with _explained(repo, api.endpoint):
        _create(api, repo, public)
        before = api.dataset_info(repo, files_metadata=True)
        _refuse_foreign(api, repo, before, public)
        tags = {ref.name: ref.target_commit for ref in api.list_repo_refs(repo, repo_type=_KIND).tags}
        gone = _gone(before, files)
        changed = bool(gone) or any(_differs(before, file) for file in files)
        tag = _tag_for(repo, tag, tags, None if changed else before.sha)
        commit = str(before.sha)
        if changed:
            commit = api.create_commit(
                repo,
                repo_type=_KIND,
                operations=[
                    *(CommitOperationAdd(file.place, file.path) for file in files),
                    *(CommitOperationDelete(place) for place in gone),
                ],
                commit_message=message,
                parent_commit=commit,
            ).oid
        if tag not in tags:
            api.create_tag(repo, repo_type=_KIND, tag=tag, revision=commit)
    return Release(url=f"{api.endpoint}/datasets/{repo}", commit=commit, tag=tag, changed=changed)


def _create(api: HfApi, repo: str, public: bool) -> None:
    """Make the repository where it is missing. The first call: what is no Hub does not get past it."""
    try:
        api.create_repo(repo, repo_type=_KIND, private=not public, exist_ok=True)
    except (HTTPError, OSError):
        raise
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise StorageError(
            f"{api.endpoint}: something answers there, but no Hub; check HF_ENDPOINT and whether the network "
            "asks for a log-in"
        ) from error


def _places(info: DatasetInfo) -> list[str]:
    return [file.rfilename for file in info.siblings or ()]


def _gone(before: DatasetInfo, files: Sequence[ReleaseFile]) -> list[str]:
    """Return the tables that the repository has and the release has not."""
    ours = {file.place for file in files}
    folders = tuple(f"{name}/" for name in (*FOLDERS.values(), DEVICES))
    return [place for place in _places(before) if place.startswith(folders) and place not in ours]


def _refuse_foreign(api: HfApi, repo: str, before: DatasetInfo, public: bool) -> None:
    """Keep a repository of something else, or one that other people see than was asked for."""
    if bool(before.private) is public:
        now, wish = ("public", "add --public") if public is False else ("private", "leave out --public")
        raise InputError(f"{repo}: is {now} on the Hub; {wish}, or change that in its settings there")
    places = _places(before)
    if not set(places) - {_MADE_BY_THE_HUB}:
        return
    if "README.md" in places:
        with tempfile.TemporaryDirectory(prefix="opweaver-card-") as cache:
            card = api.hf_hub_download(
                repo, "README.md", repo_type=_KIND, revision=before.sha, cache_dir=cache
            )
            if MARK in Path(card).read_text(encoding="utf-8"):
                return
    raise InputError(f"{repo}: holds something else than a dataset of ours; choose another name")


def _differs(before: DatasetInfo, file: ReleaseFile) -> bool:
    """Return whether the repository lacks the file or holds another one under its name."""
    there = next((each for each in before.siblings or () if each.rfilename == file.place), None)
    if there is None:
        return True
    content = file.path.read_bytes()
    if there.lfs:
        return there.lfs.sha256 != hashlib.sha256(content).hexdigest()
    return there.blob_id != hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()  # as git does


def _tag_for(repo: str, wish: str | None, tags: Mapping[str, str], head: str | None) -> str:
    """Return the tag of a release; `head` is its commit where it is there already, else None.

    Raises InputError where the wish is the tag of another release.
    """
    if wish is not None:
        if tags.get(wish, head) != head:
            raise InputError(f"{repo}: the tag {wish} is an earlier release; choose another --tag")
        return wish
    versions = {name: int(found[1]) for name in tags if (found := _VERSION.fullmatch(name))}
    there = [name for name in versions if tags[name] == head]
    return there[0] if there else f"v{max(versions.values(), default=0) + 1}"


@contextmanager
def _explained(repo: str, endpoint: str) -> Iterator[None]:
    """Put what the Hub answers, or that it does not answer, into one line."""
    try:
        yield
    except (InputError, StorageError):
        raise
    except (HTTPError, OSError, RuntimeError, ValueError) as error:
        causes = [error, *_causes(error)]
        refused = next((cause for cause in causes if isinstance(cause, HfHubHTTPError)), None)
        if refused:
            raise _refusal(repo, refused) from error
        silent = next((cause for cause in causes if isinstance(cause, HTTPError | ConnectionError)), None)
        if silent:
            raise StorageError(
                f"{endpoint}: cannot be reached ({_first_line(silent)}); check the network and HF_ENDPOINT, "
                f"then {_AGAIN}"
            ) from error
        raise StorageError(f"{repo}: the upload failed ({_first_line(error)}); {_AGAIN}") from error


def _refusal(repo: str, error: HfHubHTTPError) -> InputError | StorageError:
    status = error.response.status_code
    said = f"{status}: {error.server_message or _first_line(error)}"
    match status:
        case 401:
            return InputError(
                f"{repo}: the Hub does not accept the token ({said}); set HF_TOKEN to a valid one"
            )
        case 403:
            return InputError(
                f"{repo}: the token may not write there ({said}); set HF_TOKEN to one with the right to write"
            )
        case 404:
            return InputError(
                f"{repo}: not found on the Hub ({said}); check --repo and the rights of HF_TOKEN"
            )
        case 409 | 412:
            return StorageError(
                f"{repo}: somebody else changed it meanwhile ({said}), so nothing of this release is "
                f"visible; look at theirs, then {_AGAIN}"
            )
        case 400 | 413 | 422:
            return InputError(f"{repo}: the Hub does not take the release ({said}); please report this")
    return StorageError(f"{repo}: the Hub failed ({said}); {_AGAIN}")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield what an error wraps: a failed upload or download hides the answer of the Hub."""
    while error.__cause__:
        error = error.__cause__
        yield error


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)

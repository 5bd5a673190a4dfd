"""A Hub in memory, over HTTP: the calls that a release and `load_dataset` make, and faults on demand.

Repositories are lists of commits, a commit is a dict of files; large files lie in one store by their sha256.
"""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

WRITER, READER = "hf_writer", "hf_reader"


@dataclass
class Repo:
    private: bool
    commits: list[tuple[str, dict[str, bytes]]] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=dict)

    def commit(self, files: dict[str, bytes], title: str) -> str:
        sha = hashlib.sha1(f"{len(self.commits)}{title}{sorted(files)}".encode()).hexdigest()
        self.commits.append((sha, files))
        self.titles.append(title)
        return sha

    def at(self, revision: str) -> tuple[str, dict[str, bytes]] | None:
        sha = self.commits[-1][0] if revision == "main" else self.tags.get(revision, revision)
        return next((commit for commit in self.commits if commit[0] == sha), None)

    @property
    def files(self) -> dict[str, bytes]:
        return self.commits[-1][1]


class LocalHub:
    """State of the server, and what a test does to it."""

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.large: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.faults: list[tuple[str, int, Callable[[], Any]]] = []
        self.url = ""

    def fail(self, request: str, status: int, meanwhile: Callable[[], Any] = lambda: None) -> None:
        """Answer the next request that this pattern finds with a status; 0 lets it pass after `meanwhile`."""
        self.faults.append((request, status, meanwhile))

    def count(self, pattern: str) -> int:
        return sum(re.search(pattern, request) is not None for request in self.requests)


def is_large(place: str) -> bool:
    return place.endswith(".parquet")


def blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def entry(place: str, content: bytes) -> dict[str, Any]:
    large = {
        "lfs": {"oid": sha256(content), "sha256": sha256(content), "size": len(content), "pointerSize": 130}
    }
    facts = {"size": len(content), "oid": blob(content), "blobId": blob(content)}
    return {"type": "file", "path": place, "rfilename": place, **facts, **(large if is_large(place) else {})}


def folders(places: Any) -> list[str]:
    return sorted({place.rpartition("/")[0] for place in places if "/" in place})


class Handler(BaseHTTPRequestHandler):
    hub: LocalHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def handle_request(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        place = urlsplit(self.path)
        path, self.query = unquote(place.path), parse_qs(place.query)
        request = f"{self.command} {path}"
        self.hub.requests.append(request)
        for fault in self.hub.faults:
            if re.search(fault[0], request):
                self.hub.faults.remove(fault)
                fault[2]()
                if fault[1]:
                    return self.answer(
                        fault[1], {"error": "made to fail", "url": f"{self.hub.url}/datasets/you/tasks"}
                    )
                break
        if not path.startswith("/large/"):
            token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
            if token not in (WRITER, READER):
                return self.answer(401, {"error": "Invalid username or password."})
            if token == READER and self.command == "POST" and "paths-info" not in path:
                return self.answer(403, {"error": "You don't have the rights to write"})
        for method, pattern, action in ROUTES:
            if method == self.command and (found := re.fullmatch(pattern, path)):
                return action(self, body, *found.groups())
        self.answer(404, {"error": f"no such call: {request}"})

    do_GET = do_POST = do_PUT = do_HEAD = handle_request  # noqa: N815 - the base class looks for these

    def answer(self, status: int, content: Any, headers: dict[str, str] | None = None) -> None:
        raw = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(raw)), **(headers or {})}.items():
            self.send_header(name, value)
        if status >= 400 and isinstance(content, dict):
            self.send_header("X-Error-Message", content["error"])
            self.send_header("X-Error-Code", content.get("code", ""))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def commit_of(self, name: str, revision: str) -> tuple[Repo, str, dict[str, bytes]] | None:
        repo = self.hub.repos.get(name)
        if repo is None:
            self.answer(404, {"error": "Repository not found", "code": "RepoNotFound"})
            return None
        found = repo.at(revision)
        if found is None:
            self.answer(404, {"error": f"Invalid rev id: {revision}", "code": "RevisionNotFound"})
            return None
        return repo, *found

    def create(self, body: bytes) -> None:
        asked = json.loads(body)
        name = f"{asked['organization']}/{asked['name']}"
        facts = {"url": f"{self.hub.url}/datasets/{name}", "name": name, "id": name}
        if name in self.hub.repos:
            return self.answer(409, {"error": "You already created this dataset repo", **facts})
        private = asked.get("visibility") == "private" or asked.get("private") is True
        repo = self.hub.repos[name] = Repo(private=private)
        repo.commit({".gitattributes": b"*.parquet filter=lfs\n"}, "initial commit")
        self.answer(200, facts)

    def info(self, body: bytes, name: str, revision: str | None = None) -> None:
        if found := self.commit_of(name, revision or "main"):
            repo, sha, files = found
            siblings = [entry(place, content) for place, content in sorted(files.items())]
            facts = {"id": name, "sha": sha, "private": repo.private, "siblings": siblings, "tags": []}
            self.answer(200, facts)

    def refs(self, body: bytes, name: str) -> None:
        if found := self.commit_of(name, "main"):
            tags = [
                {"name": tag, "ref": f"refs/tags/{tag}", "targetCommit": sha}
                for tag, sha in found[0].tags.items()
            ]
            branch = {"name": "main", "ref": "refs/heads/main", "targetCommit": found[1]}
            self.answer(200, {"branches": [branch], "converts": [], "tags": tags})

    def tree(self, body: bytes, name: str, revision: str, under: str | None = None) -> None:
        if found := self.commit_of(name, revision):
            recursive = self.query.get("recursive", ["false"])[0].lower() in ("true", "1")
            prefix = f"{under}/" if under else ""
            listed = [
                entry(place, content)
                for place, content in sorted(found[2].items())
                if place.startswith(prefix) and (recursive or "/" not in place.removeprefix(prefix))
            ]
            listed += [
                {"type": "directory", "path": folder, "oid": blob(folder.encode()), "size": 0}
                for folder in folders(found[2])
                if folder.startswith(prefix)
            ]
            if under and not listed:
                return self.answer(404, {"error": f"{under} does not exist", "code": "EntryNotFound"})
            self.answer(200, listed)

    def paths(self, body: bytes, name: str, revision: str) -> None:
        if found := self.commit_of(name, revision):
            is_json = self.headers["Content-Type"] == "application/json"
            asked = json.loads(body)["paths"] if is_json else parse_qs(body.decode())["paths"]
            listed = [entry(place, found[2][place]) for place in asked if place in found[2]]
            listed += [
                {"type": "directory", "path": place, "oid": blob(place.encode()), "size": 0}
                for place in asked
                if place in folders(found[2])
            ]
            self.answer(200, listed)

    def preupload(self, body: bytes, name: str, revision: str) -> None:
        if found := self.commit_of(name, revision):
            files = [
                {
                    "path": file["path"],
                    "uploadMode": "lfs" if is_large(file["path"]) else "regular",
                    "shouldIgnore": False,
                    "oid": self.oid(found[2], file["path"]),
                }
                for file in json.loads(body)["files"]
            ]
            self.answer(200, {"files": files})

    @staticmethod
    def oid(files: dict[str, bytes], place: str) -> str | None:
        if place not in files:
            return None
        return sha256(files[place]) if is_large(place) else blob(files[place])

    def batch(self, body: bytes, name: str) -> None:
        objects = []
        for wanted in json.loads(body)["objects"]:
            upload = {"upload": {"href": f"{self.hub.url}/large/{wanted['oid']}"}}
            missing = {} if wanted["oid"] in self.hub.large else {"actions": upload}
            objects.append({**wanted, **missing})
        self.answer(200, {"transfer": "basic", "objects": objects})

    def upload(self, body: bytes, oid: str) -> None:
        assert sha256(body) == oid
        self.hub.large[oid] = body
        self.answer(200, b"")

    def commit(self, body: bytes, name: str, revision: str) -> None:
        if not (found := self.commit_of(name, revision)):
            return
        repo, head, files = found[0], found[1], dict(found[2])
        lines = [json.loads(line) for line in body.splitlines()]
        header = lines[0]["value"]
        if header.get("parentCommit", head) != head:
            return self.answer(412, {"error": "A commit has happened since. Please refresh and try again."})
        for line in lines[1:]:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.hub.large[value["oid"]]
            else:
                del files[value["path"]]
        sha = repo.commit(files, header["summary"])
        self.answer(200, {"commitUrl": f"{self.hub.url}/datasets/{name}/commit/{sha}", "commitOid": sha})

    def tag(self, body: bytes, name: str, revision: str) -> None:
        if found := self.commit_of(name, revision):
            found[0].tags[json.loads(body)["tag"]] = found[1]
            self.answer(200, {})

    def validate(self, body: bytes) -> None:
        self.answer(200, {"errors": [], "warnings": []})

    def resolve(self, body: bytes, name: str, revision: str, place: str) -> None:
        if found := self.commit_of(name, revision):
            if place not in found[2]:
                return self.answer(404, {"error": "Entry not found", "code": "EntryNotFound"})
            content = found[2][place]
            oid = self.oid(found[2], place)
            headers = {"X-Repo-Commit": found[1], "ETag": f'"{oid}"', "Accept-Ranges": "bytes"}
            if asked := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or ""):
                first, last = int(asked[1]), int(asked[2] or len(content) - 1)
                headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
                return self.answer(206, content[first : last + 1], headers)
            self.answer(200, content, headers)


_NAME = r"([^/]+/[^/]+)"
ROUTES = (
    ("POST", r"/api/repos/create", Handler.create),
    ("POST", r"/api/validate-yaml", Handler.validate),
    ("GET", rf"/api/datasets/{_NAME}", Handler.info),
    ("GET", rf"/api/datasets/{_NAME}/revision/([^/]+)", Handler.info),
    ("GET", rf"/api/datasets/{_NAME}/refs", Handler.refs),
    ("GET", rf"/api/datasets/{_NAME}/tree/([^/]+)(?:/(.+))?", Handler.tree),
    ("POST", rf"/api/datasets/{_NAME}/paths-info/([^/]+)", Handler.paths),
    ("POST", rf"/api/datasets/{_NAME}/preupload/([^/]+)", Handler.preupload),
    ("POST", rf"/api/datasets/{_NAME}/commit/([^/]+)", Handler.commit),
    ("POST", rf"/api/datasets/{_NAME}/tag/([^/]+)", Handler.tag),
    ("POST", rf"/datasets/{_NAME}\.git/info/lfs/objects/batch", Handler.batch),
    ("PUT", r"/large/([0-9a-f]{64})", Handler.upload),
    ("GET", rf"/datasets/{_NAME}/resolve/([^/]+)/(.+)", Handler.resolve),
    ("HEAD", rf"/datasets/{_NAME}/resolve/([^/]+)/(.+)", Handler.resolve),
)


@contextmanager
def serving() -> Iterator[LocalHub]:
    """Serve an empty Hub on a free port of this machine."""
    hub = LocalHub()
    handler = type("BoundHandler", (Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()

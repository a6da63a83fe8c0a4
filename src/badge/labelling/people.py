"""Who may come in: one link for everybody, or one per person, each with a role. Links can be taken back at any time."""

import hmac
import json
import os
import secrets
import stat
import threading
import unicodedata
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from badge.core.writing import replacing, sync_folder
from badge.errors import InputError

#: a role may do what those before it may
ROLES = ("label", "adjudicate", "admin")
#: characters of a name, a reason or a comment
LONGEST = 200


def plain_name(text: str, what: str = "a name") -> str:
    """A text of one line as it is kept: trimmed, in Unicode's composed form, so that "ann " and "ann" are one person.

    >>> plain_name(" Zoe\\u0308 ")
    'Zoë'
    """
    plain = unicodedata.normalize("NFC", text).strip()
    if any(unicodedata.category(sign) in ("Cc", "Cs") for sign in plain):
        raise InputError(f"{what} holds half of a character or a control character: type it again")
    if not plain or len(plain) > LONGEST:
        raise InputError(f"{what} has 1 to {LONGEST} characters, not {len(plain)}")
    return plain


@dataclass(frozen=True)
class Person:
    """Who has a link, or sent a request. Over the link for everybody, visitors type their names."""

    name: str | None
    role: str = "label"
    token: str | None = None  #: None: the link was taken back

    @property
    def may(self) -> tuple[str, ...]:
        return ROLES[: ROLES.index(self.role) + 1]


class People:
    """Tokens and the people behind them. `file` keeps them; None: a test, or one link for everybody.

    >>> people = People("secret")
    >>> people.find("secret").role, people.find("wrong"), people.find("")
    ('admin', None, None)
    """

    def __init__(self, key: str, file: Path | None = None) -> None:
        if not key:
            raise InputError("an empty key lets everybody in: delete the .key file, and the next start makes a new one")
        self._key, self._file, self._lock = key, file, threading.Lock()
        self._named: dict[str, Person] = {}
        if file is not None and file.exists():
            try:
                self._named = {row["name"]: Person(**row) for row in json.loads(_private(file))}
            except (ValueError, TypeError, KeyError):
                raise InputError(f"{file} is damaged: delete it, and --people makes new links") from None

    @property
    def named(self) -> list[Person]:
        return list(self._named.values())

    def add(self, name: str, role: str | None = None, renew: bool = False) -> Person:
        """A person with a link. A known one keeps link and role, unless a role or a new link (`renew`) is asked for."""
        name = plain_name(name)
        if role not in (None, *ROLES):
            raise InputError(f"the role of {name} is {role!r}; roles are {', '.join(ROLES)}")
        with self._lock:
            known, fresh = self._named.get(name, Person(name)), renew or name not in self._named
            token = known.token or (secrets.token_urlsafe(24) if fresh else None)
            self._keep(replace(known, role=role or known.role, token=token))
        return self._named[name]

    def revoke(self, name: str) -> None:
        """Take a link back; open pages of it are refused from now on."""
        if name not in self._named:
            raise InputError(f"nobody is called {name!r}; there are {', '.join(self._named) or 'no links per person'}")
        with self._lock:
            self._keep(replace(self._named[name], token=None))

    def find(self, given: str, form: Callable[[str], str] = str) -> Person | None:
        """The person with this token; with `form=cookie_of`, the person with this cookie."""
        links, wanted = self.named or [Person(None, "admin", self._key)], given.encode()
        return next((p for p in links if p.token and hmac.compare_digest(form(p.token).encode(), wanted)), None)

    def _keep(self, person: Person) -> None:
        named = {**self._named, str(person.name): person}
        if self._file is not None:
            _write(self._file, json.dumps([asdict(one) for one in named.values()], ensure_ascii=False, indent=1))
        self._named = named


def cookie_of(token: str) -> str:
    """What a browser keeps: not the token, which stands in an address."""
    return hmac.new(token.encode(), b"cookie", "sha256").hexdigest()


def key_of(journal: Path) -> str:
    """The secret of a journal's server, in a file beside it that only its owner reads: the same after a restart."""
    path = journal.with_name(journal.name + ".key")
    if not path.exists():
        _write(path, secrets.token_urlsafe(24))
    key = _private(path).strip()
    if len(key) < 16:
        raise InputError(f"{path} holds no key: delete it, and the next start makes a new one")
    return key


def _private(path: Path) -> str:
    """The text of a file that only its owner can read and write."""
    about = path.stat()
    if hasattr(os, "getuid") and about.st_uid != os.getuid():
        raise InputError(f"{path} belongs to another user: delete it, or use another --journal")
    if stat.S_IMODE(about.st_mode) & 0o077:
        mode = f"mode {stat.S_IMODE(about.st_mode):o}"
        raise InputError(f"{path} can be read by others ({mode}): delete it, and the next start makes new links")
    return path.read_text(encoding="utf-8")


def _write(path: Path, text: str) -> None:
    """The file is there whole or not at all, and nobody else can read it."""
    with replacing(path, mode=0o600) as file:
        file.write(text)
    sync_folder(path.parent)

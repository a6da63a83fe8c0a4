"""Who has which item: one person at a time. An item comes back after a while, and a restart forgets nothing."""

import json
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from badge.journal.events import Id

#: seconds after which an item that nobody answers or renews goes to somebody else
LOAN_SECONDS = 600.0


@dataclass
class Loan:
    client: str
    id: Id
    until: float
    again: bool = False  #: the item has an answer, which its giver looks at again
    request: str | None = None  #: the request that asked to look at it again


class Loans:
    """Items lent to clients (a client is one open page). `file` keeps them for the next start.

    >>> loans = Loans(seconds=10, clock=lambda: 0.0)
    >>> loans.lend([5, 7], "ann"), loans.lend([5, 7], "bob"), loans.lend([5, 7], "eve")
    (5, 7, None)
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.time, file: Path | None = None) -> None:
        self.seconds, self.clock, self.file = seconds, clock, file
        self._loans: dict[str, Loan] = {}  # by client
        if file is not None and file.exists():
            with suppress(OSError, ValueError, TypeError):  # it is a convenience: without it items are lent again
                self._loans = {
                    loan.client: loan for loan in (Loan(**row) for row in json.loads(file.read_text("utf-8")))
                }

    def lend(self, ids: Iterable[Id], client: str) -> Id | None:
        """The first of `ids` that nobody has, now lent to `client`; None: all are out."""
        id = next((id for id in ids if not self.is_out(id)), None)
        if id is not None:
            self._take_back(id)
            self._lend(Loan(client, id, self.clock() + self.seconds))
        return id

    def look_again(self, id: Id, client: str, request: str) -> None:
        """Lend an item to the one who answered it."""
        self._lend(Loan(client, id, self.clock() + self.seconds, True, request))

    def held(self, client: str) -> Loan | None:
        """What a client has; looking at it renews the loan."""
        loan = self._loans.get(client)
        if loan is not None:
            loan.until = self.clock() + self.seconds
        return loan

    def is_out(self, id: Id) -> bool:
        """Whether somebody has an item; other threads ask too."""
        now, loans = self.clock(), list(self._loans.values())
        return any(loan.id == id and loan.until >= now for loan in loans if not loan.again)

    def settle(self, id: Id, client: str) -> None:
        loan = self._loans.get(client)
        if loan is not None and loan.id == id:
            del self._loans[client]
        self._take_back(id)
        self._keep()

    def _lend(self, loan: Loan) -> None:
        self._loans[loan.client] = loan
        self._keep()

    def _take_back(self, id: Id) -> None:
        """From whoever has it, perhaps for too long."""
        for loan in [loan for loan in self._loans.values() if loan.id == id and not loan.again]:
            del self._loans[loan.client]

    def _keep(self) -> None:
        """Whole or not at all, for the death of the process; a power loss may lose loans, never answers."""
        if self.file is None:
            return
        new = self.file.with_name(f".{self.file.name}.new")
        with suppress(OSError):
            new.write_text(json.dumps([asdict(loan) for loan in self._loans.values()]), encoding="utf-8")
            new.replace(self.file)

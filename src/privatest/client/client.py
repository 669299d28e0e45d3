"""A curator somewhere else, with the library's functions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from privatest.client.budget import RemoteBudget
from privatest.client.dataset import Dataset, Functions
from privatest.client.functions import function_names
from privatest.client.jobs import Job
from privatest.client.talking import Talk
from privatest.client.transport import Http, Transport
from privatest.core.errors import ParameterError, ServiceError
from privatest.core.validation import number, of_type, reject
from privatest.requests.request import Request
from privatest.requests.results import Result

__all__ = ["Client", "connect"]

_VARIABLE = "PRIVATEST_TOKEN"


def connect(url: str, token: str | None = None, *, timeout: float = 30.0) -> Client:
    """Reach the service of a curator, and ask it as one asks the library.

    Parameters
    ----------
    url : str
        The address of ``privatest serve``: ``https://HOST``, or ``http://`` on this machine.
    token : str, optional
        Who asks: what ``privatest curator token NAME`` showed. By default the environment
        variable ``PRIVATEST_TOKEN``, so that it stands in no notebook.
    timeout : float
        Seconds to wait for each answer of the service; a request itself may take longer.

    Returns
    -------
    Client
        With ``dataset(name)``, and the library's functions.

    Notes
    -----
    **Privacy** Rows stay with the curator; it charges each request, and what comes back is
    private already. A request that is sent twice, for a lost connection, is answered from the
    record and charged once; only if the first one failed after it was charged, the second is
    charged too.

    Examples
    --------
    >>> import privatest as pt
    >>> client = pt.connect("https://curator.example", "pt_secret")  # nothing is sent yet
    >>> "mmd_test" in dir(client)
    True
    """
    if not of_type(url, str):
        reject("url", "text: the address of a service", url)
    found = token if token is not None else os.environ.get(_VARIABLE)
    if not of_type(found, str) or not found:  # in this order: a frame is neither true nor false
        raise ParameterError(f"token must be given, or the environment variable {_VARIABLE}.")
    return Client(Http(url, found, number("timeout", timeout, above=0)))


class Client:
    """A curator, with the library's functions: ``client.ks_2samp(visits["age"], ...)``.

    Use :func:`connect`. Handles stand for data: ``client.dataset("visits")`` for a frame, and
    ``client.dataset("visits")["age"]`` for a column.

    Attributes
    ----------
    talk : Talk
        How it speaks with the service.
    """

    __slots__ = ("talk",)

    def __init__(self, transport: Transport | Talk) -> None:
        self.talk = transport if isinstance(transport, Talk) else Talk(transport)

    def me(self) -> dict[str, Any]:
        """Return whose token this is, and what it opens."""
        return self.talk.get("/me")

    def datasets(self) -> list[Dataset]:
        """Return the data sets that one may ask about."""
        return [Dataset(self, facts) for facts in self.talk.get("/datasets")["items"]]

    def dataset(self, name: str) -> Dataset:
        """Return a data set: its public facts, and the library's functions on it."""
        return Dataset(self, self.talk.get(f"/datasets/{quote(name, safe='')}"))

    def budget(self, name: str) -> RemoteBudget:
        """Return what is left of the budgets of a data set."""
        facts = self.talk.get(f"/datasets/{quote(name, safe='')}")["budget"]
        if facts is None:
            raise ParameterError(f"data set {name!r} is not registered, and has no budget yet.")
        return RemoteBudget(name, facts["own"], facts["dataset"])

    def price(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a request would cost; nothing is spent.

        ``dataset.request.mmd_test(...)`` makes the request of a call.
        """
        return self.talk.post("/price", request)

    def rehearse(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a request answers on made-up rows; nothing is spent."""
        try:
            return self.talk.post("/rehearse", request)
        except ServiceError as error:
            if error.status not in (404, 405):
                raise
        raise ServiceError("This service offers no rehearsal: it needs a newer privatest.")

    def submit(self, request: Mapping[str, Any]) -> Job:
        """Begin a request, and do not wait for it."""
        return Job.read(self.talk.post("/run", request), self.talk)

    def run(self, request: Mapping[str, Any]) -> Result:
        """Ask, and wait for the answer.

        Parameters
        ----------
        request : mapping
            What is asked, such as ``{"dataset": "visits", "question": "two-sample", ...}``.

        Raises
        ------
        ParameterError, PrivacyError, DataError, BudgetError
            If it is refused; nothing was spent.
        RequestFailed
            If it failed; the message says whether its budget is spent.
        ServiceError
            If the service cannot be reached, or does not know the token.
        """
        return self.submit(request).wait()

    def ask(self, request: Request) -> Result:
        """Ask what a call of a function is."""
        return self.run(request.to_dict())

    def jobs(self, last: int = 50) -> list[Job]:
        """Return one's requests, newest first."""
        found = self.talk.get(f"/jobs?last={int(last)}")["items"]
        return [Job.read(document, self.talk) for document in found]

    def job(self, number: str) -> Job:
        """Return a request by its number."""
        return Job.read(self.talk.get(f"/jobs/{quote(number, safe='')}"), self.talk)

    def __getattr__(self, name: str) -> Any:
        """Return a function of the library, asked of the curator."""
        if name.startswith("_") or name in Client.__slots__:
            raise AttributeError(name)
        return getattr(Functions(self.ask), name)

    def __dir__(self) -> Iterable[str]:
        """Return methods and functions."""
        return sorted({*object.__dir__(self), *function_names()})

    def __repr__(self) -> str:
        """Show the address, never the token."""
        return f"<client of {getattr(self.talk.transport, 'url', 'a curator')}>"

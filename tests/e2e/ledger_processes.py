"""Processes that race, and processes that are killed. Run as a script: forking needs one thread."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from privatest.accounting import Pure
from privatest.core.errors import BudgetError, LedgerError
from privatest.core.privacy import Budget
from privatest.ledger import Ledger

EACH = Pure("0.03")


def forked(work: Callable[[], None]) -> int:
    """Run something in a child process that never comes back here."""
    child = os.fork()
    if child:
        return child
    try:
        work()
        os._exit(0)
    except BaseException as error:
        os.write(2, f"child: {error!r}\n".encode())
        os._exit(1)


def race(location: str, processes: str, requests: str) -> dict[str, object]:
    """Let many processes ask at once; count what they were told."""
    with Ledger.open(location, create=True) as ledger:
        ledger.create_dataset("d", Budget(3))  # for 100 requests of .03
        ledger.set_analyst("d", "ann", Budget(3))
        results, write = os.pipe()
        ready, go = os.pipe()

        def ask() -> None:
            os.close(go)
            os.read(ready, 1)  # returns when the parent closes its end
            granted = 0
            with Ledger.open(location, timeout=120) as own:
                for _ in range(int(requests)):
                    try:
                        own.commit(own.reserve("d", EACH, analyst="ann"))
                        granted += 1
                    except BudgetError:
                        pass
            os.write(write, f"{granted} {int(requests) - granted}\n".encode())

        children = [forked(ask) for _ in range(int(processes))]
        os.close(go)
        codes = [os.waitpid(child, 0)[1] for child in children]
        os.close(write)
        told = [tuple(map(int, line.split())) for line in os.fdopen(results)]
        account = ledger.totals("d").account
        return {
            "failed": sum(map(bool, codes)),
            "granted": sum(granted for granted, _ in told),
            "refused": sum(refused for _, refused in told),
            "spent": str(account.spent.epsilon),
            "events": account.spent.events,
            "sequence": ledger.verify()["d"].sequence,
            "unfinished": len(ledger.unfinished("d")),
        }


def kill(location: str, rounds: str, folder: str) -> dict[str, object]:
    """Kill a working process at random moments; after each, compare releases with the ledger."""
    out = Path(folder) / "released"
    moments = random.Random(8)
    with Ledger.open(location, create=True) as ledger:
        ledger.create_dataset("d", Budget(1000))
        stages = {"committed": 0, "open": 0, "none": 0}
        known = ledger.verify()
        for number in range(int(rounds)):
            progress, tell = os.pipe()
            child = forked(partial(_release, location, out, tell))
            # some steps into the work, and then somewhere into the next one: at once in every
            # third round, as on a fast disk all of the sleeps may end in the same step
            for _ in range(moments.randrange(7)):
                os.read(progress, 1)
            time.sleep(moments.uniform(0, 0.02) if number % 3 else 0)
            os.kill(child, signal.SIGKILL)
            os.close(progress)
            os.close(tell)
            os.waitpid(child, 0)
            before, known = known, ledger.verify(known)  # what was there is still there
            stages[_last_stage(ledger, known["d"].sequence - before["d"].sequence)] += 1
        history = ledger.history("d", last=10**6)
        reserved = {e.body["opens"] for e in history if e.kind == "reserved"}
        committed = {e.body["closes"] for e in history if e.kind == "committed"}
        released = set(out.read_text().split())
        return {
            "released": len(released),
            "without record": sorted(each for each in released if not _known(each, committed)),
            "spent events": ledger.totals("d").account.spent.events,
            "reserved": len(reserved),
            "committed": len(committed),
            "stages": stages,
            "spent": str(ledger.totals("d").account.spent.epsilon),
        }


def backups(location: str, folder: str, count: str) -> dict[str, object]:
    """Make backups while processes work; compare each with what was granted around it."""
    with Ledger.open(location, create=True) as ledger:
        ledger.create_dataset("d", Budget(1000))

        def work() -> None:
            with Ledger.open(location) as own:
                for _ in range(2000):  # and not for ever, should the parent fail
                    own.commit(own.reserve("d", EACH))
                    time.sleep(0.01)  # verifying must keep up

        children = [forked(work) for _ in range(3)]
        try:
            found = [_copied(ledger, Path(folder) / f"{i}.db") for i in range(int(count))]
        finally:
            for child in children:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
        return {
            "wrong": sum(not before <= held <= after for before, held, after in found),
            "held": [held for _, held, _ in found],
            "granted": ledger.totals("d").account.spent.events,
        }


def _copied(ledger: Ledger, file: Path) -> tuple[int, int, int]:
    """Return how many grants there were before a backup, how many it holds, and how many after."""
    time.sleep(0.05)
    before = ledger.totals("d").account.spent.events
    heads = ledger.backup(file)
    after = ledger.totals("d").account.spent.events
    ledger.verify(heads)  # what was copied is the beginning of what there is
    with Ledger.open(file) as copy:
        return before, copy.totals("d").account.spent.events, after


def _release(location: str, out: Path, progress: int) -> None:
    """Work as a curator does, for ever: reserve, run, commit, release."""
    stream = os.open(out, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with Ledger.open(location) as ledger:
        while True:
            os.write(progress, b".")
            reservation = ledger.reserve("d", EACH)
            os.write(progress, b".")
            ledger.commit(reservation, released={"answer": 1})
            os.write(progress, b".")
            os.write(stream, f"\n{reservation.id}\n".encode())  # the last may be cut short


def _known(written: str, committed: set[str]) -> bool:
    """Return whether an id that left was committed; a kill may have cut its writing short."""
    return written in committed or (
        len(written) < 32 and any(each.startswith(written) for each in committed)
    )


def _last_stage(ledger: Ledger, new: int) -> str:
    if new == 0:
        return "none"
    return "open" if ledger.history("d", last=1)[0].kind == "reserved" else "committed"


def full(location: str) -> dict[str, object]:
    """Write until the disk is full: files may not grow, as for a process under a quota."""
    with Ledger.open(location, create=True) as ledger:
        ledger.create_dataset("d", Budget(10**6))
        size = max(path.stat().st_size for path in Path(location).parent.iterdir())
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50_000, resource.RLIM_INFINITY))
        granted, message = 0, ""
        while not message and granted < 10_000:
            try:
                ledger.reserve("d", EACH)
                granted += 1
            except LedgerError as error:
                message = str(error)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        ledger.verify()
        recorded = ledger.totals("d").account.spent.events
        ledger.reserve("d", EACH)  # and it goes on when there is room again
        return {"granted": granted, "recorded": recorded, "message": message}


def read_only(location: str) -> dict[str, object]:
    """Ask somebody who may read the file and not write it."""
    with Ledger.open(location, create=True) as ledger:
        ledger.create_dataset("d", Budget(1))
        ledger.commit(ledger.reserve("d", EACH))  # everything is imported now
    results, write = os.pipe()

    def ask() -> None:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        try:
            with Ledger.open(location, timeout=1) as own:
                own.reserve("d", EACH)
            os.write(write, b"granted")
        except LedgerError as error:
            os.write(write, str(error).encode())

    path = Path(location)
    path.chmod(0o444)
    path.parent.chmod(0o555)
    os.waitpid(forked(ask), 0)
    path.parent.chmod(0o755)
    path.chmod(0o644)
    with Ledger.open(location) as ledger:
        ledger.verify()
        return {
            "message": os.read(results, 1000).decode(),
            "events": ledger.totals("d").account.spent.events,
        }


def forks(location: str, opened_again: str) -> dict[str, object]:
    """Close a ledger while a forked process goes on with it, its own or one of the same place."""
    ledger = Ledger.open(location, create=True)
    ledger.create_dataset("d", Budget(1))
    ledger.reserve("d", EACH)
    first, told_first = os.pipe()
    closed, tell_closed = os.pipe()

    def work() -> None:
        own = Ledger.open(location) if opened_again == "yes" else ledger
        own.reserve("d", EACH)
        os.write(told_first, b".")
        os.read(closed, 1)
        own.reserve("d", EACH)

    child = forked(work)
    os.read(first, 1)
    ledger.close()
    os.write(tell_closed, b".")
    code = os.waitpid(child, 0)[1]
    with Ledger.open(location) as again:
        again.verify()
        return {"code": code, "events": again.totals("d").account.spent.events}


def fork_inside(location: str) -> dict[str, object]:
    """Fork in the middle of a transaction; let the child ask."""
    results, write = os.pipe()
    with Ledger.open(location, create=True) as ledger:
        ledger.create_dataset("d", Budget(1))

        def ask() -> None:
            try:
                ledger.reserve("d", EACH)
                os.write(write, b"granted")
            except LedgerError as error:
                os.write(write, str(error).encode())

        with ledger._database.reading():
            os.waitpid(forked(ask), 0)
        ledger.reserve("d", EACH)  # the parent goes on
        return {
            "message": os.read(results, 1000).decode(),
            "events": ledger.totals("d").account.spent.events,
        }


def fork_beside(location: str) -> dict[str, object]:
    """Fork while another thread is in the middle of a transaction."""
    with Ledger.open(location, create=True) as ledger:
        ledger.create_dataset("d", Budget(1))
        entered = threading.Event()

        def hold() -> None:
            with ledger._database.writing():
                entered.set()
                time.sleep(0.5)

        thread = threading.Thread(target=hold)
        thread.start()
        entered.wait()
        code = os.waitpid(forked(lambda: ledger.commit(ledger.reserve("d", EACH))), 0)[1]
        thread.join()
        return {"code": code, "events": ledger.totals("d").account.spent.events}


COMMANDS: Mapping[str, Callable[..., dict[str, object]]] = {
    "race": race,
    "kill": kill,
    "backups": backups,
    "full": full,
    "read_only": read_only,
    "forks": forks,
    "fork_inside": fork_inside,
    "fork_beside": fork_beside,
}

if __name__ == "__main__":
    print(json.dumps(COMMANDS[sys.argv[1]](*sys.argv[2:])))

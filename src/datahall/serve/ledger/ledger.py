"""The ledger: lets a request in against what its key may use, and writes down what it took.

    authenticate → admit (reserve: counters, then the journal) → … upstream … → settle or release

Nothing here waits: counters are in memory, a record is one write to the kernel, and the disk is the business of the
group commit.  Every way out of a request settles or releases it once; a second time changes nothing.
"""

from __future__ import annotations

import hmac
import sqlite3
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Literal

from datahall.errors import ServingError
from datahall.serve.ledger.account import KeyAccount, Refusal, Standing
from datahall.serve.ledger.accounts import Accounts, Reservation
from datahall.serve.ledger.disk.batch import Batch
from datahall.serve.ledger.disk.journal import FRAME_BYTES, SEGMENT_BYTES, Journal, Reserved, Settled
from datahall.serve.ledger.disk.recovery import recover
from datahall.serve.ledger.folder import Folder
from datahall.serve.ledger.key import Key
from datahall.serve.ledger.money import NOTHING, Price, Usage

Outcome = Literal["answered", "cancelled", "failed"]

STARTS_BITS = 40  # requests of one start have numbers below 2**40
NAME_BYTES = 200  # of a model
LOCKED_S = 0.02  # that a commit waits for who writes a key; the next one takes what it could not write

UNKNOWN = Refusal(status=401, code="invalid_api_key", message="the key is not known")
REVOKED = Refusal(status=401, code="invalid_api_key", message="the key has been revoked")
EXPIRED = Refusal(status=401, code="invalid_api_key", message="the key has expired")


class Ledger:
    """Keys with their accounts, open requests, and what is still to be written."""

    def __init__(
        self, folder: Folder, models: Mapping[str, Price], now_ns: int, segment_bytes: int = SEGMENT_BYTES
    ) -> None:
        with folder.written():
            if not folder.hold():
                raise ServingError(
                    f"another gateway keeps its ledger in {folder.path}",
                    field="state",
                    hint="stop it, or name another folder",
                )
            try:
                self._open_books(folder, now_ns, segment_bytes)
            except BaseException:
                folder.let_go()
                raise
        self._folder = folder
        self._batch = Batch()
        self._unwritten: Batch | None = None  # what could not be written at the last commit
        self._lock, self._commit_lock = Lock(), Lock()
        self._accounts = Accounts()
        self._open: dict[int, Reservation] = {}
        self.trouble = ""  # why the disk does not take what it should
        self.sell(models)
        self._read_keys(now_ns)
        self._store.wait_at_most(LOCKED_S)

    def _open_books(self, folder: Folder, now_ns: int, segment_bytes: int) -> None:
        """The tables, with all that whoever wrote last has left, and a new journal."""
        self._store = folder.store()
        try:
            self._pepper = folder.pepper(self._store)
            segment = recover(folder, self._store, now_ns)
            self._next = self._store.begin() << STARTS_BITS
            self._journal = Journal(folder.path, segment, segment_bytes)
        except BaseException:
            self._store.close()
            raise

    def sell(self, models: Mapping[str, Price]) -> None:
        """Know the models that may be asked for from now on, with their prices."""
        for name in models:
            if not 0 < len(name.encode()) <= NAME_BYTES:
                raise ServingError(
                    f"{name!r} is no name of a model", hint=f"1 to {NAME_BYTES} bytes", field="model"
                )
        self._models = dict(models)

    # a request, from its key to its end

    def authenticate(self, secret: bytes, route: str, now_ns: int) -> Key | Refusal:
        """Whose a secret is.  Every key is in memory, so an unknown one costs no look at the disk."""
        digest = hmac.digest(self._pepper, secret, "sha256")
        account = self._accounts.by_digest.get(digest)
        if account is None or not hmac.compare_digest(account.key.digest, digest):
            return UNKNOWN
        key = account.key
        if not key.may_ask(route):
            return Refusal(status=403, code="not_permitted", message=f"the key is not for {route}")
        return _over(key, now_ns) or key

    def admit(
        self, key: Key, model: str, estimate: Usage, now_ns: int, others: Sequence[str] = ()
    ) -> Reservation | Refusal:
        """Let a request in and hold the most that it may take, or say why not.

        `others` are models that may answer in its place: what is held is the price of the dearest.
        """
        price = self._models.get(model)
        if price is None:
            return Refusal(status=404, code="model_not_found", message=f"the model {model!r} does not exist")
        estimate = estimate.bounded()
        nano_usd = price.cost_nano_usd(estimate)
        for other in others:
            nano_usd = max(nano_usd, self._models[other].cost_nano_usd(estimate))
        return self._let_in(key, model, estimate, nano_usd, now_ns)

    def join(self, key: Key, model: str, now_ns: int) -> Reservation | Refusal:
        """Let a request in that hears the answer to another: it counts as one, and costs nothing."""
        if model not in self._models:
            return Refusal(status=404, code="model_not_found", message=f"the model {model!r} does not exist")
        return self._let_in(key, model, NOTHING, 0, now_ns)

    def spare(self, reservation: Reservation, saved: Usage) -> int:
        """The end of one that has heard the answer to another; return what that spared, in nano-dollars."""
        saved = saved.bounded()
        spared = reservation.prices[reservation.model].cost_nano_usd(saved) if saved != NOTHING else 0
        self._end(reservation, reservation.model, "cached", NOTHING, 0, 0, saved, spared)
        return spared

    def _let_in(
        self, key: Key, model: str, estimate: Usage, nano_usd: int, now_ns: int
    ) -> Reservation | Refusal:
        with self._lock:
            account = self._accounts.of_keys[key.id]
            refusal = self._refusal(account, model, estimate.tokens, nano_usd, now_ns)
            if refusal is not None:
                return refusal
            self._next += 1
            payer = account.payer
            admitted_ns = max(now_ns, account.start_ns, payer.start_ns if payer is not None else 0)
            record = Reserved(self._next, key.id, model, admitted_ns, estimate, nano_usd)
            try:
                self._journal.append(record)
            except OSError as error:
                return self._unavailable(str(error))
            self._batch.reserve(record)
            reservation = Reservation(
                request=record.request,
                key=key.id,
                model=model,
                admitted_ns=admitted_ns,
                usage=estimate,
                nano_usd=nano_usd,
                turn=account.hold(estimate.tokens, nano_usd),
                prices=self._models,
                payer_turn=-1 if payer is None else payer.hold(estimate.tokens, nano_usd),
            )
            self._open[record.request] = reservation
            return reservation

    def room(self, key: Key, model: str, prompt: int, now_ns: int, others: Sequence[str] = ()) -> int | None:
        """Tokens of an answer to a prompt that fit what key and customer have left; None where neither has an end."""
        with self._lock:
            account = self._accounts.of_keys[key.id]
            prices = [self._models[name] for name in (model, *others) if name in self._models]
            rooms = []
            for one in (account,) if account.payer is None else (account, account.payer):
                one.roll(now_ns)
                room = one.room(prompt, prices)
                if room is not None:
                    rooms.append(room)
            return min(rooms, default=None)

    def settle(
        self,
        reservation: Reservation,
        usage: Usage,
        outcome: Outcome,
        served: str = "",
        wasted: Sequence[tuple[str, Usage]] = (),
    ) -> int:
        """Charge what a request took; return it in nano-dollars, 0 where it was settled before.

        `served`: the model that answered, where it is another.  `wasted`: what attempts took that answered nobody, such
        as the loser of two that were hedged; it is written down, and nobody is charged for it.
        """
        usage = usage.bounded()
        model = served or reservation.model
        prices = reservation.prices
        nano_usd = prices[model].cost_nano_usd(usage) if usage != NOTHING else 0
        lost = sum(prices[name].cost_nano_usd(one.bounded()) for name, one in wasted)
        # who leaves is not charged for what was worked for him, but it counts in his limit of tokens
        worked = max((one.tokens for _, one in wasted), default=0) if outcome == "cancelled" else 0
        return self._end(reservation, model, outcome, usage, nano_usd, lost, num_worked=worked)

    def release(self, reservation: Reservation) -> None:
        """Give all back: the request never went anywhere."""
        self._end(reservation, reservation.model, "released", NOTHING, 0, 0)

    def hit(self, key: Key, model: str, saved: Usage, now_ns: int) -> Refusal | None:
        """Count a request that a cache answers, and what that spared; or say why it is not let in."""
        price = self._models.get(model)
        if price is None:
            return Refusal(status=404, code="model_not_found", message=f"the model {model!r} does not exist")
        with self._lock:
            account = self._accounts.of_keys[key.id]
            refusal = self._refusal(account, model, 0, 0, now_ns)
            if refusal is not None:
                return refusal
            account.requests.take(1)
            if account.payer is not None:
                account.payer.requests.take(1)
            saved = saved.bounded()
            record = Settled(
                0, key.id, model, now_ns, "cached", NOTHING, 0, 0, saved, price.cost_nano_usd(saved)
            )
            self._write(record)
        return None

    def standing(self, key: Key, now_ns: int) -> Standing:
        """The counters of a key, which lists show and by which requests are refused."""
        with self._lock:
            return self._accounts.of_keys[key.id].standing(now_ns)

    def customers(self, now_ns: int) -> dict[str, Standing]:
        """The counters of customers that have limits."""
        with self._lock:
            return {name: payer.standing(now_ns) for name, payer in self._accounts.of_customers.items()}

    def headers(self, key: Key, now_ns: int) -> tuple[tuple[str, str], ...]:
        """What binds a key, be it its customer's, as an answer says it."""
        with self._lock:
            account = self._accounts.of_keys[key.id]
            standing = account.standing(now_ns)
            if account.payer is not None:
                standing = standing.narrowed(account.payer.standing(now_ns))
        return standing.headers()

    @property
    def num_open(self) -> int:
        """Requests that are let in and not settled."""
        return len(self._open)

    # the disk

    def commit(self, now_ns: int) -> bool:
        """Write what has happened since the last time, and read keys that others have changed; whether all is well.

        What cannot be written is kept, and stays in the journal, which is brought to the disk instead.
        """
        with self._commit_lock:
            with self._lock:
                batch, self._batch = self._batch, Batch()
                batch.position = self._journal.position
            if self._unwritten is not None:
                batch = self._unwritten.followed_by(batch)
            trouble = ""
            try:
                if batch.sums or batch.opened or batch.closed:
                    self._unwritten = batch
                    self._store.write(batch)
                    self._unwritten = None
                    self._journal.drop_before(batch.position.segment)
                if self._store.is_changed():
                    self._read_keys(now_ns)
            except sqlite3.Error as error:
                trouble = f"the ledger cannot be written: {error}"
            try:
                if trouble:
                    self._journal.sync()
                self._journal.prepare()
            except OSError as error:
                trouble = f"the journal cannot be written: {error.strerror or error}"
            self.trouble = trouble
            return not trouble

    def reload(self, now_ns: int) -> None:
        """Read keys that have been changed, at once; a commit does it too."""
        with self._commit_lock:
            self._read_keys(now_ns)

    def close(self, now_ns: int) -> None:
        """Write what is left, and let another gateway hold the folder."""
        self.commit(now_ns)
        self.drop()

    def drop(self) -> None:
        """Let go of everything without a word, as the end of the process does."""
        self._journal.close()
        self._store.close()
        self._folder.let_go()

    # inside

    def _refusal(
        self, account: KeyAccount, model: str, tokens: int, nano_usd: int, now_ns: int
    ) -> Refusal | None:
        account.roll(now_ns)
        over = _over(account.key, now_ns)
        if over is not None:
            return over
        if not account.may_use(model):
            return Refusal(
                status=403, code="not_permitted", message=f"the key is not for the model {model!r}"
            )
        if self._journal.left_bytes < FRAME_BYTES * (len(self._open) + 2):
            return self._unavailable("no space is left")
        refusal, payer = account.refusal(tokens, nano_usd, now_ns), account.payer
        if payer is not None:
            payer.roll(now_ns)
            refusal = refusal or payer.refusal(tokens, nano_usd, now_ns)
        return refusal

    def _unavailable(self, why: str) -> Refusal:
        message = f"nothing can be written down, so nothing is let in: {self.trouble or why}"
        return Refusal(status=503, code="ledger_unavailable", message=message, retry_after_s=1)

    def _end(
        self,
        reservation: Reservation,
        model: str,
        outcome: str,
        usage: Usage,
        nano_usd: int,
        wasted: int,
        saved: Usage = NOTHING,
        spared: int = 0,
        num_worked: int = 0,
    ) -> int:
        with self._lock:
            if self._open.pop(reservation.request, None) is None:
                return 0
            account = self._accounts.of_keys[reservation.key]
            unused = reservation.usage.tokens - max(usage.tokens, num_worked)
            requests = int(outcome == "released")
            account.charge(reservation.admitted_ns, reservation.nano_usd, nano_usd)
            account.give_back(reservation.turn, unused, requests)
            payer = account.payer
            if payer is not None:
                payer.charge(reservation.admitted_ns, reservation.nano_usd, nano_usd)
                if reservation.payer_turn >= 0:
                    payer.give_back(reservation.payer_turn, unused, requests)
            self._write(
                Settled(
                    reservation.request, reservation.key, model, reservation.admitted_ns, outcome, usage, nano_usd,
                    wasted, saved, spared,
                )
            )  # fmt: skip
        return nano_usd

    def _write(self, record: Settled) -> None:
        """Into the journal, for which space was kept, and into the next commit, whatever the journal says."""
        try:
            self._journal.append(record)
        except OSError as error:
            self.trouble = f"the journal cannot be written: {error.strerror or error}"
        self._batch.settle(record)

    def _read_keys(self, now_ns: int) -> None:
        news = self._accounts.news(self._store, now_ns)
        with self._lock:
            news.add_unwritten([self._batch, *([self._unwritten] if self._unwritten else ())])
            self._accounts.take(news, [*self._open.values()], now_ns)


def _over(key: Key, now_ns: int) -> Refusal | None:
    if key.revoked_ns:
        return REVOKED
    return EXPIRED if key.is_over(now_ns) else None

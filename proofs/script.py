"""The arithmetic of bucket.lua: one bucket in Redis, with promises, leases and changes of the spec.

Times are whole clock steps of the server; a spec is (n, d, c, s) as in the script: a step of s brings n ticks, a token is d
ticks, a full bucket has c tokens. A receipt names its count; here the name is whether the count still runs.
"""
from fractions import Fraction


def has_batches(spec):
    n, d, _, s = spec
    return s > 1 and n % d == 0


def earned(spec, moment):
    n, d, _, s = spec
    return n // d * (moment % s * d // s) if has_batches(spec) else 0


def kept_missing(have, old_d, d, c):
    tokens = have // old_d
    return 0 if tokens >= c else c * d - (tokens * d + (have - tokens * old_d) * d // old_d)


class Bucket:
    FIELDS = ('spec', 'missing', 'promised', 'moved', 'kept_until', 'returned', 'advance', 'leased', 'lease_end', 'owes')
    __slots__ = FIELDS + ('at', 'began')

    def __init__(self, key, at):
        self.at, self.began = at, False
        self.set(key)

    @staticmethod
    def full_one(spec):
        return (spec, 0, 0, False, 0, False, 0, 0, 0, False)

    def set(self, key):
        (self.spec, self.missing, self.promised, self.moved, self.kept_until, self.returned, self.advance, self.leased,
         self.lease_end, self.owes) = key

    def key(self):
        return (self.spec, self.missing, self.promised, self.moved, self.kept_until, self.returned, self.advance, self.leased,
                self.lease_end if self.leased else 0, self.owes)

    @property
    def full(self):
        return self.spec[1] * self.spec[2]

    def begin(self):
        """No earlier take gives anything back: the receipts of the count before are void."""
        self.began, self.returned = True, False

    def pass_until(self, now, rules=frozenset()):
        n, _, _, s = self.spec
        passed = (now // s - self.at // s) * n
        self.missing = max(self.missing - passed, 0)
        if self.promised > 0:
            self.promised = max(self.promised - passed, 0)
            self.moved = self.moved and self.promised > 0
        self.leased = max(self.leased - passed, 0)
        if passed > 0:
            self.advance = 0
        self.at = now
        if self.returned and self.missing == 0 and self.promised == 0:
            self.begin()
        if self.kept_until <= now:
            self.kept_until = 0
        self.owes = self.owes and self.debt() > 0

    def is_gone(self):
        """Whether the key has expired or was deleted: the bucket is full under any spec."""
        return self.missing == 0 and self.promised == 0 and self.kept_until == 0

    def debt(self):
        return self.missing - self.full if self.missing > self.full + self.advance else 0

    def last_promise(self):
        return self.promised if self.owes else max(self.debt(), self.promised)

    def lease_left(self):
        n, _, _, s = self.spec
        return max(-(-self.lease_end // s) - self.at // s, 0) * n if self.leased > 0 else 0

    def full_at(self, ticks):
        n, _, _, s = self.spec
        return self.at + -(-ticks // n) * s - self.at % s

    def micros_until(self, ticks):
        n, _, _, s = self.spec
        return -(-ticks // n) * s - self.at % s

    def missing_under(self, ticks, spec):
        own_n, own_d, _, own_s = self.spec
        n, d, c, s = spec
        start, steps = self.at, 0
        if ticks > 0:
            steps = -(-ticks // own_n)
            start = self.at + steps * own_s - self.at % own_s
        have = self.full - max(self.missing - steps * own_n, 0)
        before = earned(self.spec, start)
        after = Fraction(n, d) * (start % s) / s if has_batches(spec) else 0
        if d == own_d and s == own_s:
            kept = max(c * d - (have + before - earned(spec, start)), 0)
        elif before == 0 and after == 0:
            kept = kept_missing(have, own_d, d, c)
        else:
            worth = Fraction(have + before, own_d) - after
            kept = c * d - min(int(worth * d // 1), c * d)
        return kept + (start // s - self.at // s) * n, start

    def convert(self, spec, rules=frozenset()):
        _, old_d, _, _ = self.spec
        n, d, c, s = spec
        promised = max(self.last_promise(), 0 if 'a change forgets the leases' in rules else self.lease_left())
        longest = max(self.missing, self.promised)
        if longest > 0:
            self.kept_until = max(self.kept_until, self.full_at(longest))
        in_debt = min(self.debt(), promised)
        missing, served = self.missing_under(promised, spec)
        at_end, end_of_debt = self.missing_under(in_debt, spec)
        if in_debt > 0:
            at_end = max(at_end, c * d + ((end_of_debt - 1) // s - self.at // s) * n)
        kept = kept_missing(self.full - max(self.missing - self.advance, 0), old_d, d, c)
        self.missing = max(missing, 0 if 'a change skips the end of the debt' in rules else at_end)
        self.advance = 0 if promised > 0 else max(self.missing - kept, 0)
        self.promised = (-(-served // s) - self.at // s) * n if promised > 0 else 0
        self.moved = promised > 0
        self.leased = 0
        self.begin()
        self.spec = spec

    def take(self, spec, tokens, wait=0, rules=frozenset(), lease=0, most=0):
        """Returns None if denied, or (ticks taken, missing after, due step, due ticks)."""
        old_wait = None
        before = self.key()
        if spec != self.spec:
            _, old_d, old_c, _ = self.spec
            short = self.missing + tokens * old_d - self.full
            old_wait = float('inf') if tokens > old_c else 0 if short <= self.advance else self.micros_until(short)
            self.convert(spec, rules)
        n, d, c, s = spec
        price, full = tokens * d, c * d
        limit = full + (wait + self.at % s) // s * n if wait else full
        missing = self.missing
        after = missing + price
        leased = most * d > price and self.lease(price, lease, most * d, rules)
        if leased:
            self.owes = False
            return leased, self.missing
        if after <= limit or after <= full + self.advance and price <= full:
            self.missing = after
            if after <= full + self.advance:
                after = max(missing - self.advance, 0) + price
            self.owes = False
            return price, after
        if old_wait is None or price > full or self.micros_until(missing + price - full) >= old_wait:
            self.set(before)
        return None

    def lease(self, price, length, most, rules):
        if self.advance > 0 or self.last_promise() > 0:
            return 0
        n, d, _, s = self.spec
        held = ((self.at + length) // s - self.at // s) * n
        base = self.missing if 'no hold' in rules else max(self.missing, held)
        ticks = min(most, (self.full - base) // (2 * d) * d)
        if ticks <= price:
            return 0
        self.missing = base + ticks
        self.leased = (0 if 'the floor is without the hold' in rules else max(self.leased, held)) + ticks
        self.lease_end = max(self.lease_end, self.at + length)
        return ticks

    def owe(self, tokens):
        promised = self.last_promise()
        self.missing += tokens * self.spec[1]
        if self.debt() > 0:
            self.promised, self.owes = promised, True

    def give(self, tokens, kept, due, rest, room, live, spec, rules=frozenset()):
        """Gives tokens of a take back. Returns the ticks that came back."""
        if self.missing == 0:
            return 0
        n, d, c, s = self.spec
        price, kept_price = min(tokens, c) * d, min(kept, c) * d
        promised = self.last_promise()
        back = 0
        if live and spec == self.spec or 'a give passes another count' in rules:
            behind = promised - ((due - self.at // s) * n + rest)
            if 'a give ignores the time since' in rules:
                behind = promised
            if behind >= 0:
                count = max(room, 0) if promised == 0 else 0
                back = min(max(price + kept_price + count - behind, 0), price)
        floor = 0 if 'no floor' in rules else min(self.missing, self.leased)
        pulled = min(back, self.missing - floor)
        if pulled > 0:
            self.missing -= pulled
            self.returned = True
            if back < price + kept_price and promised > 0 and 'a give forgets the last promise' not in rules:
                self.promised = promised
        return pulled

"""Held leases with refunds and changes of the limit: every history of one bucket in Redis. See leases.md."""
import math
import random

from script import Bucket
from search import Report, excess, explore, walk

DONE = None


class RedisBucket:
    """One bucket. A state is (now, bucket, leases, grants, the windows before them).

    With several limits every window counts under the greatest rate and capacity of all.

    lease: (spec, tokens left, end, due step, ticks missing after it less those given back since, whether its count runs)
    grant: (moment, parts of a token kept, receipt)
    receipt: (tokens, spec, due step, room, whether its count runs, lease or -1, ticks after the due step); DONE if nothing can come back
    """

    def __init__(self, specs, length, costs=(1,), most=(2, 9), waits=(0,), partial=False, most_open=3, owed=0, rules=()):
        self.specs, self.length, self.costs, self.most, self.partial = specs, length, costs, most, partial
        self.waits, self.most_open, self.owed, self.rules = waits, most_open, owed, frozenset(rules)
        self.period = math.lcm(*(s for _, _, _, s in specs))
        self.unit = math.lcm(*(d * s for _, d, _, s in specs))
        self.rate = max(self.unit * n // (d * s) for n, d, _, s in specs)
        self.capacity = max(self.unit * c for _, _, c, _ in specs)
        # A waiting call goes ahead at the end of the clock step in which its tokens are due.
        self.allowed = max(self.unit * n // (d * s) * (s - (n == 1 or max(waits) == 0)) for n, d, _, s in specs)
        self.start = (0, Bucket.full_one(specs[0]), (), (), None)

    # -- a state, opened for a step

    def steps(self, state):
        now, key, leases, grants, base = state
        yield 'time passes', lambda: self.time(state)
        for i, spec in enumerate(self.specs):
            for cost in self.costs:
                if cost <= spec[2]:
                    for most in (0,) + self.most:
                        yield ('take %d%s under limit %d' % (cost, ', lease %d' % most if most else '', i),
                               lambda i=i, cost=cost, most=most: self.take(state, i, cost, most, 0))
                    for wait in self.waits:
                        if wait:
                            yield 'take %d under limit %d, waiting %d at most' % (cost, i, wait), (
                                lambda i=i, cost=cost, wait=wait: self.take(state, i, cost, 0, wait))
        if self.owed:
            yield 'a call costs %d more' % self.owed, lambda: self.owe(state)
        for k, lease in enumerate(leases):
            for cost in self.costs:
                if lease[1] >= cost:
                    yield 'lease %d pays %d' % (k, cost), lambda k=k, cost=cost: self.use(state, k, cost)
                elif lease[1] and any(later[0] == lease[0] and lease[1] + later[1] >= cost for later in leases[k + 1:]):
                    yield 'both leases pay %d' % cost, lambda k=k, cost=cost: self.use(state, k, cost)
        seen = set()
        for k, grant in enumerate(grants):
            if grant[2] is not DONE and grant not in seen:
                seen.add(grant)
                for kept in range(grant[2][0] if self.partial else 1):
                    yield ('of %d taken at %d come back all but %d%s' % (
                        grant[2][0], grant[0], kept, ', to lease %d' % grant[2][5] if grant[2][5] >= 0 else ''),
                        lambda k=k, kept=kept: self.give(state, k, kept))

    def time(self, state):
        now, key, leases, grants, base = state
        bucket = Bucket(key, now)
        bucket.pass_until(now + 1)
        now += 1
        if bucket.began or bucket.is_gone():
            leases, grants = void(leases, grants)
        key = Bucket.full_one(bucket.spec) if bucket.is_gone() else bucket.key()
        if now == self.period:
            now = 0
            key = key[:4] + (key[4] - self.period if key[4] else 0,) + key[5:8] + (key[8] - self.period if key[7] else 0, key[9])
            leases = tuple((i, left, end - self.period, due - self.period // self.specs[i][3], room, live)
                           for i, left, end, due, room, live in leases)
            grants = tuple((moment - self.period, kept, receipt and receipt[:2] + (
                receipt[2] - self.period // self.specs[receipt[1]][3],) + receipt[3:]) for moment, kept, receipt in grants)
            base = base and (base[0] - self.period, base[1])
        return self.state(now, key, leases, grants, base)

    def take(self, state, i, cost, most, wait):
        now, key, leases, grants, base = state
        spec = self.specs[i]
        bucket = Bucket(key, now)
        if bucket.is_gone():
            if spec[2] > bucket.spec[2] and base is not None:      # documented: a full bucket is full under each limit
                base = (base[0], base[1] - self.unit * (spec[2] - bucket.spec[2]))
            bucket = Bucket(Bucket.full_one(spec), now)
        taken = bucket.take(spec, cost, wait, self.rules, self.length, most)
        if bucket.began:
            leases, grants = void(leases, grants)
        if taken is None:
            return self.state(now, bucket.key(), leases, grants, base)
        ticks, missing = taken
        tokens = ticks // spec[1]
        if most and tokens == cost:
            return None                                          # as without a lease
        n, d, c, s = spec
        ahead = max(missing - c * d, 0)
        due, rest = now // s + ahead // n, ahead % n
        moment = now + bucket.micros_until(ahead) if ahead else now
        uncounted = 0 if 'leased tokens count as taken before' in self.rules else bucket.leased
        lease = -1
        if tokens > cost:
            if len(leases) == 2:
                return None
            leases += ((i, tokens - cost, now + self.length, due, max(missing - uncounted, 0), True),)
            lease = len(leases) - 1
        room = max(min(missing, c * d) - uncounted - cost * d, 0)
        grants += ((moment, self.unit * cost, (cost, i, due, room, True, lease, rest)),)
        return self.state(now, bucket.key(), leases, grants, base)

    def use(self, state, k, cost):
        now, key, leases, grants, base = state
        i, left, end, due, missing, live = leases[k]
        some = min(left, cost)                                   # the later lease pays the rest
        leases = tuple(l[:1] + (l[1] - (some if j == k else cost - some if j > k else 0),) + l[2:] for j, l in enumerate(leases))
        receipt = (cost, i, due, max(missing - cost * self.specs[i][1], 0), live, k, 0)
        return self.state(now, key, leases, grants + ((now, self.unit * cost, receipt),), base)

    def give(self, state, k, kept):
        now, key, leases, grants, base = state
        moment, parts, (tokens, i, due, room, live, lease, rest) = grants[k]
        back, spec = tokens - kept, self.specs[i]
        if lease >= 0:
            left = leases[lease]
            leases = leases[:lease] + (left[:1] + (left[1] + back,) + left[2:],) + leases[lease + 1:]
            parts -= self.unit * back
        else:
            bucket = Bucket(key, now)
            pulled = bucket.give(back, kept, due, rest, room, live, spec, self.rules)
            parts -= self.unit * pulled // bucket.spec[1]
            key = bucket.key()
            if bucket.is_gone():
                leases, grants = void(leases, grants)
            leases = tuple(l[:4] + (max(l[4] - pulled, 0),) + l[5:] for l in leases)
            grants = tuple(g if g[2] is DONE else g[:2] + (g[2][:3] + (max(g[2][3] - pulled, 0),) + g[2][4:],) for g in grants)
        grants = grants[:k] + ((moment, parts, DONE),) + grants[k + 1:]
        return self.state(now, key, leases, grants, base)

    def owe(self, state):
        now, key, leases, grants, base = state
        bucket = Bucket(key, now)
        if bucket.debt() > 0 or bucket.is_gone() or any(g[0] > now for g in grants):
            return None                                          # one debt at a time keeps the numbers small
        bucket.owe(self.owed)
        return self.state(now, bucket.key(), leases, grants, base)

    # -- what a state keeps

    def state(self, now, key, leases, grants, base):
        """Drops what can't matter any more, so that histories that have become equal are one state."""
        gone = [k for k, lease in enumerate(leases) if now >= lease[2] or not lease[1]
                and not any(g[2] is not DONE and g[2][5] == k for g in grants)]
        if gone:
            place = {k: -1 if k in gone else k - sum(g < k for g in gone) for k in range(-1, len(leases))}
            leases = tuple(lease for k, lease in enumerate(leases) if k not in gone)
            grants = tuple(g if g[2] is DONE else g[:2] + (g[2][:5] + (place[g[2][5]],) + g[2][6:],) for g in grants)
        grants = sorted((g if g[2] is DONE or self.may_return(g[2], now) else g[:2] + (DONE,) for g in grants if g[1]),
                        key=lambda g: (g[0], g[2] is not DONE, g[2] or (), g[1]))
        self.excess(base, grants)
        opened = sum(g[2] is not DONE for g in grants)
        first = 0
        while first < len(grants) and grants[first][0] <= now and (grants[first][2] is DONE or opened > self.most_open):
            opened -= grants[first][2] is not DONE               # the oldest one is never given back from now on
            first += 1
        base = self.excess(base, grants[:first])
        if base is not None and not grants[first:]:
            base = (now, base[1] - self.rate * (now - base[0]))
        if base is not None and base[1] - self.rate * (now - base[0]) <= -self.capacity:
            base = None
        return now, key, leases, tuple(grants[first:]), base

    def excess(self, base, grants):
        return excess(base, [(moment, kept, self.rate, self.capacity) for moment, kept, _ in grants], self.allowed)

    def may_return(self, receipt, now):
        tokens, i, due, room, live, lease, rest = receipt
        n, d, c, s = self.specs[i]
        if lease >= 0 or 'a give passes another count' in self.rules or 'a give ignores the time since' in self.rules:
            return True
        return live and tokens * d + room - (now // s - due) * n + rest > 0


def void(leases, grants):
    """A new count: what was taken before doesn't come back to the bucket."""
    return (tuple(lease[:5] + (False,) for lease in leases),
            tuple(g if g[2] is DONE else g[:2] + (g[2][:4] + (False,) + g[2][5:],) for g in grants))


SLOW = (1, 2, 5, 1)                                              # a token every two steps, five in a full bucket
MUTANTS = (
    ('no hold', dict()),
    ('no floor', dict()),
    ('leased tokens count as taken before', dict()),
    ('the floor is without the hold', dict()),
    ('a give ignores the time since', dict(most=(), most_open=2)),
    ('a give passes another count', dict(specs=[(1, 1, 4, 1), (1, 2, 3, 1)], length=1, most_open=2)),
    ('a change forgets the leases', dict(specs=[(1, 4, 5, 1), (1, 1, 5, 1)], length=3, most_open=1)),
)


def random_model(seed):
    random_ = random.Random(seed)
    s = random_.choice((1, 1, 1, 2, 4))
    capacity = random_.randint(4, 12)
    specs = []
    for _ in range(random_.choice((1, 1, 2))):
        d = random_.choice((2, 4)) if s > 1 else random_.randint(1, 4)
        n = d * random_.randint(1, 3) if s > 1 else random_.randint(1, 3)
        specs.append((n, d, max(capacity - random_.randint(0, 2), 4), s))
    length = random_.randint(1, 6)
    waits = (0, random_.randint(1, 9)) if random_.random() < .2 else (0,)
    return random_, RedisBucket(specs, length, costs=(1, 2), most=(2, 4, 12), waits=waits, partial=True, most_open=9)


def main():
    report = Report('Held leases, with refunds and changes of the limit (leases.md)')
    for name, model, states in (
            ('one limit, a token a step', RedisBucket([(1, 1, 5, 1)], 2), None),
            ('one limit, a token every two steps', RedisBucket([SLOW], 2), None),
            ('one limit, three tokens every two steps', RedisBucket([(3, 2, 5, 1)], 2), None),
            ('refill in batches', RedisBucket([(2, 2, 5, 2)], 2), None),
            ('two limits, one twice as fast', RedisBucket([(1, 1, 5, 1), SLOW], 2, most_open=2), None),
            ('two limits, one of a smaller capacity', RedisBucket([(1, 1, 5, 1), (1, 1, 3, 1)], 2, most_open=2), None),
            ('costs of one and two, settled at less', RedisBucket([SLOW], 2, costs=(1, 2), partial=True), 30_000),
            ('calls that two leases pay', RedisBucket([(1, 1, 10, 1)], 2, costs=(1, 2), most=(3,), most_open=2), 60_000),
            ('two limits, refill in batches of two lengths', RedisBucket([(2, 2, 5, 2), (4, 4, 4, 4)], 2, most_open=1), 20_000)):
        report.holds(name, explore(model.start, model.steps, most_states=states or 10_000_000))
    broken, histories = None, 1_000
    for seed in range(histories):
        random_, model = random_model(seed)
        broken = broken or walk(random_, model.start, model.steps, 60)
    report.holds_at_random('limits, batches, costs and leases at random', histories, broken)
    for mutant, changed in MUTANTS:
        model = RedisBucket(**{**dict(specs=[SLOW], length=2, most_open=3), **changed}, rules=(mutant,))
        report.dies(mutant, explore(model.start, model.steps, most_states=80_000)[3])
    report.end()


if __name__ == '__main__':
    main()

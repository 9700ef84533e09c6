"""The time line of a bucket, in memory and on Redis: waits, returns, settlements, changes of the limit. See timeline.md."""
import math
import random

import bucket as core
from leases import RedisBucket
from search import Report, excess, explore, walk

DONE = None


class TimeLine:
    """A state is (now, bucket, grants, the windows before them). Times repeat after the common period of all batches.

    grant: (moment, parts of a token kept, whether it is checked, receipt)
    receipt: (tokens, own, scale, due, room, capacity cut until then, ticks that returns have moved since); DONE
    """

    def __init__(self, specs, waits=(0,), costs=(1,), partial=False, owed=0, most_open=3, rules=()):
        self.specs, self.waits, self.costs, self.partial, self.owed = specs, waits, costs, partial, owed
        self.most_open, self.rules = most_open, frozenset(rules)
        steps = [core.ticks(spec) for spec in specs]
        self.period = math.lcm(*(step for step, _, _, _ in steps))
        self.unit = math.lcm(*(token * spec[1] for spec, (_, _, token, _) in zip(specs, steps)))
        self.rate = max(self.unit * tokens // period for tokens, period, _, _ in specs)
        self.capacity = self.unit * max(capacity for _, _, capacity, _ in specs)
        # A waiting call goes ahead at the end of the clock step in which its tokens are due.
        self.allowed = max(self.unit * spec[0] // spec[1] * (step - (per_step == 1 or max(waits) == 0))
                           for spec, (step, per_step, _, _) in zip(specs, steps))
        self.start = (0, ((specs[0], 0, 0), 0, core.NOTHING), (), None)

    def steps(self, state):
        now, bucket, grants, base = state
        yield 'time passes', lambda: self.state(now + 1, bucket, grants, base)
        spec = bucket[0][0]
        for cost in self.costs:
            for wait in self.waits:
                yield 'take %d, waiting %d at most' % (cost, wait), lambda cost=cost, wait=wait: self.take(state, cost, wait)
        for other in self.specs:
            if other != spec:
                yield 'the limit becomes %s' % (other,), lambda other=other: self.change(state, other)
        seen = set()
        for k, grant in enumerate(grants):
            if grant[3] is not DONE and grant not in seen:
                seen.add(grant)
                for kept in range(grant[3][0] if self.partial else 1):
                    yield 'of %d due at %d come back all but %d' % (grant[3][0], grant[0], kept), (
                        lambda k=k, kept=kept: self.give(state, k, kept))
        if self.owed:
            yield 'a call costs %d more' % self.owed, lambda: self.owe(state)

    def take(self, state, cost, wait):
        now, bucket, grants, base = state
        taken = core.take(bucket, cost, now, wait)
        if taken is None:
            return None
        bucket, moment, (scale, due, room, cut) = taken
        grant = (moment, self.unit * cost, True, (cost, True, scale, due, room, cut, 0))
        return self.state(now, bucket, grants + (grant,), base)

    def change(self, state, spec):
        now, bucket, grants, base = state
        grants = tuple(g if g[3] is DONE else g[:3] + (g[3][:1] + (False,) + g[3][2:4] + (0,) + g[3][5:6] + (0,),) for g in grants)
        return self.state(now, core.convert(bucket, spec, now, self.rules), grants, base)

    def give(self, state, k, kept):
        now, bucket, grants, base = state
        moment, parts, checked, receipt = grants[k]
        bucket, pulled = core.give_back(bucket, receipt[0] - kept, kept, receipt[2:], receipt[1], now, self.rules)
        parts -= self.unit * pulled // core.ticks(bucket[0][0])[2]
        far = 4 * core.full(bucket[0])                           # beyond it the number makes no difference
        grants = tuple(g if g[3] is DONE or not g[3][1] else g[:3] + (g[3][:4] + (max(g[3][4] - pulled, -far), g[3][5], g[3][6] + pulled if self.rules else 0),)
                       for g in grants)
        return self.state(now, bucket, grants[:k] + ((moment, parts, checked, DONE),) + grants[k + 1:], base)

    def owe(self, state):
        now, bucket, grants, base = state
        if core.missing(bucket[0], bucket[1], now) > core.full(bucket[0]):
            return None                                          # one debt at a time keeps the numbers small
        if not any(g[0] > now for g in grants):                  # while calls wait, a debt is nobody's grant
            grants += ((now, self.unit * self.owed, False, DONE),)
        return self.state(now, core.owe(bucket, self.owed, now), grants, base)

    def state(self, now, bucket, grants, base):
        scale = bucket[0]
        grants = [g if g[3] is DONE or self.may_return(g[3], bucket, now) else g[:3] + (DONE,) for g in grants if g[1]]
        grants.sort(key=lambda g: (g[0], not g[2], g[3] is not DONE, g[3] or (), g[1]))
        self.excess(base, grants)
        opened, first = sum(g[3] is not DONE for g in grants), 0
        while first < len(grants) and grants[first][0] <= now and (grants[first][3] is DONE or opened > self.most_open):
            opened -= grants[first][3] is not DONE
            first += 1
        base = self.excess(base, grants[:first])
        if base is not None and (not grants[first:] or base[1] - self.rate * (now - base[0]) <= -self.capacity):
            left = base[1] - self.rate * (now - base[0])
            base = None if left <= -self.capacity else (now, left)
        return self.shifted(now, bucket, tuple(grants[first:]), base) if now == self.period else (
            now, self.plain(bucket, now), tuple(grants[first:]), base)

    def plain(self, bucket, now):
        """Writes a full bucket, and what has no effect any more, in one form."""
        scale, full_at, backlog = bucket
        promised, owed, origin, fastest, cut = backlog
        if scale[1] and now >= scale[2]:
            scale, full_at = (scale[0], 0, 0), full_at
        if len(self.specs) == 1:
            full_at = max(full_at, core.at(scale, now))
            owed = owed if owed == full_at else None
            promised = None if promised is None or promised <= core.at(scale, now) and owed is None else promised
        return scale, full_at, (promised, owed, origin, fastest, cut)

    def shifted(self, now, bucket, grants, base):
        """Begins the time anew at 0."""
        def ticks(scale):
            step, per_step, _, _ = core.ticks(scale[0])
            return self.period // step * per_step

        def backlog_of(scale, backlog):
            promised, owed, origin, fastest, cut = backlog
            moved = None
            if origin is not None:
                moved = (scale_of(origin[0]), origin[1] - ticks(origin[0]), backlog_of(origin[0], origin[2]), origin[3] - ticks(scale))
            return (None if promised is None else promised - ticks(scale), None if owed is None else owed - ticks(scale),
                    moved, fastest, cut)

        def scale_of(scale):
            return (scale[0], scale[1], scale[2] - self.period) if scale[1] and scale[2] > now else (scale[0], 0, 0)

        scale, full_at, backlog = bucket
        grants = tuple((moment - self.period, parts, checked, receipt and receipt[:2] + (
            scale_of(receipt[2]), receipt[3] - ticks(receipt[2])) + receipt[4:]) for moment, parts, checked, receipt in grants)
        moved = (scale_of(scale), full_at - ticks(scale), backlog_of(scale, backlog))
        return 0, self.plain(moved, 0), grants, base and (base[0] - self.period, base[1])

    def excess(self, base, grants):
        return excess(base, [(moment, parts, self.rate, self.capacity, checked) for moment, parts, checked, _ in grants],
                      self.allowed)

    def may_return(self, receipt, bucket, now):
        tokens, own, scale, due, room, cut, moved = receipt
        if self.rules:
            return True
        if own:
            return core.price(scale, tokens) + max(room, 0) > core.at(scale, now) - due
        return core.price(bucket[0], tokens) > core.max_gain(bucket, receipt[2:], now)


GREEDY = (1, 2, 3, False)                                        # a token every two steps, three in a full bucket
BATCHES = (2, 3, 3, True)
MUTANTS = (
    ('all comes back at any time', dict(specs=[GREEDY])),
    ('all comes back while calls wait', dict(specs=[GREEDY], waits=(6,))),
    ('a return forgets the last promise', {}),
    ('a return counts what earlier returns have moved', dict(specs=[(1, 2, 4, False)])),
    ('a change forgets who waits', dict(specs=[(1, 2, 2, False), (1, 1, 2, False)], waits=(4,), most_open=1)),
    ('a change forgets what time has brought', dict(specs=[GREEDY, (1, 2, 4, False)], most_open=2)),
    ('a change skips the end of the debt', {}),
)

REDIS_MUTANTS = (
    ('a give forgets the last promise', dict(specs=[(1, 1, 2, 1)], waits=(0, 5), costs=(1, 2), partial=True)),
    ('a change skips the end of the debt', dict(specs=[(2, 4, 4, 1), (1, 4, 4, 1)], waits=(0, 3), costs=(1, 2))),
    ('a give ignores the time since', dict(specs=[(1, 2, 2, 1)])),
)


def on_redis(**settings):
    return RedisBucket(**{**dict(length=0, most=(), waits=(0, 3)), **settings})


def random_model(seed, rules=()):
    random_ = random.Random(seed)
    batches = random_.random() < .3
    first = (random_.randint(1, 3), random_.randint(1, 5), random_.randint(1, 6), batches)
    specs = [first]
    if random_.random() < .5:
        specs.append((random_.randint(1, 3), random_.choice((first[1], random_.randint(1, 5))),
                      random_.choice((first[2], random_.randint(1, 6))), batches ^ (random_.random() < .2)))
    return random_, TimeLine(specs, waits=(0, random_.randint(1, 12)), costs=(1, 2), partial=True, most_open=9,
                             owed=random_.choice((0, 0, 2)) if len(specs) == 1 else 0, rules=rules)


def main():
    report = Report('The time line of a bucket (timeline.md)')
    for name, model, states in (
            ('a token every two steps, calls wait', TimeLine([GREEDY], waits=(0, 3)), 20_000),
            ('two tokens every three steps, calls wait', TimeLine([(2, 3, 2, False)], waits=(0, 3)), 20_000),
            ('in batches, calls wait', TimeLine([BATCHES], waits=(0, 4)), 20_000),
            ('costs of one and two, settled at less', TimeLine([GREEDY], costs=(1, 2), waits=(0, 2), partial=True), 20_000),
            ('calls that cost more than they took', TimeLine([GREEDY], owed=2, waits=(0, 2)), 20_000),
            ('the limit changes', TimeLine([GREEDY, (1, 3, 2, False)], waits=(0, 3), most_open=2), 20_000),
            ('the limit changes to batches', TimeLine([(1, 2, 2, False), (1, 2, 2, True)], waits=(0,), most_open=2), 20_000),
            ('Redis: a token every two steps, calls wait', on_redis(specs=[(1, 2, 2, 1)]), None),
            ('Redis: three tokens every two steps, calls wait', on_redis(specs=[(3, 2, 2, 1)]), None),
            ('Redis: in batches, calls wait', on_redis(specs=[(2, 2, 2, 2)], waits=(0, 4)), None),
            ('Redis: calls that cost more than they took', on_redis(specs=[(1, 2, 2, 1)], owed=2), None),
            ('Redis: the limit changes', on_redis(specs=[(1, 2, 2, 1), (1, 1, 3, 1)], most_open=2), None),
            ('Redis: batches of two lengths', on_redis(specs=[(2, 2, 2, 2), (4, 4, 2, 4)], waits=(0, 5), most_open=2), 20_000)):
        report.holds(name, explore(model.start, model.steps, most_states=states or 10_000_000))
    broken, histories = None, 1_000
    for seed in range(histories):
        random_, model = random_model(seed)
        broken = broken or walk(random_, model.start, model.steps, 60)
    report.holds_at_random('limits, batches, waits and costs at random', histories, broken)
    for mutant, changed in MUTANTS:
        broken, seed = None, 0
        if changed:
            model = TimeLine(**changed, rules=(mutant,))
            broken = explore(model.start, model.steps, most_states=60_000)[3]
        while not changed and not broken and seed < 4_000:       # the shortest history is longer than the search reaches
            random_, model = random_model(seed, (mutant,))
            broken, seed = walk(random_, model.start, model.steps, 60), seed + 1
        report.dies(mutant, broken)
    for mutant, changed in REDIS_MUTANTS:
        model = on_redis(**changed, rules=(mutant,))
        report.dies('Redis: ' + mutant, explore(model.start, model.steps, most_states=60_000)[3])
    report.end()


if __name__ == '__main__':
    main()

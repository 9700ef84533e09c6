"""Guaranteed shares of one bucket: every history of a pool and two lanes. See shares.md."""
import random

from search import Report, Violation, excess, explore, walk


class Shares:
    """A pool and its lanes. One tick comes back to each bucket in each step; a token costs a number of ticks.

    A state is (ticks missing in the pool, ticks missing in each lane, takes that may be given back, excess of the pool,
    calls that wait). A lane that calls wait for is missing more than a full one.
    take: (lane or -1, tokens, ticks of the pool that time has not paid yet, counted down with time)
    call: (ticks until its lane has the tokens, lane, tokens)
    """

    def __init__(self, pool, lanes, reserve, refunds=0, costs=(1,), wait=0, rules=()):
        self.pool, self.lanes, self.reserve = pool, lanes, reserve
        self.refunds, self.costs, self.wait, self.rules = refunds, costs, wait, frozenset(rules)
        assert rules or sum(pool[0] / price for price, _ in lanes) <= 1 and sum(c for _, c in lanes) <= reserve <= pool[1]
        if 'a reserve of one token less' in self.rules:
            self.reserve -= 1
        self.start = (0, (0,) * len(lanes), (), None, ())

    def steps(self, state):
        yield 'time passes', lambda: self.time(state)
        for lane in range(-1, len(self.lanes)):
            for cost in self.costs:
                yield ('a key without a lane takes %d' % cost if lane < 0 else 'lane %d takes %d' % (lane, cost)), (
                    lambda lane=lane, cost=cost: self.take(state, lane, cost))
        for k, taken in enumerate(state[2]):
            yield '%d of lane %d come back' % (taken[1], taken[0]), lambda k=k: self.give(state, k)
        for k, call in enumerate(state[4] if self.refunds else ()):
            yield 'a call of lane %d stops waiting' % call[1], lambda k=k: self.stop(state, k)

    def time(self, state):
        missing, lanes, takes, base, calls = state
        least = 1 if 'a lane gets back all' in self.rules else 2     # what time has paid comes back to nobody
        takes = tuple((lane, cost, max(left - 1, 0)) for lane, cost, left in takes if left >= least or least == 1)
        base = base and (0, max(base[1] - 1, -self.pool[0] * self.pool[1]))
        missing, lanes = max(missing - 1, 0), tuple(max(lane - 1, 0) for lane in lanes)
        for _, lane, cost in (call for call in calls if call[0] == 1):
            missing, takes, base = self.pay(missing, lane, cost, takes, base)
        return missing, lanes, takes, base, tuple((left - 1, lane, cost) for left, lane, cost in calls if left > 1)

    def take(self, state, lane, cost):
        missing, lanes, takes, base, calls = state
        price, capacity = self.pool
        own_price, own_capacity = self.lanes[lane] if lane >= 0 else (0, 0)
        owns = lane >= 0 and lanes[lane] + cost * own_price <= own_price * own_capacity
        if missing + (cost + self.reserve) * price <= price * capacity:
            owns = False                                         # it borrows, and the pool alone pays
        elif not owns:
            return self.reserved(state, lane, cost) if lane >= 0 and cost <= own_capacity else None
        if owns:
            lanes = changed(lanes, lane, cost * own_price)
        missing, takes, base = self.pay(missing, lane if owns else -1, cost, takes, base)
        return missing, lanes, takes, base, calls

    def pay(self, missing, lane, cost, takes, base):
        """The pool pays for a call that goes ahead."""
        price, capacity = self.pool
        if missing + cost * price > price * capacity:
            raise Violation('lane %d has %d tokens, and the pool denies them' % (lane, cost))
        if not self.refunds:
            base = excess(base, [(0, cost * price, 1, price * capacity)], 0)
        if lane >= 0 and len(takes) < self.refunds:
            takes = tuple(sorted(takes + ((lane, cost, missing + cost * price),)))
        return missing + cost * price, takes, base

    def reserved(self, state, lane, cost):
        """The lane pays ahead; the pool pays when the lane has the tokens."""
        missing, lanes, takes, base, calls = state
        own_price, own_capacity = self.lanes[lane]
        left = lanes[lane] + cost * own_price - own_capacity * own_price
        if left > self.wait:
            return None
        lanes = changed(lanes, lane, cost * own_price)
        if 'the pool pays ahead too' in self.rules:
            missing, takes, base = self.pay(missing, lane, cost, takes, base)
            return missing, lanes, takes, base, calls
        return missing, lanes, takes, base, tuple(sorted(calls + ((left, lane, cost),)))

    def stop(self, state, k):
        """A call doesn't wait any more. The pool hasn't paid. The lane gets back what no later call relies on."""
        missing, lanes, takes, base, calls = state
        left, lane, cost = calls[k]
        own_price, own_capacity = self.lanes[lane]
        if left == lanes[lane] - own_price * own_capacity:
            lanes = changed(lanes, lane, -cost * own_price)
        return missing, lanes, takes, base, calls[:k] + calls[k + 1:]

    def give(self, state, k):
        """The pool gets what time has not paid; the lane as many tokens at most, and none that a call waits for."""
        missing, lanes, takes, base, calls = state
        lane, cost, left = takes[k]
        price, own_price = self.pool[0], self.lanes[lane][0]
        back = min(cost * price, left, missing)
        own = cost * own_price if 'a lane gets back all' in self.rules else back * own_price // price
        if not any(call[1] == lane for call in calls):
            lanes = changed(lanes, lane, -min(own, lanes[lane]))
        takes = tuple((l, c, max(t - back, 0)) for l, c, t in takes[:k] + takes[k + 1:])
        return missing - back, lanes, takes, base, calls


def changed(lanes, lane, ticks):
    return lanes[:lane] + (lanes[lane] + ticks,) + lanes[lane + 1:]


TWO = dict(pool=(1, 4), lanes=((2, 1), (2, 2)), reserve=3)
MUTANTS = (
    ('a reserve of one token less', TWO),
    ('the sum of the rates is more than the rate of the pool', dict(pool=(2, 3), lanes=((2, 1), (4, 2)), reserve=3)),
    ('a lane gets back all', dict(TWO, refunds=2)),
    ('the pool pays ahead too', dict(TWO, wait=2)),
)


def random_model(seed):
    random_ = random.Random(seed)
    price, weights = random_.choice((1, 3, 7)), [random_.randint(1, 9) for _ in range(random_.randint(1, 4))]
    lanes = tuple((-(-price * sum(weights) // weight), random_.randint(1, 8)) for weight in weights)
    reserve = sum(capacity for _, capacity in lanes)
    return random_, Shares((price, reserve + random_.randint(0, 20)), lanes, reserve,
                           refunds=random_.choice((0, 5)), costs=(1, 2), wait=random_.choice((0, 9, 50)))


def main():
    report = Report('Guaranteed shares of one bucket (shares.md)')
    for name, model in (
            ('two lanes, the pool a token above the reserve', Shares(**TWO)),
            ('two lanes, the reserve is the pool', Shares((1, 3), ((2, 1), (2, 2)), 3)),
            ('three lanes of different rates', Shares((1, 5), ((2, 1), (4, 2), (4, 1)), 4, costs=(1, 2))),
            ('a token of three ticks', Shares((3, 5), ((7, 2), (8, 2)), 4, costs=(1, 2))),
            ('two lanes, with refunds', Shares(**TWO, refunds=3)),
            ('two lanes whose calls wait', Shares(**TWO, wait=5)),
            ('three lanes whose calls wait', Shares((1, 5), ((2, 1), (4, 2), (4, 1)), 4, costs=(1, 2), wait=6)),
            ('two lanes whose calls wait, with refunds', Shares(**TWO, refunds=2, wait=4))):
        report.holds(name, explore(model.start, model.steps, most_states=60_000))
    broken, histories = None, 1_000
    for seed in range(histories):
        random_, model = random_model(seed)
        broken = broken or walk(random_, model.start, model.steps, 100)
    report.holds_at_random('up to four lanes of any weights', histories, broken)
    for mutant, changed in MUTANTS:
        model = Shares(**changed, rules=(mutant,))
        report.dies(mutant, explore(model.start, model.steps, most_states=60_000)[3])
    report.end()


if __name__ == '__main__':
    main()

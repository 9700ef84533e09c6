"""The arithmetic of bucket.py and of script.py gives the answers of vectors/ratelimit-vectors.json, as all stores of the project do."""
import bisect
import copy
import json
import pathlib
import sys

import bucket as core
import script


class Clock:
    """The clock of a bucket. With a calendar all periods have one length on it, as those of CalendarClock do."""

    def __init__(self, limit):
        self.begins, self.length = limit.get('begins'), limit['period']

    def at(self, now):
        if not self.begins:
            return now
        number = bisect.bisect(self.begins, now) - 1
        begin, end = self.begins[number:number + 2]
        return number * self.length + (now - begin) * self.length // (end - begin)

    def until(self, wait, now):
        """Returns the time until the clock has moved by a wait, which ends with a period."""
        return self.begins[(self.at(now) + wait) // self.length] - now if self.begins and wait else wait


class Memory:
    """The bucket of bucket.py. A receipt is (cost, receipt of the model)."""

    def __init__(self, limit):
        self.bucket = (self.spec(limit), 0, 0), 0, core.NOTHING

    @staticmethod
    def spec(limit):
        return limit['tokens'], limit['period'], limit['capacity'], limit['refill'] != 'greedy'

    def change(self, limit, now):
        self.bucket = core.convert(self.bucket, self.spec(limit), now)

    def take(self, cost, now, wait):
        """Returns the wait and a receipt, or None."""
        taken = core.take(self.bucket, cost, now, wait)
        if taken:
            self.bucket = taken[0]
        return taken and (taken[1] - now, (cost, taken[2]))

    def settle(self, cost, receipt, now):
        """Returns the ticks given back."""
        taken, rest = receipt
        if cost > taken:
            self.bucket = core.owe(self.bucket, cost - taken, now)
            return 0
        self.bucket, back = core.give_back(self.bucket, taken - cost, cost, rest, True, now)
        return back

    @staticmethod
    def after(receipt, back):
        """Returns a receipt of a bucket to which ticks of another one were given back."""
        cost, (scale, due, room, cut) = receipt
        return cost, (scale, due, room - back, cut)

    def left(self, now):
        scale, full_at, _ = self.bucket
        return max(core.full(scale) - core.missing(scale, full_at, now), 0) // core.ticks(scale[0])[2]

    def until(self, tokens, now):
        scale, full_at, _ = self.bucket
        ticks = core.missing(scale, full_at, now) + tokens * core.ticks(scale[0])[2] - core.full(scale)
        return core.time_until(scale, ticks, now)


class Redis:
    """The bucket of script.py. A receipt is (cost, due step, ticks after it, room, whether its count runs)."""

    def __init__(self, limit):
        self.spec = self.spec_of(limit)
        self.bucket = script.Bucket(script.Bucket.full_one(self.spec), 0)

    @staticmethod
    def spec_of(limit):
        tokens, period, capacity = limit['tokens'], limit['period'], limit['capacity']
        return (1, period // tokens, capacity, 1) if limit['refill'] == 'greedy' else (tokens, 1, capacity, period)

    def pass_until(self, now):
        self.bucket.pass_until(now)
        if self.bucket.is_gone():
            self.bucket.set(script.Bucket.full_one(self.spec))

    def change(self, limit, now):
        self.spec = self.spec_of(limit)

    def take(self, cost, now, wait):
        self.pass_until(now)
        taken = cost <= self.spec[2] and self.bucket.take(self.spec, cost, wait)
        if not taken:
            return None
        n, d, c, s = self.spec
        ahead = max(taken[1] - c * d, 0)
        receipt = cost, now // s + ahead // n, ahead % n, max(min(taken[1], c * d) - cost * d, 0), True
        return self.bucket.micros_until(ahead) if ahead else 0, receipt

    def settle(self, cost, receipt, now):
        self.pass_until(now)
        taken, due, rest, room, live = receipt
        if cost > taken:
            self.bucket.owe(cost - taken)
            return 0
        return self.bucket.give(taken - cost, cost, due, rest, room, live, self.spec)

    @staticmethod
    def after(receipt, back):
        return receipt[:3] + (max(receipt[3] - back, 0),) + receipt[4:]

    def left(self, now):
        self.pass_until(now)
        return max(self.bucket.full - self.bucket.missing, 0) // self.spec[1]

    def until(self, tokens, now):
        self.pass_until(now)
        ticks = self.bucket.missing + tokens * self.spec[1] - self.bucket.full
        return self.bucket.micros_until(ticks) if ticks > 0 else 0


def take(buckets, step):
    """Takes from all buckets or from none. Returns the wait and the receipts, or None; and the buckets from then on."""
    after, done = dict(buckets), []
    for asked in step['answers']:
        clock, bucket = after[asked['bucket']]
        now = clock.at(step['at'])
        after[asked['bucket']] = clock, copy.deepcopy(bucket)
        taken = after[asked['bucket']][1].take(asked['cost'], now, clock.at(step['at'] + step['maxWait']) - now)
        done.append(taken and (clock.until(taken[0], step['at']), taken[1]))
    return ((max(wait for wait, _ in done), done[0][1]), after) if None not in done else (None, buckets)


def numbers(clock, bucket, capacity, asked, at):
    """Returns the tokens left, and the times until the cost, one more token and all tokens are there."""
    now = clock.at(at)
    left = bucket.left(now)

    def until(tokens):
        return clock.until(bucket.until(tokens, now), at)
    return (left, until(asked['cost']) if asked['outcome'] in ('denied', 'too-long') else 0,
            until(left + 1) if left < capacity else 0, until(capacity))


def run(model, sequence):
    limits, takes = dict(enumerate(sequence['limits'])), {}
    buckets = {number: (Clock(limit), model(limit)) for number, limit in limits.items()}
    for number, step in enumerate(sequence['steps']):
        where = '%s: %s, step %d' % (model.__name__, sequence['name'], number)
        if step['do'] == 'change':
            limits[step['bucket']] = step['limit']
            clock, bucket = buckets[step['bucket']]
            bucket.change(step['limit'], clock.at(step['at']))
        elif step['do'] == 'settle':
            clock, bucket = buckets[0]
            back = bucket.settle(step['cost'], takes[step['step']], clock.at(step['at']))
            takes = {k: model.after(receipt, back) for k, receipt in takes.items()}
        else:
            done, buckets = take(buckets, step)
            assert (done[0] if done else 0) == step['wait'], where
            if done:
                takes[number] = done[1]
            for asked in step['answers']:
                expected = asked['remaining'], asked['retry'], asked['next'], asked['reset']
                clock, bucket = buckets[asked['bucket']]
                assert numbers(clock, bucket, limits[asked['bucket']]['capacity'], asked, step['at']) == expected, where


def main():
    sequences = json.loads(pathlib.Path(__file__).parent.joinpath('../vectors/ratelimit-vectors.json').read_text())['sequences']
    sequences = [sequence for sequence in sequences if 'shares' not in sequence]    # shares.py has a model of its own
    for model, place in ((Memory, 'in memory'), (Redis, 'on Redis')):
        for sequence in sequences:
            run(model, sequence)
        print('vectors: the model of a bucket %s gives the answers of %d sequences' % (place, len(sequences)))


sys.exit(main())

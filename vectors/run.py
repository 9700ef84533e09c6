"""Runs the vectors against a small token bucket. See docs/vectors.md. Usage: python3 run.py [ratelimit-vectors.json]"""
import bisect
import json
import pathlib
import sys
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo, available_timezones


def begins(limit, start):
    """Yields the times at which the limit's days, weeks or months begin: midnight by the clock of its zone."""
    zone, unit = ZoneInfo(limit['zone']), limit['unit']
    date = start.astimezone(zone).date()
    date -= timedelta({'day': 0, 'week': date.weekday(), 'month': date.day - 1}[unit])
    while True:
        yield round((datetime.combine(date, time(), zone).timestamp() - start.timestamp()) * 1000)
        date += timedelta({'day': 1, 'week': 7, 'month': 32}[unit])
        date = date.replace(day=1) if unit == 'month' else date


class Bucket:
    """Parts of tokens that are there: without a calendar milliseconds of refill, with a calendar whole tokens."""

    def __init__(self, limit):
        self.under(limit)
        self.level, self.at, self.returned, self.promised = self.full, 0, 0, 0

    def under(self, limit):
        self.millis, self.capacity, self.batches = limit['period'], limit['capacity'], limit['refill'] != 'greedy'
        self.begins = limit.get('begins')
        self.period = limit['tokens'] if self.begins else self.millis
        self.token = self.period // limit['tokens']
        self.full = self.capacity * self.token

    def number(self, at):
        return bisect.bisect(self.begins, at) - 1 if self.begins else at // self.period

    def begin(self, number):
        return self.begins[number] if self.begins else number * self.period

    def gain(self, start, end):
        return (self.number(end) - self.number(start)) * self.period if self.batches else end - start

    def pass_until(self, now):
        self.level, self.at = min(self.level + self.gain(self.at, now), self.full), now

    def until(self, tokens):
        missing = max(tokens * self.token - self.level, 0)
        return self.begin(self.number(self.at) - -missing // self.period) - self.at if self.batches and missing else missing

    def change(self, limit):
        tokens = self.level // self.token
        self.under(limit)
        self.level = min(tokens, self.capacity) * self.token

    def answer(self, name, cost, outcome, wait, leave=0):
        left = max(self.level // self.token - leave, 0)
        retry = self.until(cost + leave) if outcome in ('denied', 'too-long') else 0
        next_token = self.until(left + 1 + leave) if left + leave < self.capacity else 0
        shown = max(retry, next_token - wait)
        to_full = -(-self.full // self.period) * self.millis if self.batches else self.full
        policy = '"b%d";q=%d;w=%d' % (name, self.capacity, -(-to_full // 1000))
        header = '"b%d";r=%d%s' % (name, left, ';t=%d' % -(-shown // 1000) if shown > 0 else '')
        return dict(bucket=name, cost=cost, outcome=outcome, remaining=left, retry=retry, next=next_token,
                    reset=self.until(self.capacity), policy=policy, header=header)

    def settle(self, take, cost):
        """Time pays first for what was missing before the take, then for the tokens; what it hasn't paid comes back.
        While calls wait, only what they don't depend on comes back. Returns what comes back."""
        due, tokens, before = take
        if cost >= tokens:
            self.level -= (cost - tokens) * self.token
            return 0
        now = self.gain(0, self.at)
        last = max(self.promised, now - self.level)
        room = 0 if last > now else max(before - self.returned, 0)
        unpaid = tokens * self.token + room - (max(last, now) - due)
        back = min(max(min(unpaid, (tokens - cost) * self.token), 0), self.full - self.level)
        if last > now and 0 < back < tokens * self.token:
            self.promised = last
        self.level, self.returned = self.level + back, self.returned + back
        return back


def take(buckets, step):
    outcomes = []
    for asked in step['answers']:
        bucket, cost = buckets[asked['bucket']], asked['cost']
        outcomes.append('never-fits' if cost > bucket.capacity else 'allowed' if bucket.until(cost) <= step['maxWait']
                        else 'too-long' if step['maxWait'] else 'denied')
    allowed = all(outcome == 'allowed' for outcome in outcomes)
    wait = max(buckets[a['bucket']].until(a['cost']) for a in step['answers']) if allowed else 0
    answers = []
    for asked, outcome in zip(step['answers'], outcomes):
        bucket = buckets[asked['bucket']]
        bucket.level -= asked['cost'] * bucket.token if allowed else 0
        answers.append(bucket.answer(asked['bucket'], asked['cost'], outcome, wait))
    return wait, answers


def take_share(pool, lanes, shares, step):
    """Takes from the pool alone, from pool and lane, or from none. Returns the answer, and the lane if it served the call."""
    name, cost = step['share'], step['answers'][0]['cost']
    place = shares['lanes'].index(name) + 1 if name in shares['lanes'] else 0
    lane, leave = lanes[place - 1], max(shares['reserve'], -(-pool.capacity * shares['leave'].get(name, 0) // 100))
    has_place = lane.level < lane.full or sum(other.level < other.full for other in lanes) < shares['for']
    may_serve = place > 0 and has_place and cost <= lane.capacity
    ever_borrows = cost + leave <= pool.capacity
    borrows = ever_borrows and pool.until(cost + leave) == 0
    allowed = borrows or may_serve and lane.until(cost) == 0
    by_lane = not borrows and may_serve and (not ever_borrows or lane.until(cost) < pool.until(cost + leave))
    pool.level -= cost * pool.token if allowed else 0
    lane.level -= cost * lane.token if allowed and by_lane else 0
    outcome = 'allowed' if allowed else 'denied' if ever_borrows or may_serve else 'never-fits'
    answer = lane.answer(0, cost, outcome, 0) if by_lane else pool.answer(0, cost, outcome, 0, leave)
    return dict(answer, bucket=place if by_lane else 0), lane if by_lane else None


def check_zones(sequence):
    """A calendar of another language may compute the beginnings of the periods, or take them from the file."""
    for limit in sequence['limits'] if 'start' in sequence and available_timezones() else []:
        start = datetime.fromisoformat(sequence['start'].replace('Z', '+00:00'))
        assert all(a == b for a, b in zip(limit['begins'], begins(limit, start))), sequence['name']


def run(sequence):
    check_zones(sequence)
    buckets, takes = [Bucket(limit) for limit in sequence['limits']], {}
    for number, step in enumerate(sequence['steps']):
        for bucket in buckets:
            bucket.pass_until(step['at'])
        if step['do'] == 'change':
            buckets[step['bucket']].change(step['limit'])
        elif step['do'] == 'settle':
            taken, lane = takes[step['step']]
            back = buckets[0].settle(taken, step['cost'])
            if lane:
                lane.level = min(lane.level + back * lane.token // buckets[0].token, lane.full)
        else:
            lane = None
            if 'shares' in sequence:
                answer, lane = take_share(buckets[0], buckets[1:], sequence['shares'], step)
                done = 0, [answer]
            else:
                done = take(buckets, step)
            assert done == (step['wait'], step['answers']), (sequence['name'], number)
            first, cost = buckets[0], step['answers'][0]['cost']
            beside = min(first.full - first.level, first.full) - cost * first.token
            takes[number] = (first.gain(0, step['at']) + max(-first.level, 0), cost, beside + first.returned), lane


file = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).with_name('ratelimit-vectors.json')
sequences = json.loads(pathlib.Path(file).read_text())['sequences']
for one in sequences:
    run(one)
print('%d sequences, all as expected' % len(sequences))

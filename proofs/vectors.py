"""The arithmetic of bucket.py gives the answers of vectors/ratelimit-vectors.json, as all stores of the project do."""
import json
import pathlib
import sys

from bucket import NOTHING, convert, full, give_back, missing, owe, take, ticks, time_until


def spec(limit):
    return limit['tokens'], limit['period'], limit['capacity'], limit['refill'] == 'interval'


def until(bucket, tokens, now):
    scale, full_at, _ = bucket
    return time_until(scale, missing(scale, full_at, now) + tokens * ticks(scale[0])[2] - full(scale), now)


def numbers(bucket, outcome, cost, now):
    """Returns the tokens left, and the times until the cost, one more token and all tokens are there."""
    scale, full_at, _ = bucket
    capacity = scale[0][2]
    left = max(full(scale) - missing(scale, full_at, now), 0) // ticks(scale[0])[2]
    return (left, until(bucket, cost, now) if outcome in ('denied', 'too-long') else 0,
            until(bucket, left + 1, now) if left < capacity else 0, until(bucket, capacity, now))


def call(buckets, step):
    """Takes from all buckets or from none. Returns the wait and the receipts, or None."""
    taken = [take(buckets[asked['bucket']], asked['cost'], step['at'], step['maxWait']) for asked in step['answers']]
    if None in taken:
        return None
    for asked, (bucket, _, _) in zip(step['answers'], taken):
        buckets[asked['bucket']] = bucket
    return max(due for _, due, _ in taken) - step['at'], [receipt for _, _, receipt in taken]


def run(sequence):
    buckets, takes = [((spec(limit), 0, 0), 0, NOTHING) for limit in sequence['limits']], {}
    for number, step in enumerate(sequence['steps']):
        now, where = step['at'], '%s, step %d' % (sequence['name'], number)
        if step['do'] == 'change':
            buckets[step['bucket']] = convert(buckets[step['bucket']], spec(step['limit']), now)
        elif step['do'] == 'settle':
            cost, receipt = takes[step['step']]
            more = step['cost'] - cost
            if more > 0:
                buckets[0] = owe(buckets[0], more, now)
            else:
                buckets[0], back = give_back(buckets[0], -more, step['cost'], receipt, True, now)
                takes = {k: (cost, (scale, due, room - back, cut)) for k, (cost, (scale, due, room, cut)) in takes.items()}
        else:
            done = call(buckets, step)
            assert (done[0] if done else 0) == step['wait'], where
            if done:
                takes[number] = step['answers'][0]['cost'], done[1][0]
            for asked in step['answers']:
                expected = asked['remaining'], asked['retry'], asked['next'], asked['reset']
                assert numbers(buckets[asked['bucket']], asked['outcome'], asked['cost'], now) == expected, where


def main():
    sequences = json.loads(pathlib.Path(__file__).parent.joinpath('../vectors/ratelimit-vectors.json').read_text())['sequences']
    for sequence in sequences:
        run(sequence)
    print('vectors: the model of a bucket in memory gives the answers of %d sequences' % len(sequences))


sys.exit(main())

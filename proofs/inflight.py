"""Registers of requests in flight: every history of two instances and one server. See inflight.md."""
import random

from search import Report, Violation, explore, walk


class Registers:
    """Two instances that make a few calls each; a message may be lost, late or overtaken, a register may run out at any time.

    A state is (instances, registers, messages under way).
    instance: (requests that run, usable as it believes, number of its last call, whether its time runs, the call that it waits
      for or 0, requests that still ran when its register ran out)
    register: (number of its last call, slots, usable), or None
    message: ('set', instance, number, running, wanted) or ('reply', instance, number, usable)
    """

    def __init__(self, slots, calls, rules=()):
        self.slots, self.calls, self.rules = slots, calls, frozenset(rules)
        self.start = (((0, 0, 0, False, 0, 0),) * 2, (None, None), frozenset())
        # One instance runs a request, and its register has run out.
        self.start_after_a_cut = (((1, 0, 1, False, 0, 1), (0, 0, 1, False, 0, 0)), (None, None), frozenset())

    def steps(self, state):
        instances, registers, messages = state
        for i in (0, 1):
            run, usable, number, valid, waits, cut = instances[i]
            if valid and run < usable:
                yield '%d starts a request' % i, lambda i=i: self.instance(state, i, run=instances[i][0] + 1)
            if run:
                yield '%d ends a request' % i, lambda i=i: self.instance(
                    state, i, run=instances[i][0] - 1, cut=min(instances[i][5], instances[i][0] - 1))
            if not waits and number < self.calls:
                for more in (0, 1):
                    yield '%d asks for %d' % (i, run + more), lambda i=i, more=more: self.call(state, i, more)
            if waits:
                yield '%d gives its call up' % i, lambda i=i: self.instance(state, i, waits=0)
            if registers[i]:
                yield 'the register of %d runs out' % i, lambda i=i: self.run_out(state, i)
        for message in messages:
            if message[0] == 'set':
                yield 'the server gets %s' % (message,), lambda message=message: self.set(state, message)
            else:
                yield '%d gets %s' % (message[1], message), lambda message=message: self.reply(state, message)

    def instance(self, state, i, messages=None, **changed):
        names = ('run', 'usable', 'number', 'valid', 'waits', 'cut')
        instances, registers, before = state
        instances = list(instances)
        instances[i] = tuple(changed.get(name, value) for name, value in zip(names, instances[i]))
        return self.state(tuple(instances), registers, before if messages is None else messages)

    def call(self, state, i, more):
        run, usable, number, valid, _, _ = state[0][i]
        usable = usable if valid else 0
        if 'lowers after the reply' not in self.rules:
            usable = min(usable, run + more)
        message = ('set', i, number + 1, run, run + more)
        return self.instance(state, i, state[2] | {message}, usable=usable, number=number + 1, waits=number + 1)

    def run_out(self, state, i):
        """The instance has stopped to use its slots before: it counts from the moment of sending. Earlier replies are too late."""
        instances, registers, messages = state
        run, _, _, _, waits, cut = instances[i]
        last = registers[i][0]
        registers = tuple(None if k == i else register for k, register in enumerate(registers))
        if 'counts from the reply' in self.rules:
            return self.state(instances, registers, messages)
        late = frozenset(m for m in messages if not (m[0] == 'reply' and m[1] == i and m[2] <= last))
        return self.instance((instances, registers, late), i, usable=0, valid=False, waits=0 if waits <= last else waits,
                             cut=max(cut, run))

    def set(self, state, message):
        instances, registers, messages = state
        _, i, number, have, want = message
        register, other = registers[i], registers[1 - i]
        rest = messages - {message}
        if register and number <= register[0] and 'no numbers' not in self.rules:
            return self.state(instances, registers, rest)
        had = register[2] if register and 'takes back what it promised' not in self.rules else 0
        free = self.slots - (other[1] if other else 0)
        usable = want if 'grants what is asked' in self.rules else max(0, min(want, max(free, had)))
        registers = tuple((number, max(have, usable), usable) if k == i else r for k, r in enumerate(registers))
        replied = max(have, usable) if 'uses a slot that was forced' in self.rules else usable
        return self.state(instances, registers, rest | {('reply', i, number, replied)})

    def reply(self, state, message):
        _, i, number, usable = message
        messages = state[2] - {message}
        if state[0][i][4] != number and 'takes late replies' not in self.rules:
            return self.state(state[0], state[1], messages)
        return self.instance(state, i, messages, usable=usable, valid=True, waits=0)

    def state(self, instances, registers, messages):
        running, cut = instances[0][0] + instances[1][0], instances[0][5] + instances[1][5]
        if running > self.slots + cut:
            raise Violation('%d requests run, with %d slots and %d requests of instances that were cut off' % (
                running, self.slots, cut))
        return instances, registers, messages


MUTANTS = ('no numbers', 'lowers after the reply', 'counts from the reply', 'grants what is asked', 'takes late replies',
           'uses a slot that was forced', 'takes back what it promised')


def main():
    report = Report('Registers of requests in flight (inflight.md)')
    for slots, calls in ((1, 2), (2, 2), (3, 2), (1, 3)):
        model = Registers(slots, calls)
        report.holds('%d slots, %d calls of each instance' % (slots, calls), explore(model.start, model.steps, most_states=60_000))
    model = Registers(1, 3)
    report.holds('1 slot, 2 calls each after one was cut off', explore(model.start_after_a_cut, model.steps, most_states=60_000))
    broken, histories = None, 4_000
    for seed in range(histories):
        random_ = random.Random(seed)
        model = Registers(random_.randint(1, 4), 9)
        broken = broken or walk(random_, model.start, model.steps, 60)
    report.holds_at_random('up to four slots, many calls', histories, broken)
    for mutant in MUTANTS:
        model = Registers(1, 3, (mutant,))
        broken = explore(model.start, model.steps, most_states=30_000)[3] or explore(
            model.start_after_a_cut, model.steps, most_states=100_000)[3]
        report.dies(mutant, broken)
    report.end()


if __name__ == '__main__':
    main()

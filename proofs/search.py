"""A search of all histories of a model, and the count of granted tokens that every history is held against."""
import sys
import time


class Violation(Exception):
    """A history broke the theorem. The argument says how."""


def explore(start, steps, most_steps=None, most_states=10_000_000):
    """Visits every state that a history can reach, each once, in order of the length of the shortest history.

    steps(state) yields pairs (what is done, a function that returns the next state, or None if nothing happens); the function
    raises Violation where the theorem fails.
    Returns (states, longest shortest history, whether there are longer ones, None or (what failed, the history)).
    """
    came = {start: None}
    level, length = [start], 0
    while level and (most_steps is None or length < most_steps):
        length += 1
        following = []
        for state in level:
            for action, step in steps(state):
                try:
                    after = step()
                except Violation as failed:
                    return len(came), length, False, (str(failed), history(came, state) + [action])
                if after is not None and after not in came:
                    came[after] = (state, action)
                    following.append(after)
        if len(came) > most_states:
            return len(came), length, True, None
        level = following
    return len(came), length, bool(level), None


def history(came, state):
    """Returns what was done from the start to a state."""
    actions = []
    while came[state] is not None:
        state, action = came[state]
        actions.append(action)
    return actions[::-1]


def excess(base, grants, allowed):
    """Returns the last (moment, excess) and raises Violation if any window has granted more than capacity + rate x time + allowed.

    The excess at a grant is the most, over all windows that end there, of the tokens granted less those that the window
    allows. The worst window that ends at the next grant either extends the worst one that ends here or begins there. Each
    grant is (moment, tokens kept, rate, capacity), in the same parts, and False if its own windows may exceed the bound: it only
    counts for later ones.
    """
    last = base
    for moment, kept, rate, capacity, *checked in grants:
        now = -capacity
        if last is not None:
            now = max(last[1] - rate * (moment - last[0]), now)
        now += kept
        if now > allowed and checked != [False]:
            raise Violation('%d parts of a token more than capacity + rate x D' % (now - allowed))
        last = (moment, now)
    return last


class Report:
    """Prints a line for each search, and remembers what failed."""

    def __init__(self, theorem):
        self.failed = 0
        self.began = time.time()
        print(theorem)

    def _line(self, name, text, ok):
        self.failed += not ok
        print('  %s %-58s %s  (%.0f s)' % ('ok  ' if ok else 'FAIL', name, text, time.time() - self.began), flush=True)

    def holds(self, name, result):
        states, length, more, broken = result
        reach = 'of up to %d steps' % length if more else 'of any length'
        self._line(name, '%d states, histories %s' % (states, reach) if not broken else broken_text(broken), not broken)

    def holds_at_random(self, name, histories, broken, detail=''):
        self._line(name, '%d random histories%s' % (histories, detail) if not broken else broken_text(broken), not broken)

    def dies(self, mutant, broken):
        self._line('mutant: ' + mutant, 'dies after %d steps' % len(broken[1]) if broken else 'SURVIVES', bool(broken))

    def end(self):
        sys.exit(1 if self.failed else 0)


def broken_text(broken):
    return '%s:\n        %s' % (broken[0], '\n        '.join(str(action) for action in broken[1]))


def walk(random, start, steps, length):
    """Makes one random history. Returns None, or what failed and the history."""
    state, done = start, []
    for _ in range(length):
        actions = list(steps(state))
        if not actions:
            return None
        for _ in range(8):
            action, step = random.choice(actions)
            try:
                after = step()
            except Violation as failed:
                return str(failed), done + [action]
            if after is not None:
                done.append(action)
                state = after
                break
    return None

// Runs the vectors against a small token bucket. See docs/vectors.md. Usage: node run.mjs [ratelimit-vectors.json]
import { readFileSync } from 'node:fs'
import { deepStrictEqual } from 'node:assert'

// Parts of tokens that are there: without a calendar milliseconds of refill, with a calendar whole tokens.
class Bucket {
  at = 0
  returned = 0
  promised = 0
  constructor(limit) { this.under(limit); this.level = this.full }
  under({ tokens, period: millis, capacity, refill, begins }) {
    const period = begins ? tokens : millis, token = period / tokens
    Object.assign(this, { millis, period, capacity, batches: refill !== 'greedy', begins, token, full: capacity * token })
  }
  number(at) { return this.begins ? this.begins.filter(begin => begin <= at).length - 1 : Math.floor(at / this.period) }
  begin(number) { return this.begins ? this.begins[number] : number * this.period }
  gain(from, to) { return this.batches ? (this.number(to) - this.number(from)) * this.period : to - from }
  pass(now) { this.level = Math.min(this.level + this.gain(this.at, now), this.full); this.at = now }
  until(tokens) {
    const missing = Math.max(tokens * this.token - this.level, 0)
    return this.batches && missing
      ? this.begin(this.number(this.at) + Math.ceil(missing / this.period)) - this.at : missing
  }
  change(limit) {
    const tokens = Math.floor(this.level / this.token)
    this.under(limit)
    this.level = Math.min(tokens, this.capacity) * this.token
  }
  answer(bucket, cost, outcome, wait, leave = 0) {
    const remaining = Math.max(Math.floor(this.level / this.token) - leave, 0)
    const retry = ['denied', 'too-long'].includes(outcome) ? this.until(cost + leave) : 0
    const next = remaining + leave < this.capacity ? this.until(remaining + 1 + leave) : 0
    const shown = Math.max(retry, next - wait)
    const toFull = this.batches ? Math.ceil(this.full / this.period) * this.millis : this.full
    const policy = `"b${bucket}";q=${this.capacity};w=${Math.ceil(toFull / 1000)}`
    const header = `"b${bucket}";r=${remaining}${shown > 0 ? `;t=${Math.ceil(shown / 1000)}` : ''}`
    return { bucket, cost, outcome, remaining, retry, next, reset: this.until(this.capacity), policy, header }
  }
  // Time pays first for what was missing before the take, then for the tokens; what it hasn't paid comes back. While calls wait,
  // only what they don't depend on comes back. Returns what comes back.
  settle(take, cost) {
    if (cost >= take.cost) { this.level -= (cost - take.cost) * this.token; return 0 }
    const now = this.gain(0, this.at), last = Math.max(this.promised, now - this.level)
    const room = last > now ? 0 : Math.max(take.before - this.returned, 0)
    const unpaid = take.cost * this.token + room - (Math.max(last, now) - take.due)
    const back = Math.min(Math.max(Math.min(unpaid, (take.cost - cost) * this.token), 0), this.full - this.level)
    if (last > now && back > 0 && back < take.cost * this.token) this.promised = last
    this.level += back
    this.returned += back
    return back
  }
}

function take(buckets, { answers, maxWait }) {
  const outcomes = answers.map(({ bucket, cost }) => cost > buckets[bucket].capacity ? 'never-fits'
    : buckets[bucket].until(cost) <= maxWait ? 'allowed' : maxWait ? 'too-long' : 'denied')
  const allowed = outcomes.every(outcome => outcome === 'allowed')
  const wait = allowed ? Math.max(...answers.map(({ bucket, cost }) => buckets[bucket].until(cost))) : 0
  return { wait, answers: answers.map(({ bucket, cost }, i) => {
    if (allowed) buckets[bucket].level -= cost * buckets[bucket].token
    return buckets[bucket].answer(bucket, cost, outcomes[i], wait)
  }) }
}

// Takes from the pool alone, from pool and lane, or from none. Returns the answer, and the lane if it served the call.
function takeShare([pool, ...lanes], { for: most, reserve, lanes: names, leave: parts }, { share, answers: [{ cost }] }) {
  const place = names.indexOf(share) + 1, lane = lanes[place - 1]
  const leave = Math.max(reserve, Math.ceil(pool.capacity * (parts[share] ?? 0) / 100))
  const inUse = lanes.filter(({ level, full }) => level < full).length
  const mayServe = place > 0 && cost <= lane.capacity && (lane.level < lane.full || inUse < most)
  const everBorrows = cost + leave <= pool.capacity, borrows = everBorrows && pool.until(cost + leave) === 0
  const allowed = borrows || mayServe && lane.until(cost) === 0
  const byLane = !borrows && mayServe && (!everBorrows || lane.until(cost) < pool.until(cost + leave))
  if (allowed) pool.level -= cost * pool.token
  if (allowed && byLane) lane.level -= cost * lane.token
  const outcome = allowed ? 'allowed' : everBorrows || mayServe ? 'denied' : 'never-fits'
  const answer = byLane ? lane.answer(0, cost, outcome, 0) : pool.answer(0, cost, outcome, 0, leave)
  return { wait: 0, answers: [{ ...answer, bucket: byLane ? place : 0 }], lane: byLane ? lane : null }
}

const { sequences } = JSON.parse(readFileSync(process.argv[2] ?? new URL('ratelimit-vectors.json', import.meta.url)))
for (const { name, limits, shares, steps } of sequences) {
  const buckets = limits.map(limit => new Bucket(limit)), takes = []
  steps.forEach((step, i) => {
    buckets.forEach(bucket => bucket.pass(step.at))
    if (step.do === 'change') buckets[step.bucket].change(step.limit)
    else if (step.do === 'settle') {
      const { lane } = takes[step.step], back = buckets[0].settle(takes[step.step], step.cost)
      if (lane) lane.level = Math.min(lane.level + back * lane.token / buckets[0].token, lane.full)
    } else {
      const { lane, ...done } = shares ? takeShare(buckets, shares, step) : take(buckets, step)
      deepStrictEqual(done, { wait: step.wait, answers: step.answers }, `${name}, step ${i}`)
      const first = buckets[0], { full, level, returned, token } = first, { cost } = step.answers[0]
      takes[i] = { due: first.gain(0, step.at) + Math.max(-level, 0), cost, before: Math.min(full - level, full) - cost * token + returned, lane }
    }
  })
}
console.log(`${sequences.length} sequences, all as expected`)

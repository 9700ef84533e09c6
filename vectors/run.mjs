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
  answer(bucket, cost, outcome, wait) {
    const remaining = Math.floor(Math.max(this.level, 0) / this.token)
    const retry = ['denied', 'too-long'].includes(outcome) ? this.until(cost) : 0
    const next = remaining < this.capacity ? this.until(remaining + 1) : 0
    const shown = Math.max(retry, next - wait)
    const toFull = this.batches ? Math.ceil(this.full / this.period) * this.millis : this.full
    const policy = `"b${bucket}";q=${this.capacity};w=${Math.ceil(toFull / 1000)}`
    const header = `"b${bucket}";r=${remaining}${shown > 0 ? `;t=${Math.ceil(shown / 1000)}` : ''}`
    return { bucket, cost, outcome, remaining, retry, next, reset: this.until(this.capacity), policy, header }
  }
  // Time pays first for what was missing before the take, then for the tokens; what it hasn't paid comes back. While calls wait,
  // only what they don't depend on comes back.
  settle(take, cost) {
    if (cost >= take.cost) { this.level -= (cost - take.cost) * this.token; return }
    const now = this.gain(0, this.at), last = Math.max(this.promised, now - this.level)
    const room = last > now ? 0 : Math.max(take.before - this.returned, 0)
    const unpaid = take.cost * this.token + room - (Math.max(last, now) - take.due)
    const back = Math.min(Math.max(Math.min(unpaid, (take.cost - cost) * this.token), 0), this.full - this.level)
    if (last > now && back > 0 && back < take.cost * this.token) this.promised = last
    this.level += back
    this.returned += back
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

const { sequences } = JSON.parse(readFileSync(process.argv[2] ?? new URL('ratelimit-vectors.json', import.meta.url)))
for (const { name, limits, steps } of sequences) {
  const buckets = limits.map(limit => new Bucket(limit)), takes = []
  steps.forEach((step, i) => {
    buckets.forEach(bucket => bucket.pass(step.at))
    if (step.do === 'change') buckets[step.bucket].change(step.limit)
    else if (step.do === 'settle') buckets[0].settle(takes[step.step], step.cost)
    else {
      deepStrictEqual(take(buckets, step), { wait: step.wait, answers: step.answers }, `${name}, step ${i}`)
      const first = buckets[0], { full, level, returned, token } = first, { cost } = step.answers[0]
      takes[i] = { due: first.gain(0, step.at) + Math.max(-level, 0), cost, before: Math.min(full - level, full) - cost * token + returned }
    }
  })
}
console.log(`${sequences.length} sequences, all as expected`)

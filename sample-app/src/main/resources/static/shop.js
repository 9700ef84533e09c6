'use strict';

/* Sends requests to the shop's API, never more than a few at a time, and shows the answers as they come. */

const USERS = {
  alice: { plan: 'free plan', login: 'alice:alice' },
  bob: { plan: 'pro plan', login: 'bob:bob' },
  admin: { plan: 'changes limits', login: 'admin:admin' },
  stranger: { plan: 'no login, or guesses', login: null },
};
const QUESTION = 'Which+tea+is+good+on+a+rainy+day+in+November';
const KETTLE = '{"name": "kettle"}';
const AT_ONCE = 6; // as many connections as a browser opens to one server
const MOST_TO_COME = 1000;
const LOAD_MILLIS = 10_000;
const MINUTE_MILLIS = 60_000;
const CUSTOMERS = 40;
const ROWS = 80;
const MERGE_MILLIS = 1000;
const SLOTS = 60; // of half a second, in the little charts
const SLOT_MILLIS = 500;

const byId = id => document.getElementById(id);

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

const noCounts = () => ({ allowed: 0, rejected: 0, other: 0, failed: 0 });
const number = n => n.toLocaleString('en');

/* ---- sending ---- */

const toCome = [];
let inFlight = 0;

/** A run is what one press of a button sends: it ends by itself, and says then what came of it. */
class Run {
  constructor(name) {
    this.name = name;
    this.started = performance.now();
    this.answers = noCounts();
    this.rejectedBy = new Map();
    this.open = 0;
    this.complete = false;
    say(`${name} …`);
  }

  send(who, request, { login = USERS[who].login, body } = {}) {
    if (toCome.length >= MOST_TO_COME) return;
    this.open++;
    toCome.push({ run: this, who, request, login, body });
    pump();
  }

  answered(answer) {
    this.open--;
    this.answers[answer.outcome]++;
    if (answer.outcome === 'rejected') {
      for (const policy of answer.policies) this.rejectedBy.set(policy.name, (this.rejectedBy.get(policy.name) ?? 0) + 1);
    }
    this.endIfDone();
  }

  end() {
    this.complete = true;
    this.endIfDone();
  }

  endIfDone() {
    if (!this.complete || this.open > 0) return;
    const { allowed, rejected, other, failed } = this.answers;
    const by = [...this.rejectedBy].map(([policy, count]) => `${policy} (${number(count)})`).join(', ');
    const seconds = ((performance.now() - this.started) / 1000).toFixed(1);
    const counts = [[allowed, 'allowed'], [other, 'without success'], [rejected, `rejected by ${by}`], [failed, 'without an answer']]
        .filter(([count]) => count > 0)
        .map(([count, what]) => `${number(count)} ${what}`);
    say(`${this.name}: ${counts.join(', ') || 'none sent'}, in ${seconds} s.`);
    if (load === this) stopLoad();
  }
}

function pump() {
  while (inFlight < AT_ONCE && toCome.length > 0) {
    inFlight++;
    exchange(toCome.shift()).then(() => {
      inFlight--;
      pump();
    });
  }
}

async function exchange({ run, who, request, login, body }) {
  const [method, path] = request.split(' ');
  const headers = login ? { Authorization: `Basic ${btoa(login)}` } : {};
  if (body) headers['Content-Type'] = 'application/json';
  const started = performance.now();
  let answer;
  try {
    // Without "omit" the browser would ask for a password itself when one is wrong.
    const response = await fetch(path.slice(1), { method, headers, body, credentials: 'omit', cache: 'no-store' });
    answer = read(response, await response.text());
  } catch {
    answer = { outcome: 'failed', status: 'no answer', policies: [], retryAfter: '', retryAfterMs: '', raw: '' };
  }
  show({ ...answer, who, request: method + ' ' + path, took: performance.now() - started, at: performance.now() });
  run.answered(answer);
}

/* ---- reading answers ---- */

/** `"per-user";q=800;w=80, "global";q=7000;w=70`, by the names; names of policies have no quotes, commas or semicolons. */
function parse(header) {
  const items = new Map();
  for (const item of (header ?? '').split(',')) {
    const [name, ...parameters] = item.trim().split(';');
    if (name) items.set(name.replaceAll('"', ''), Object.fromEntries(parameters.map(p => p.split('='))));
  }
  return items;
}

function read(response, body) {
  const outcome = response.ok ? 'allowed' : response.status === 429 || response.status === 503 ? 'rejected' : 'other';
  const quotas = parse(response.headers.get('RateLimit-Policy'));
  const left = parse(response.headers.get('RateLimit'));
  const names = quotas.size > 0 || outcome !== 'rejected' ? [...quotas.keys()] : violated(body);
  return {
    outcome,
    status: response.status,
    policies: names.map(name => ({ name, ...quotas.get(name), ...left.get(name) })),
    retryAfter: response.headers.get('Retry-After') ?? '',
    retryAfterMs: response.headers.get('X-RetryAfterMs') ?? '',
    raw: outcome === 'rejected' ? asSent(response, body) : '',
  };
}

function violated(body) {
  try {
    return JSON.parse(body)['violated-policies'] ?? [];
  } catch {
    return [];
  }
}

function asSent(response, body) {
  const names = ['Retry-After', 'X-RetryAfterMs', 'RateLimit-Policy', 'RateLimit', 'Content-Type'];
  const headers = names.filter(name => response.headers.has(name)).map(name => `${name}: ${response.headers.get(name)}`);
  return [`HTTP/1.1 ${response.status}`, ...headers, '', body].join('\n');
}

/* ---- showing ---- */

const cards = new Map();
const rejectedBy = new Map();
let rows = [];
let last = null;
let drawing = false;

function say(text) {
  byId('status').textContent = text;
}

function draw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    cards.forEach(card => card.draw());
    drawRejectedBy();
    drawStream();
    byId('last').hidden = last === null;
    byId('last-rejection').textContent = last ?? '';
  });
}

function show(answer) {
  cards.get(answer.who).add(answer);
  if (answer.outcome === 'rejected') {
    for (const { name } of answer.policies) rejectedBy.set(name, (rejectedBy.get(name) ?? 0) + 1);
    last = answer.raw;
  }
  merge(answer);
  draw();
}

/** Answers of the same kind within a second are one row, with the numbers of the last. */
function merge(answer) {
  const kind = [answer.who, answer.request, answer.status, ...answer.policies.map(policy => policy.name)].join(' ');
  const row = rows.find(row => row.kind === kind && answer.at - row.since < MERGE_MILLIS);
  if (row) {
    Object.assign(row, { count: row.count + 1, answer });
  } else {
    rows.unshift({ kind, since: answer.at, count: 1, answer, shown: null, element: element('tr') });
    rows = rows.slice(0, ROWS);
  }
}

function drawStream() {
  for (const row of rows) {
    if (row.shown !== row.answer) fill(row);
  }
  byId('stream').replaceChildren(...rows.map(row => row.element));
}

function fill(row) {
  const { answer, count } = row;
  const sign = answer.outcome === 'rejected' ? '✕' : answer.outcome === 'allowed' ? '✓' : '·';
  const status = element('td', 'status');
  status.append(element('b', '', `${sign} ${answer.status}`));
  if (count > 1) status.append(element('small', '', ` × ${number(count)}`));
  row.element.className = answer.outcome;
  row.element.replaceChildren(
      element('td', 'who', answer.who),
      element('td', 'request', answer.request),
      status,
      element('td', 'policy', answer.policies.map(policy => policy.name).join(', ')),
      labelled('left', answer.policies.map(policy => `${number(+policy.r)} of ${number(+policy.q)}`).join(', ')),
      labelled('Retry-After', answer.retryAfter && `${answer.retryAfter} s`),
      labelled('X-RetryAfterMs', answer.retryAfterMs && `${number(+answer.retryAfterMs)} ms`),
      labelled('took', `${Math.round(answer.took)} ms`));
  row.shown = answer;
}

/** Returns a cell with a label, for phones, where the table has no head. */
function labelled(label, text) {
  const cell = element('td', 'number', text);
  if (text) cell.dataset.label = label;
  return cell;
}

function drawRejectedBy() {
  const most = [...rejectedBy].sort((a, b) => b[1] - a[1]);
  byId('rejected-by').replaceChildren(...most.map(([policy, count]) => {
    const item = element('li', '', policy);
    item.append(element('b', '', number(count)));
    return item;
  }));
}

/** The results of one user. */
class Card {
  constructor(name, { plan }) {
    this.element = element('li', 'card');
    this.element.dataset.user = name;
    const heading = element('h3', '', name);
    heading.append(element('small', '', plan));
    this.allowed = element('b', '', '0');
    this.rejected = element('b', '', '0');
    const counts = element('p', 'counts');
    this.other = element('b', '', '0');
    counts.append(count('allowed', '✓', this.allowed), count('rejected', '✕', this.rejected), count('other', '·', this.other));
    this.chart = element('canvas');
    this.chart.setAttribute('aria-hidden', 'true');
    this.left = element('p', 'left', '\u00a0');
    this.element.append(heading, counts, this.chart, this.left);
    this.clear();
  }

  clear() {
    this.counts = noCounts();
    this.slots = new Map();
    this.left.textContent = '\u00a0';
  }

  add(answer) {
    this.counts[answer.outcome]++;
    const slot = Math.floor(answer.at / SLOT_MILLIS);
    const counted = this.slots.get(slot) ?? noCounts();
    counted[answer.outcome]++;
    this.slots.set(slot, counted);
    const policy = answer.policies[0];
    if (policy?.r) this.left.textContent = `${number(+policy.r)} of ${number(+policy.q)} left of ${policy.name}`;
  }

  draw() {
    this.allowed.textContent = number(this.counts.allowed);
    this.rejected.textContent = number(this.counts.rejected);
    this.other.textContent = number(this.counts.other);
    this.other.parentElement.hidden = this.counts.other === 0;
    drawSlots(this.chart, this.slots);
  }
}

function count(name, sign, shown) {
  const text = element('span', name, `${sign} `);
  text.append(shown, ` ${name}`);
  return text;
}

/** Bars of half a second each, the rejected ones on top; half a minute in all. */
function drawSlots(canvas, slots) {
  const now = Math.floor(performance.now() / SLOT_MILLIS);
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const pen = canvas.getContext('2d');
  pen.scale(ratio, ratio);
  const colors = getComputedStyle(canvas);
  for (const slot of slots.keys()) if (slot <= now - SLOTS) slots.delete(slot);
  const most = Math.max(4, ...[...slots.values()].map(slot => slot.allowed + slot.rejected + slot.other));
  const bar = width / SLOTS;
  pen.fillStyle = colors.getPropertyValue('--line');
  pen.fillRect(0, height - 1, width, 1);
  for (const [slot, counts] of slots) {
    let top = height;
    for (const kind of ['allowed', 'other', 'rejected']) {
      const tall = counts[kind] / most * height;
      pen.fillStyle = colors.getPropertyValue(`--${kind}`);
      pen.fillRect((SLOTS - 1 - (now - slot)) * bar, top -= tall, bar - 1, tall);
    }
  }
}

/* ---- the load ---- */

let load = null;
let ticking = 0;

/** Sends at the chosen rate for ten seconds; what the API can't take in time is not sent later. */
function startLoad() {
  const users = [...document.querySelectorAll('input[name=who]:checked')].map(box => box.value);
  if (users.length === 0) return say('Choose at least one user to send as.');
  const request = byId('what').value;
  const body = request.startsWith('PUT') ? KETTLE : undefined;
  const rate = +byId('rate').value;
  const run = new Run(`${request} as ${users.join(', ')}, ${rate} a second each`);
  let sent = 0;
  pace(run, LOAD_MILLIS, elapsed => {
    for (; sent < Math.floor(elapsed / 1000 * rate); sent++) {
      if (toCome.length < rate * users.length) users.forEach(user => run.send(user, request, { body }));
    }
  });
}

/** Makes a run the load, and sends what is due until its end. */
function pace(run, millis, sendUntil) {
  endLoad();
  load = run;
  byId('start').disabled = true;
  byId('stop').disabled = false;
  ticking = setInterval(() => {
    const elapsed = Math.min(performance.now() - run.started, millis);
    sendUntil(elapsed);
    if (elapsed >= millis) endLoad();
  }, 50);
}

/** Stops sending; the load ends when all sent requests are answered. */
function endLoad() {
  clearInterval(ticking);
  load?.end();
}

function stopLoad() {
  clearInterval(ticking);
  load = null;
  byId('start').disabled = false;
  byId('stop').disabled = true;
}

/** Drops all requests that were not sent yet. */
function stopAll() {
  const dropped = toCome.splice(0);
  for (const { run } of dropped) run.open--;
  endLoad();
  new Set(dropped.map(request => request.run)).forEach(run => run.endIfDone());
}

/* ---- the scenes ---- */

function times(count, each) {
  for (let i = 1; i <= count; i++) each(i);
}

/** The visits of a minute: most customers look at some items, three have an app that polls, and one fetches all it can. */
function visitsOfAMinute() {
  const between = (least, most) => least + Math.random() * (most - least);
  const due = [];
  const visit = (customer, at) => due.push({ at, customer: `customer${customer}` });
  times(CUSTOMERS, customer => {
    if (customer <= 3) {
      times(60, second => visit(customer, 1000 * second));
    } else if (customer === 4) {
      times(200, item => visit(customer, 20_000 + 100 * item));
    } else {
      let at = between(0, 40_000);
      times(Math.round(between(3, 9)), () => visit(customer, at += between(200, 3000)));
    }
  });
  return due.sort((a, b) => a.at - b.at);
}

function minute(run) {
  if (!cards.has('customers')) addCard('customers', { plan: `${CUSTOMERS} of them` });
  const due = visitsOfAMinute();
  let sent = 0;
  run.inBackground = true;
  pace(run, MINUTE_MILLIS, elapsed => {
    const left = `${run.name} … ${Math.ceil((MINUTE_MILLIS - elapsed) / 1000)} s left`;
    if (byId('status').textContent !== left) say(left);
    for (; sent < due.length && due[sent].at <= elapsed; sent++) {
      run.send('customers', `GET /api/items/${1 + sent % 3}`, { login: `${due[sent].customer}:${due[sent].customer}` });
    }
  });
}

/** One question after the other: the next one finds what the answers before it really cost. */
function assistant(run) {
  let asked = 0, due = 0;
  pace(run, Infinity, elapsed => {
    if (run.open > 0 || elapsed < due) return;
    due = elapsed + 250;
    if (asked++ < 8) run.send('alice', `GET /api/assistant?question=${QUESTION}`);
    else endLoad();
  });
}

const SCENES = {
  burst: run => times(1000, () => run.send('alice', 'GET /api/items')),
  reports: run => times(8, () => ['alice', 'bob'].forEach(user => run.send(user, 'GET /api/report'))),
  plans: run => times(25, () => ['alice', 'bob', 'admin'].forEach(user => run.send(user, 'GET /api/translation'))),
  exports: run => times(12, () => run.send('alice', 'GET /api/export')),
  guesses: run => times(40, i => run.send('stranger', 'GET /api/items', { login: `carol:guess${i}` })),
  changes: run => times(6, () => run.send('alice', 'PUT /api/items/1', { body: KETTLE })),
  checkouts: run => times(12, i => run.send(i % 2 ? 'alice' : 'bob', 'POST /api/checkout')),
  vouchers: run => times(8, i => run.send('bob', `GET /api/vouchers/guess-${i}`)),
  assistant,
  downloads: run => times(4, () => run.send('alice', 'GET /api/catalogue')),
  shares: run => {
    times(40, () => run.send('alice', 'GET /api/stock'));
    times(4, () => run.send('bob', 'GET /api/stock'));
  },
  minute,
  upgrade: (run, button) => {
    const more = button.getAttribute('aria-pressed') !== 'true';
    button.setAttribute('aria-pressed', more);
    run.send('admin', 'POST /actuator/ratelimits/report', { body: `{"rate": "${more ? '600' : '60'}/1m"}` });
  },
};

function play(button) {
  const run = new Run(button.textContent);
  SCENES[button.dataset.scene](run, button);
  if (load !== run) run.end();
}

/* ---- the page ---- */

function clear() {
  rows = [];
  rejectedBy.clear();
  last = null;
  cards.forEach(card => card.clear());
  draw();
}

function addCard(name, user) {
  const card = new Card(name, user);
  cards.set(name, card);
  byId('users').append(card.element);
}

Object.entries(USERS).forEach(([name, user]) => addCard(name, user));
byId('load').addEventListener('submit', event => {
  event.preventDefault();
  if (!load) startLoad();
});
byId('stop').addEventListener('click', stopAll);
byId('clear').addEventListener('click', clear);
byId('rate').addEventListener('input', () => byId('rate-shown').textContent = byId('rate').value);
document.querySelectorAll('[data-scene]').forEach(button => button.addEventListener('click', () => play(button)));
document.addEventListener('visibilitychange', () => document.hidden && !load?.inBackground && stopAll());
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
setInterval(() => document.hidden || cards.forEach(card => card.slots.size > 0 && card.draw()), SLOT_MILLIS);

'use strict';

/* Polls for new data once a second and shows it. Data of the server is shown as text, never as HTML. */

const POLL_MILLIS = 1000;
const RETRY_MILLIS = 3000;
const TIMEOUT_MILLIS = 10_000;
const SORT_MILLIS = 5000;
const SWITCHES_MILLIS = 60_000;
const KEYS_SHOWN = 5;
/** More policies than these are shown as a table at first. */
const MAX_CARDS = 12;
const KINDS = ['allowed', 'denied', 'shadowDenied', 'failed'];
const ROOT = document.documentElement.dataset.root;
/** The data's URL, below this page's path, which has no trailing slash; without a user and password of the page's URL. */
const DATA = `${location.origin}${location.pathname}/data`;

const byId = id => document.getElementById(id);

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

/** Sets a text only if it differs, so that nothing flickers and a selection stays. */
function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

const number = n => n.toLocaleString('en');

const percent = (part, whole) => whole === 0 ? '–' : `${(100 * part / whole).toFixed(part === 0 || part === whole ? 0 : 1)} %`;

/* ---- the data ---- */

let instance = null;
let switches = []; // the moments at which another instance answered
let second = 0;
let seconds = 300;
let step = 1;
const policies = new Map();

function take(data) {
  if (instance !== null && data.instance !== instance) return false;
  if (instance === null) {
    document.title = data.title;
    write(byId('identity'), data.identity);
  }
  instance = data.instance;
  if (data.step !== wantedStep()) return true;
  if (data.step !== step) policies.forEach(policy => policy.forget());
  seconds = data.seconds;
  step = data.step;
  const names = new Set(data.policies.map(policy => policy.name));
  for (const [name, policy] of policies) {
    if (!names.has(name)) {
      policy.remove();
      policies.delete(name);
    }
  }
  data.policies.forEach((policy, place) => {
    if (!policies.has(policy.name)) policies.set(policy.name, new Policy(policy.name));
    policies.get(policy.name).take(policy, place, data.from, data.change);
  });
  second = data.second;
  write(byId('window'), windowText());
  byId('legend-failed').hidden = data.backends.length === 0 && [...policies.values()].every(policy => policy.totals.failed === 0);
  showBackends(data.backends);
  return true;
}

/** Returns the seconds that a count of the chosen span has. */
const wantedStep = () => byId('span').value === 'hour' ? 60 : 1;

const spanText = () => step === 1 ? 'the last five minutes' : 'the last hour';

function windowText() {
  if (second >= seconds) return step === 1 ? spanText() : 'the last 60 whole minutes';
  return step === 1 || second > 0 ? `since it started ${agoText(second)} ago` : 'whose first minute is not over';
}

/** Drops all data, because it is from before a restart of the application, or another instance answers. */
function forget() {
  switches = [...switches.filter(at => performance.now() - at < SWITCHES_MILLIS), performance.now()];
  instance = null;
  second = 0;
  sorted = NEVER;
  policies.forEach(policy => policy.remove());
  policies.clear();
}

/* ---- a policy ---- */

class Policy {
  constructor(name) {
    this.name = name;
    this.series = Object.fromEntries(KINDS.map(kind => [kind, []]));
    this.totals = { allowed: 0, denied: 0, shadowDenied: 0, failed: 0 };
    this.from = 0;
    this.visible = false;
    this.build();
    this.buildRow();
    byId('policies').append(this.card);
    byId('rows').append(this.row);
    watcher.observe(this.card);
    this.card.policy = this;
  }

  build() {
    this.card = element('li', 'policy');
    this.card.dataset.policy = this.name;
    this.card.tabIndex = -1;
    const heading = element('h2');
    const link = heading.appendChild(element('a', '', this.name));
    link.href = this.hash = `#${encodeURIComponent(this.name)}`;
    this.mode = element('span', 'mode');
    heading.append(this.mode);
    this.facts = element('p', 'facts');
    this.differences = element('p', 'differences');
    this.quiet = element('p', 'quiet');
    this.now = element('p', 'now');
    this.chart = element('div', 'chart');
    this.chart.setAttribute('role', 'img');
    this.chart.setAttribute('aria-label', 'No decisions yet');
    this.at = element('p', 'at');
    const framed = element('div', 'framed');
    framed.append(this.chart, this.at);
    this.level = element('div', 'level');
    this.meter = element('meter');
    this.levelText = element('span');
    this.level.append(this.meter, this.levelText);
    this.leased = element('p', 'leased');
    this.waiting = element('p', 'waiting');
    this.keys = element('div', 'keys');
    this.keyList = element('ol');
    this.keyHint = element('p');
    this.keys.append(element('h3', '', 'Keys denied most, last 5 to 10 min'), this.keyList, this.keyHint);
    this.demand = element('details', 'demand');
    this.demand.append(element('summary', '', 'Which limit does the traffic need?'));
    this.demand.hidden = true;
    this.demand.addEventListener('toggle', () => this.demand.open && this.showDemand());
    this.charts = [];
    this.change = element('details', 'change');
    this.command = element('pre');
    this.command.tabIndex = 0;
    this.hint = element('p');
    this.undo = element('pre');
    this.undo.tabIndex = 0;
    this.change.append(element('summary', '', 'Change it, or reset a key'), this.command, this.hint, this.undo);
    this.card.append(heading, this.facts, this.differences, this.quiet, this.now, framed, this.level, this.leased, this.waiting, this.keys, this.demand, this.change);
  }

  buildRow() {
    this.row = element('tr');
    const name = this.row.appendChild(element('th'));
    name.scope = 'row';
    name.append(Object.assign(element('a', '', this.name), { href: this.hash }));
    this.cells = Object.fromEntries(['wide limit', 'allowed', 'denied', 'share', 'wide course', 'wide key']
        .map(className => [className.split(' ').at(-1), this.row.appendChild(element('td', className))]));
    this.course = document.createElementNS(SVG, 'svg');
    this.course.setAttribute('viewBox', `0 0 ${COURSE_PARTS} ${COURSE_HEIGHT}`);
    this.course.setAttribute('preserveAspectRatio', 'none');
    this.course.setAttribute('aria-hidden', 'true');
    this.areas = ['denied', 'shadow', 'allowed'].map(className => {
      const area = this.course.appendChild(document.createElementNS(SVG, 'path'));
      area.setAttribute('class', className);
      return area;
    });
    this.cells.course.append(this.course);
  }

  /** Drops the counts, because those of another span follow. */
  forget() {
    for (const kind of KINDS) this.series[kind] = [];
    this.plot?.destroy();
    this.plot = null;
  }

  remove() {
    watcher.unobserve(this.card);
    this.plot?.destroy();
    this.card.remove();
    this.row.remove();
  }

  /** Adds the new seconds and drops those that are older than the page keeps. */
  take(data, place, from, change) {
    this.data = data;
    this.place = place;
    if (from !== this.from + this.series.allowed.length * step) {
      this.from = from;
      for (const kind of KINDS) this.series[kind] = [];
    }
    for (const kind of KINDS) this.series[kind].push(...data[kind]);
    const surplus = Math.max(this.series.allowed.length - seconds / step, 0);
    this.from += surplus * step;
    for (const kind of KINDS) {
      this.series[kind].splice(0, surplus);
      this.totals[kind] = this.series[kind].reduce((sum, n) => sum + Math.max(n, 0), 0);
    }
    this.showChange(change);
  }

  get isQuiet() {
    return KINDS.every(kind => this.totals[kind] === 0);
  }

  /** Returns the calls that were not made because of this policy. */
  get rejections() {
    return this.totals.denied + this.totals.failed;
  }

  /** Returns the denied calls, including those that a shadow policy would have denied. */
  get denials() {
    return this.rejections + this.totals.shadowDenied;
  }

  get decisions() {
    return this.totals.allowed + this.denials;
  }

  show() {
    const { data } = this;
    this.card.className = ['policy', data.mode, this.last('denied') + this.last('failed') > 0 ? 'denying' : ''].join(' ').trim();
    const outage = data.outage && data.mode === 'enforce';
    write(this.mode, outage ? outageText(data.outage) : { enforce: 'enforced', shadow: 'shadow: denies nothing', off: 'off' }[data.mode]);
    write(this.facts, this.factsText());
    const differences = [['', data.limit], ...Object.entries(data.tiers)].filter(([, limit]) => limit.changed);
    this.differences.hidden = differences.length === 0;
    write(this.differences, differences.map(differenceText).join('\n'));
    this.chart.hidden = this.at.hidden = this.isQuiet;
    this.showNow();
    this.showLevel();
    this.showLeased();
    this.showWaiting();
    this.showKeys();
    if (this.visible) this.draw();
  }

  showRow() {
    const { limit: { rate, inFlight }, shares, tiers, mode, deniedKeys } = this.data;
    this.row.className = mode;
    const more = Object.keys(tiers).length;
    write(this.cells.limit, mode === 'off' ? 'off' : `${rate ?? inFlightText(inFlight)}${more ? `, ${more} tier${more === 1 ? '' : 's'}` : ''}${shares ? ', in shares' : ''}${mode === 'shadow' ? ' (shadow)' : ''}`);
    write(this.cells.allowed, number(this.totals.allowed));
    write(this.cells.denied, number(this.denials));
    write(this.cells.share, percent(this.denials, this.decisions));
    write(this.cells.key, deniedKeys.length ? keyText(deniedKeys[0].key) : '');
    this.drawCourse();
  }

  /** Draws the counts in few parts; each area covers the lower part of the one before. */
  drawCourse() {
    const { allowed, denied, shadowDenied, failed } = this.series;
    const parts = Array.from({ length: COURSE_PARTS }, () => [0, 0, 0]);
    const missing = seconds / step - allowed.length;
    allowed.forEach((count, i) => {
      const part = parts[Math.floor((missing + i) * COURSE_PARTS * step / seconds)];
      part[2] += Math.max(count, 0);
      part[1] += Math.max(shadowDenied[i], 0);
      part[0] += Math.max(denied[i], 0) + Math.max(failed[i], 0);
    });
    const highest = Math.max(1, ...parts.map(part => part[0] + part[1] + part[2]));
    this.areas.forEach((area, kind) => {
      const steps = parts.map((part, i) => `V${COURSE_HEIGHT * (1 - part.slice(kind).reduce((a, b) => a + b) / highest)}H${i + 1}`);
      area.setAttribute('d', `M0 ${COURSE_HEIGHT}${steps.join('')}V${COURSE_HEIGHT}Z`);
    });
  }

  factsText() {
    const { key, limit: { rate, capacity, inFlight }, running, shares, tiers, outage, lastSeen: elsewhere } = this.data;
    const plans = Object.entries(tiers).map(([tier, limit]) => `${tier}: ${limitText(limit)}`);
    return [
      ...(rate ? [
        key.length ? `a bucket for each ${key.join(' and ')}` : 'one bucket',
        rate,
        `capacity ${number(capacity)}`,
      ] : []),
      ...(inFlight ? [`${inFlightText(inFlight)}${key.length ? ` for each ${key.join(' and ')}` : ''}`] : []),
      ...(shares ? [`shares: ${shares}`] : []),
      ...plans,
      ...(typeof running === 'number' ? [`${number(running)} in flight now`] : []),
      ...(elsewhere ? [outage ? 'not shared at present' : 'shared by all instances'] : []),
    ].join(' · ');
  }

  last(kind) {
    return Math.max(this.series[kind].at(-1) ?? 0, 0);
  }

  showNow() {
    const shown = [['allowed', 'allowed', 'allowed'], ['denied', 'denied', 'denied'], ['shadow', 'shadowDenied', 'would have been denied'],
      ['failed', 'failed', 'rejected as the backend failed']]
        .filter(([, kind]) => kind === 'allowed' || this.totals[kind] > 0
            || kind === (this.data.mode === 'shadow' ? 'shadowDenied' : 'denied'));
    this.quiet.hidden = !this.isQuiet;
    write(this.quiet, second < step ? 'The first minute is not over.' : `Nothing decided in ${spanText()}.`);
    this.now.hidden = this.isQuiet;
    while (this.now.children.length > shown.length) this.now.lastChild.remove();
    shown.forEach(([className, kind, what], i) => {
      const part = this.now.children[i] ?? this.now.appendChild(element('span'));
      part.className = className;
      if (part.children.length === 0) part.append(element('b'), '');
      write(part.firstChild, number(this.totals[kind]));
      part.lastChild.data = ` ${what}, ${number(this.last(kind))}/${step === 1 ? 's' : 'min'} now`;
    });
  }

  showLevel() {
    const { available, limit: { rate, capacity }, key, lastSeen, outage, mode } = this.data;
    this.level.hidden = key.length > 0 || mode === 'off' || !rate;
    if (this.level.hidden) return;
    this.meter.hidden = available === null || available === undefined;
    if (this.meter.hidden) return write(this.levelText, 'level not known');
    Object.assign(this.meter, { min: 0, max: capacity, low: capacity / 10, high: capacity / 4, optimum: capacity, value: available });
    const when = outage ? ', before the outage' : lastSeen ? ', when last asked' : '';
    const text = `${number(available)} of ${number(capacity)} left${when}`;
    this.meter.setAttribute('aria-label', text);
    write(this.levelText, text);
  }

  showLeased() {
    const { leased } = this.data;
    this.leased.hidden = typeof leased !== 'number';
    if (!this.leased.hidden) write(this.leased, `${number(leased)} leased by this instance`);
  }

  showWaiting() {
    const { waiting, queueLimit, mode } = this.data;
    const wait = mode === 'shadow' ? 'would wait' : waiting === 1 ? 'waits' : 'wait';
    this.waiting.hidden = queueLimit === 0 && waiting === 0;
    write(this.waiting, `${number(waiting)} ${wait} in the queue, of ${number(queueLimit)} that may`);
  }

  showKeys() {
    const keys = this.data.deniedKeys.slice(0, KEYS_SHOWN);
    this.keys.hidden = keys.length === 0;
    while (this.keyList.children.length > keys.length) this.keyList.lastChild.remove();
    keys.forEach(({ key, denied, shadow }, i) => {
      const item = this.keyList.children[i] ?? this.keyList.appendChild(element('li'));
      if (item.children.length === 0) item.append(element('code'), element('b'));
      item.className = shadow ? 'shadow' : '';
      write(item.firstChild, keyText(key));
      write(item.lastChild, number(denied));
    });
    this.keyHint.hidden = keys.every(({ key }) => key.parts);
    write(this.keyHint, 'A hash stands for one key until the restart. management.endpoint.ratelimits.show-values shows names.');
  }

  /** Takes the demand of the limits of this policy, its own first; draws it if it is open. */
  takeDemand(limits) {
    this.limits = limits;
    this.demand.hidden = !limits;
    this.showDemand();
  }

  showDemand() {
    if (!this.limits || !this.demand.open) return;
    while (this.charts.length > this.limits.length) this.charts.pop().node.remove();
    this.limits.forEach((limit, i) => {
      if (!this.charts[i]) {
        this.charts[i] = new DemandChart(this.name);
        this.demand.append(this.charts[i].node);
      }
      if (!this.charts[i].dragging) this.charts[i].take(limit);
    });
  }

  showChange({ path, writable, forAll, authenticated }) {
    const { rate, capacity, inFlight } = this.data.limit;
    this.command.hidden = this.undo.hidden = path === null || path === undefined;
    if (this.command.hidden) {
      return write(this.hint, 'The endpoint that changes limits is not exposed: add ratelimits to'
          + ' management.endpoints.web.exposure.include.');
    }
    const curl = `curl ${authenticated ? '-u user ' : ''}-X`;
    const url = `${base()}${encodeURI(path)}/${this.name}`;
    const parts = this.data.key.map(part => `key=${part.replace(/[^a-z]+/gi, '-').toUpperCase()}`).join('&');
    write(this.command, `${curl} POST -H 'Content-Type: application/json' \\\n`
        + `  -d '{${[rate && `"rate": "${rate}", "capacity": ${capacity}`, inFlight && `"inFlight": ${inFlight}`].filter(Boolean).join(', ')}}' '${url}'`);
    write(this.undo, `# the configured limit again\n${curl} DELETE '${url}/change'\n`
        + (rate ? `# ${parts ? 'the bucket of a key' : 'the bucket'} is full again\n${curl} DELETE '${url}${parts && `?${parts}`}'` : ''));
    write(this.hint, writable
        ? (rate ? 'Any field may be left out. ' : '') + 'Applies to this instance until it stops'
            + (forAll ? '; "for": "all" changes all instances, and with it "until": "2h" ends the change' : '') + '.'
        : 'Changes are off; management.endpoint.ratelimits.access: unrestricted allows them.');
  }

  /* ---- its chart ---- */

  /** Returns cumulative sums, the largest first: each series that is drawn later covers the lower part of the previous ones. */
  columns() {
    const { allowed, denied, shadowDenied, failed } = this.series;
    const missing = seconds / step - allowed.length;
    const columns = [[], [], [], [], []];
    for (let i = -missing; i < allowed.length; i++) {
      columns[0].push(this.from + (1 + i) * step - second);
      const known = i >= 0 && allowed[i] >= 0;
      const sums = known ? [allowed[i], denied[i], shadowDenied[i], failed[i]] : [];
      for (let kind = 0, sum = 0; kind < 4; kind++) {
        sum += sums[kind] ?? 0;
        columns[4 - kind].push(known ? sum : null);
      }
    }
    return columns;
  }

  draw() {
    const width = this.chart.clientWidth;
    if (width === 0 || this.isQuiet || !window.uPlot) return;
    if (!this.plot) this.plot = new uPlot(options(this, width), this.columns(), this.chart);
    else if (this.plot.width !== width) this.plot.setSize({ width, height: CHART_HEIGHT });
    this.plot.setData(this.columns());
    this.chart.setAttribute('aria-label', `In ${spanText()} ${number(this.totals.allowed)} allowed,`
        + ` ${number(this.denials)} ${this.data.mode === 'shadow' ? 'that would have been denied' : 'denied'}, by the ${step === 1 ? 'second' : 'minute'}`);
  }

  /** Draws the rate of a bucket that all calls share, if the counts come near it. */
  drawLimit(plot) {
    const { key, limit: { rate } } = this.data;
    const [, tokens, length, unit] = key.length === 0 && /^(\d+)\/(\d+)(ms|s|m|h|d)$/.exec(rate) || [];
    const limit = tokens * step * 1000 / (length * UNIT_MILLIS[unit]);
    if (!(limit > 0 && limit < plot.scales.y.max)) return;
    const { ctx, bbox } = plot;
    const y = Math.round(plot.valToPos(limit, 'y', true));
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = color('ink');
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.fillText(rate, bbox.left + 4 * devicePixelRatio, y - 3 * devicePixelRatio);
    ctx.restore();
  }

  redraw() {
    this.plot?.destroy();
    this.plot = null;
    if (this.visible) this.draw();
  }

  /** Shows the counts of the second below the pointer. */
  point(i) {
    const at = i - (seconds / step - this.series.allowed.length);
    if (i === null || i === undefined) return write(this.at, '');
    if (at < 0 || this.series.allowed[at] < 0) return write(this.at, 'not known');
    const ago = second - (this.from + (1 + at) * step);
    const parts = [['allowed', 'allowed'], ['denied', 'denied'], ['shadowDenied', 'would have been denied'], ['failed', 'failed']]
        .filter(([kind], first) => first === 0 || this.series[kind][at] > 0)
        .map(([kind, what]) => `${number(this.series[kind][at])} ${what}`);
    write(this.at, `${ago === 0 ? 'now' : `${agoText(ago)} ago`}: ${parts.join(', ')}`);
  }
}

const CHART_HEIGHT = 130;
const SVG = 'http://www.w3.org/2000/svg';
const COURSE_PARTS = 60;
const COURSE_HEIGHT = 20;
const UNIT_MILLIS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

const color = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** Returns the parts of a key if they are shown, otherwise its hash; with the tier. */
function keyText({ hash, parts, tier }) {
  return (parts ? parts.join(' · ') : hash) + (tier ? ` (${tier})` : '');
}

function inFlightText(calls) {
  return `${number(calls)} in flight`;
}

/** Returns a limit in words: 600/1m, capacity 800, 4 in flight. */
function limitText({ rate, capacity, refill, zone, inFlight }) {
  const refilled = { interval: 'refilled at intervals', calendar: `refilled by the calendar of ${zone === 'Z' ? 'UTC' : zone}` }[refill];
  return [rate && `${rate}, capacity ${number(capacity)}`, refilled, inFlight && inFlightText(inFlight)].filter(Boolean).join(', ');
}

function differenceText([tier, { changed }]) {
  const when = time => new Date(time).toLocaleString('en');
  return [
    `${tier ? `${tier}: changed` : 'changed'} ${changed.for === 'all' ? 'for all instances' : 'for this instance'}`,
    ...(changed.since ? [`since ${when(changed.since)}`] : []),
    ...(changed.until ? [`until ${when(changed.until)}`] : []),
    `configured: ${limitText(changed)}`,
  ].join(' · ');
}

/** Returns the decisions of a policy while its backend is unavailable. */
function outageText({ rule, share }) {
  const part = share === 1 ? 'the whole' : `${Math.round(share * 1000) / 10} % of the`;
  return { local: `local, with ${part} limit`, deny: 'rejects all', allow: 'allows all' }[rule];
}

function agoText(ago) {
  return ago < 60 ? `${ago} s` : `${Math.floor(ago / 60)} min${ago % 60 ? ` ${ago % 60} s` : ''}`;
}

function options(policy, width) {
  const area = name => ({ stroke: color(name), fill: color(name), width: 0, points: { show: false }, paths: uPlot.paths.stepped({ align: -1 }) });
  const axis = { stroke: color('soft'), font: '11px system-ui, sans-serif', grid: { stroke: color('grid'), width: 1 }, ticks: { show: false } };
  return {
    width,
    height: CHART_HEIGHT,
    padding: [6, 14, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false }, sync: { key: 'policies' } },
    hooks: { setCursor: [plot => policy.point(plot.cursor.idx)], draw: [plot => policy.drawLimit(plot)] },
    scales: {
      x: { time: false, range: () => [step - seconds, 0] },
      y: { range: (plot, min, max) => [0, Math.max(max * 1.1, 4)] },
    },
    axes: [
      { ...axis, size: 22, splits: () => [4, 3, 2, 1, 0].map(part => -part * seconds / 5), values: (plot, splits) => splits.map(at => at === 0 ? 'now' : `${-at / 60} min`) },
      { ...axis, size: 46, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 50_000, 100_000, 1_000_000, 1e7, 1e8, 1e9], space: 28,
        values: (plot, splits) => splits.map((n, i) => (n >= 10_000 ? `${n / 1000}k` : number(n))
            + (i === splits.length - 1 ? step === 1 ? '/s' : '/min' : '')) },
    ],
    series: [{}, area('failed'), area('shadow'), area('denied'), area('allowed')],
  };
}

const watcher = new IntersectionObserver(entries => {
  for (const entry of entries) {
    entry.target.policy.visible = entry.isIntersecting;
    if (entry.isIntersecting) entry.target.policy.draw();
  }
}, { rootMargin: '200px' });

/** Returns the actuator's base URL, with the proxies, prefixes and port by which this page was reached. */
function base() {
  const path = location.pathname;
  const above = path.endsWith(`/${ROOT}`) ? path.slice(0, -ROOT.length) : path.slice(0, path.lastIndexOf('/') + 1);
  return location.origin + above.replaceAll("'", '%27');
}

/* ---- the page ---- */

function showBackends(backends) {
  const list = byId('backends');
  list.replaceChildren(...backends.map(({ name, condition, since, cause }) => {
    const up = condition === 'UP';
    const item = element('li', up ? '' : 'failing');
    item.append(element('b', '', `${name} is ${{ UP: 'up', DOWN: 'unavailable', MISCONFIGURED: 'misconfigured' }[condition]}`),
        ` since ${new Date(since).toLocaleString()}${cause ? `: ${cause}` : ''}`);
    if (!up) item.append(element('p', '', condition === 'DOWN' ? `Until it is back: ${effectsText()}.`
        : 'Until that is mended: “on-backend-failure” decides for each call that fails.'));
    return item;
  }));
}

/** Returns what the enforced policies of an unavailable backend do, by their number. */
function effectsText() {
  const counts = new Map();
  for (const { data } of policies.values()) {
    if (data.outage && data.mode === 'enforce') {
      const effect = outageText(data.outage);
      counts.set(effect, (counts.get(effect) ?? 0) + 1);
    }
  }
  const effects = [...counts].map(([effect, n]) => `${n} ${n === 1 ? 'policy' : 'policies'}: ${effect}`);
  return effects.join('; ') || 'no enforced policy needs it';
}

const NEVER = -Infinity;
let sorted = NEVER; // so that the first call of show() sorts the cards

function show() {
  const find = byId('find').value.trim().toLowerCase();
  const only = byId('only').checked;
  const table = byId('view').value === 'table';
  let shown = 0;
  for (const policy of policies.values()) {
    const hidden = !policy.name.includes(find) || only && policy.denials === 0;
    policy.row.hidden = hidden;
    policy.card.hidden = table ? policy.hash !== location.hash : hidden;
    if (!hidden) {
      shown++;
      if (table) policy.showRow();
    }
    if (!policy.card.hidden) policy.show();
  }
  byId('table').hidden = !table || shown === 0;
  byId('close').hidden = !table || !linked();
  const none = byId('none');
  none.hidden = shown > 0 || instance === null;
  write(none, policies.size === 0 ? 'There are no policies.' : `None of the ${policies.size} policies is shown.`);
  showTotals();
  if (performance.now() - sorted > SORT_MILLIS) sort();
}

/** Shows the decisions of all policies. A request that several policies decide counts for each of them. */
function showTotals() {
  const all = [...policies.values()];
  const sum = count => all.reduce((total, policy) => total + count(policy), 0);
  const decisions = sum(policy => policy.decisions);
  const rejections = sum(policy => policy.rejections);
  write(byId('total-decisions'), number(decisions));
  write(byId('total-denied'), rejections === 0 ? '0' : `${number(rejections)} (${percent(rejections, decisions)})`);
  write(byId('total-shadow'), number(sum(policy => policy.totals.shadowDenied)));
  const worst = all.reduce((one, other) => other.rejections > (one?.rejections ?? 0) ? other : one, null);
  const name = byId('total-worst');
  if (name.textContent !== (worst?.name ?? '–')) {
    name.replaceChildren(worst ? Object.assign(element('a', '', worst.name), { href: worst.hash }) : '–');
  }
  byId('skip').hidden = !worst;
  if (worst) byId('skip').href = worst.hash;
}

/** Sorts the cards and the rows, unless one of them has the focus. */
function sort() {
  sorted = performance.now();
  const list = byId('policies');
  const rows = byId('rows');
  if (list.contains(document.activeElement) || rows.contains(document.activeElement)) return;
  const denied = byId('order').value === 'denied';
  const byDenials = (a, b) => b.rejections - a.rejections || b.denials - a.denials || a.isQuiet - b.isQuiet;
  const order = [...policies.values()]
      .sort((a, b) => denied && byDenials(a, b) || a.place - b.place);
  if (order.every((policy, i) => list.children[i] === policy.card)) return;
  list.append(...order.map(policy => policy.card));
  rows.append(...order.map(policy => policy.row));
}

/** Returns the policy that the page's address names, or undefined. */
const linked = () => [...policies.values()].find(policy => policy.hash === location.hash);

/** Shows the policy that the page's address names, whatever the filter, and focuses its card. */
function showLinked() {
  show();
  const policy = linked();
  if (!policy) return;
  if (policy.card.hidden) {
    byId('find').value = '';
    byId('only').checked = false;
    show();
  }
  policy.card.focus({ preventScroll: true });
  policy.card.scrollIntoView();
}

/* ---- the demand ---- */

const DEMAND_MILLIS = 5000;
let demandAt = NEVER;
let demandFailure = '';

/** Requests the demand of all policies every five seconds; without an answer the charts keep what they show. */
async function pollDemand() {
  if (performance.now() - demandAt < DEMAND_MILLIS) return;
  demandAt = performance.now();
  const response = await request(`${location.origin}${location.pathname}/demand`);
  if (!response) return; // the state of the page shows that the server can't be reached
  try {
    const demand = response.ok ? (await response.json()).policies : {};
    policies.forEach(policy => policy.takeDemand(demand[policy.name]));
    demandFailure = '';
  } catch (error) {
    demandFailure = errorText(error);
  }
}

/* ---- polling ---- */

let timer = 0;
let seen = 0;
let asking = false;

const FAILURES = {
  401: 'Not logged in any more (401): reload this page to log in.',
  403: 'Not allowed to see this (403).',
  404: 'The endpoint is gone (404): it is not exposed any more, or another application answers.',
  429: 'The requests of this page are limited themselves (429); ratelimit.exclude-paths: /actuator/** frees them.',
};

async function poll() {
  clearTimeout(timer);
  if (asking || document.hidden) return;
  asking = true;
  let failure = '';
  try {
    failure = await ask();
  } catch (error) {
    failure = errorText(error);
  }
  asking = false;
  showState(failure);
  clearTimeout(timer);
  timer = setTimeout(poll, failure ? RETRY_MILLIS : POLL_MILLIS);
}

function errorText(error) {
  console.error(error);
  return `This page has an error, so it may show wrong numbers: ${error.message}. Reload it.`;
}

/** Requests a URL; returns the response, or null if there is none. */
async function request(url) {
  try {
    return await fetch(url, {
      cache: 'no-store',
      redirect: 'manual',
      // X-Requested-With makes Spring Security answer 401 without a challenge, so the browser opens no login dialog.
      headers: { Accept: 'application/json', 'X-Requested-With': 'XMLHttpRequest' },
      signal: AbortSignal.timeout(TIMEOUT_MILLIS),
    });
  } catch {
    return null;
  }
}

/** Requests the data; returns the text of a failure, or an empty text. */
async function ask() {
  const since = wantedStep() === step ? second : 0;
  const response = await request(`${DATA}?span=${byId('span').value}${since > 0 ? `&since=${since}` : ''}`);
  if (!response) return 'The server can\u2019t be reached.';
  if (response.type === 'opaqueredirect') return FAILURES[401].replace('401', 'sent to a login');
  if (!response.ok) return FAILURES[response.status] ?? `The server answers with ${response.status}.`;
  if (!(response.headers.get('Content-Type') ?? '').includes('json')) return 'The answer is not what it should be; reload this page.';
  if (!take(await response.json())) {
    forget();
    return ask();
  }
  const first = seen === 0;
  seen = Date.now();
  if (first) {
    byId('view').value = policies.size > MAX_CARDS ? 'table' : 'cards';
    showLinked();
  }
  show();
  pollDemand();
  return demandFailure;
}

function showState(failure) {
  const state = byId('state');
  state.className = failure ? 'state failing' : 'state live';
  const ago = Math.round((Date.now() - seen) / 1000);
  write(byId('state-ago'), failure && seen ? `Last seen ${agoText(ago)} ago; it goes on when it is back.`
      : switches.length > 2 ? 'Several instances answer in turn: open the page of one of them.' : '');
  const denying = [...policies.values()].filter(policy => policy.rejections > 0).length;
  write(byId('state-text'), failure
      || `Live: ${policies.size} ${policies.size === 1 ? 'policy' : 'policies'}, ${denying || 'none'} with denials`);
}

/** Names the files of the page that failed to load. The page contains a general text in case this script failed too. */
function showIncomplete() {
  const status = url => performance.getEntriesByName(url)[0]?.responseStatus ?? 0;
  const missing = [...document.querySelectorAll('link[rel=stylesheet], script[src]')]
      .map(file => file.src || file.href)
      .filter(url => status(url) >= 400 || url.endsWith('/uplot.js') && !window.uPlot);
  const incomplete = byId('incomplete');
  incomplete.hidden = missing.length === 0;
  if (incomplete.hidden) return;
  const named = missing.map(url => url.slice(url.lastIndexOf('/') + 1) + (status(url) ? ` (${status(url)})` : ''));
  incomplete.firstChild.data = `${named.join(', ')} did not arrive, so the page looks worse than it is: a request of this page was`
      + ' rejected. Limits answer with 429, a login that is over with 401. Wait a minute and reload the page. ';
}

addEventListener('load', showIncomplete);
document.addEventListener('visibilitychange', poll);
addEventListener('online', poll);
addEventListener('resize', () => policies.forEach(policy => policy.visible && policy.draw()));
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => policies.forEach(policy => policy.redraw()));
byId('find').addEventListener('input', show);
byId('only').addEventListener('change', show);
byId('view').addEventListener('change', show);
byId('order').addEventListener('change', sort);
byId('span').addEventListener('change', poll);
addEventListener('hashchange', showLinked);
write(byId('state-text'), 'Loading …');
poll();

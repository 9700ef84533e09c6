'use strict';

/* The chart of the limits that the traffic needs: rate and capacity, both logarithmic, and the limit as a point to drag. */

const DEMAND_LINES = [['p50', '50 %'], ['p90', '90 %'], ['p99', '99 %'], ['p999', '99.9 %'], ['max', 'all']];
/** The shares of the server's suggestions. */
const DEMAND_SHARES = [1, 0.999, 0.99, 0.95, 0.9];
const DEMAND_HEIGHT = 230;
const DEMAND_CHAR_WIDTH = 6.5;
/** Four arrows from the middle, so that the point looks movable. */
const DEMAND_ARROWS = 'M0-11l4 4h-3v6h6v-3l4 4l-4 4v-3h-6v6h3l-4 4l-4-4h3v-6h-6v3l-4-4l4-4v3h6v-6h-3z';
const DEMAND_MARGIN = { left: 52, right: 46, top: 10, bottom: 34 };

/**
 * Returns the upper bound of a share of which a sample shows k of n, at 95 %: 3 / n for none, else Wilson's. The endpoint's
 * bound is that of Clopper and Pearson, which is a little higher.
 */
function demandShareAtMost(k, n) {
  if (k === 0) return Math.min(3 / n, 1);
  const z = 1.96;
  const p = k / n;
  return (p + z * z / 2 / n + z * Math.sqrt(p * (1 - p) / n + z * z / 4 / n / n)) / (1 + z * z / n);
}

function demandPercent(share) {
  const percent = share * 100;
  return `${percent === 0 || percent >= 10 ? Math.round(percent) : percent >= 1 ? percent.toFixed(1) : percent.toPrecision(1)} %`;
}

/** Returns a time in the largest unit of which there are two at least, such as 59 s or 3 h. */
function demandTime(seconds) {
  const [length, unit] = [[86400, 'days'], [3600, 'h'], [60, 'min'], [1, 's']].find(each => seconds >= 2 * each[0]) ?? [1, 's'];
  return `${Math.floor(seconds / length)} ${unit}`;
}

const demandNumber = n => Math.round(n).toLocaleString('en');

/** A chart of one limit. take() gives it data, which keeps the point where the reader left it. */
class DemandChart {

  /** @param name the policy, for the YAML */
  constructor(name) {
    this.name = name;
    this.node = document.createElement('div');
    this.node.className = 'demand-limit';
    this.title = this.add('h4');
    this.spec = this.add('p');
    this.spec.className = 'demand-spec';
    this.specText = this.spec.appendChild(document.createElement('b'));
    this.copy = this.button('Copy YAML', () => this.copyYaml(), this.spec);
    this.sentence = this.add('p');
    this.sentence.className = 'demand-sentence';
    this.sentence.setAttribute('aria-live', 'polite');
    this.sentence.title = 'A client is counted if the limit denies at least one of its requests.';
    this.hint = this.add('p');
    this.hint.className = 'demand-hint';
    this.share = document.createElement('select');
    this.share.setAttribute('aria-label', 'Share of clients that the tightest limit suffices');
    this.chosenShare = 0.999;
    this.share.addEventListener('change', () => {
      this.chosenShare = +this.share.value;
      this.chosen = null;
      this.draw();
    });
    this.hintText = document.createElement('span');
    this.hint.append('The tightest limit for ', this.share, this.hintText);
    this.hint.title = 'Tightest: of the measured rates, each with the least capacity for it, the limit that lets the fewest requests through within a minute.';
    this.tools = this.add('p');
    this.tools.className = 'demand-tools';
    this.tryIt = this.button('Show the tightest', () => { this.chosen = null; this.draw(); });
    this.reset = this.button('Show the present limit', () => this.move(this.data.own, this.data.capacity));
    this.legend = this.add('p');
    this.legend.className = 'demand-legend';
    this.legend.append('Capacity that a share of clients needs:', ...DEMAND_LINES.map(([className, label]) =>
        Object.assign(document.createElement('span'), { className, textContent: label === 'all' ? 'all clients' : label })));
    this.svg = this.node.appendChild(this.svgNode('svg', { height: DEMAND_HEIGHT }));
    this.plot = this.svg.appendChild(this.svgNode('g', {}));
    this.present = this.svg.appendChild(this.svgNode('circle', { r: 6, class: 'demand-present' }));
    this.present.appendChild(this.svgNode('title', {})).textContent = 'the present limit';
    this.point = this.svg.appendChild(this.svgNode('g', { class: 'demand-point', tabindex: 0, role: 'slider' }));
    this.point.append(this.svgNode('circle', { r: 14 }), this.svgNode('path', { d: DEMAND_ARROWS }));
    this.yaml = this.add('pre');
    this.yaml.tabIndex = 0;
    this.help = this.add('p');
    this.help.append('Drag the point, or move it by the arrow keys; the ring is the present limit. ', Object.assign(document.createElement('a'), {
      rel: 'noreferrer', textContent: 'How to read the chart', href: new URL('choosing.md', byId('docs').href).href }));
    this.chosen = null;
    this.listen();
  }

  add(name) {
    return this.node.appendChild(document.createElement(name));
  }

  button(text, action, place = this.tools) {
    const button = place.appendChild(document.createElement('button'));
    button.type = 'button';
    button.textContent = text;
    button.addEventListener('click', action);
    return button;
  }

  svgNode(name, attributes) {
    const node = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    return node;
  }

  take(data) {
    if (this.chosen) { // the rates are others after a change of the limit
      const { perSecond } = this.data.rates[this.chosen.rate];
      const rate = data.rates.findIndex(each => Math.abs(each.perSecond / perSecond - 1) < 1e-9);
      this.chosen = rate < 0 ? null : { ...this.chosen, rate };
    }
    this.data = data;
    this.draw();
  }

  /** The limit that the point shows: the suggested one, if there is one, until it is moved. */
  get limit() {
    return this.chosen ?? this.suggestion ?? this.presentLimit;
  }

  get presentLimit() {
    return { rate: this.data.own, capacity: this.data.capacity };
  }

  move(rate, capacity) {
    this.chosen = { rate: Math.min(Math.max(rate, 0), this.data.rates.length - 1), capacity: Math.min(Math.max(Math.round(capacity), 1), 1e12) };
    this.draw();
  }

  listen() {
    new ResizeObserver(() => this.data && this.draw()).observe(this.svg);
    this.point.addEventListener('pointerdown', event => {
      this.dragging = true;
      this.point.setPointerCapture(event.pointerId);
      event.preventDefault();
      this.point.focus();
    });
    this.point.addEventListener('pointermove', event => this.dragging && this.moveTo(event));
    for (const end of ['pointerup', 'pointercancel']) this.point.addEventListener(end, () => { this.dragging = false; });
    this.point.addEventListener('keydown', event => {
      const { rate, capacity } = this.limit;
      const step = Math.max(1, Math.round(capacity / 20)) * (event.shiftKey ? 5 : 1);
      const moves = { ArrowLeft: [rate - 1, capacity], ArrowRight: [rate + 1, capacity], ArrowUp: [rate, capacity + step], ArrowDown: [rate, capacity - step] };
      if (moves[event.key]) {
        event.preventDefault();
        this.move(...moves[event.key]);
      }
    });
  }

  /** Moves the point to the measured rate next to the pointer, where the shares are counted and not interpolated. */
  moveTo(event) {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    const distances = this.data.rates.map((rate, i) => Math.abs(this.x(i) - at.x));
    const share = (DEMAND_HEIGHT - DEMAND_MARGIN.bottom - at.y) / (DEMAND_HEIGHT - DEMAND_MARGIN.bottom - DEMAND_MARGIN.top);
    this.move(distances.indexOf(Math.min(...distances)), this.highest ** Math.min(Math.max(share, 0), 1));
  }

  /** A unit of the picture is a pixel, so that its text is readable on a narrow page. */
  x(rate) {
    const logs = this.data.rates.map(each => Math.log(each.perSecond));
    const span = logs.at(-1) - logs[0] || 1;
    return DEMAND_MARGIN.left + (logs[rate] - logs[0]) / span * (this.right - DEMAND_MARGIN.left);
  }

  y(capacity) {
    const share = Math.log(Math.max(capacity, 1)) / Math.log(this.highest);
    return DEMAND_HEIGHT - DEMAND_MARGIN.bottom - Math.min(share, 1) * (DEMAND_HEIGHT - DEMAND_MARGIN.bottom - DEMAND_MARGIN.top);
  }

  draw() {
    const { tier, rates, capacity } = this.data;
    this.drawShares();
    this.right = this.svg.getBoundingClientRect().width - DEMAND_MARGIN.right;
    this.title.textContent = tier ? `Tier ${tier}` : '';
    this.title.hidden = !tier;
    this.highest = 2 * Math.max(8, capacity, ...rates.flatMap(rate => rate.quantiles));
    this.plot.replaceChildren(...this.axes(), ...DEMAND_LINES.flatMap((line, i) => this.line(line, i)));
    const limit = this.limit;
    this.point.setAttribute('transform', `translate(${this.x(limit.rate)} ${this.y(limit.capacity)})`);
    this.present.setAttribute('cx', this.x(this.data.own));
    this.present.setAttribute('cy', this.y(capacity));
    this.write(limit);
  }

  /** Offers the shares that mean other clients than all. */
  drawShares() {
    const { sample, keys, suggestions } = this.data;
    const followed = share => Math.ceil(share * sample - 1e-9);
    const offered = DEMAND_SHARES.filter(share => share === 1 || followed(share) < sample || share === 0.999 && keys > sample);
    const options = offered.map(share => new Option(share === 1 ? `all ${demandNumber(sample)}${keys > sample ? ' followed and the heaviest' : ''}`
        : `${share * 1000 / 10} % (${demandNumber(followed(share))} of ${demandNumber(sample)})`, share));
    const shown = [...this.share.options];
    const differ = name => options.map(option => option[name]).join() !== shown.map(option => option[name]).join();
    if (differ('value') || differ('text') && document.activeElement !== this.share) { // the list may be open
      this.share.replaceChildren(...options);
      this.share.value = offered.includes(this.chosenShare) ? this.chosenShare : 1;
    }
    this.suggestion = suggestions[DEMAND_SHARES.indexOf(+this.share.value)];
  }

  axes() {
    const nodes = [];
    const bottom = DEMAND_HEIGHT - DEMAND_MARGIN.bottom;
    const text = (x, y, anchor, content) => {
      const node = this.svgNode('text', { x, y, 'text-anchor': anchor });
      node.textContent = content;
      nodes.push(node);
    };
    const { rates, own } = this.data;
    const longest = Math.max(...rates.map(rate => rate.rate.length)) + 1;
    const every = [2, 4].find(step => step * (this.x(1) - this.x(0)) > DEMAND_CHAR_WIDTH * longest) ?? 8;
    rates.forEach((rate, i) => {
      nodes.push(this.svgNode('line', { x1: this.x(i), x2: this.x(i), y1: DEMAND_MARGIN.top, y2: bottom }));
      if ((i - own) % every === 0) text(this.x(i), bottom + 16, 'middle', rate.rate);
    });
    for (let tick = 1; tick <= this.highest; tick *= this.highest > 1e4 ? 100 : 10) {
      nodes.push(this.svgNode('line', { x1: DEMAND_MARGIN.left, x2: this.right, y1: this.y(tick), y2: this.y(tick) }));
      text(DEMAND_MARGIN.left - 5, this.y(tick) + 4, 'end', tick >= 1e4 ? `10^${Math.round(Math.log10(tick))}` : demandNumber(tick));
    }
    text((DEMAND_MARGIN.left + this.right) / 2, DEMAND_HEIGHT - 4, 'middle', 'rate');
    const y = (DEMAND_MARGIN.top + bottom) / 2;
    text(10, y, 'middle', 'capacity that a share needs');
    nodes.at(-1).setAttribute('transform', `rotate(-90 10 ${y})`);
    return nodes;
  }

  line([className, label], i) {
    if (this.data.sample === 0) return [];
    const points = this.data.rates.map((rate, at) => `${this.x(at)},${this.y(rate.quantiles[i])}`);
    const end = this.svgNode('text', { x: this.right + 5, y: this.labelY(i), class: className });
    end.textContent = label;
    const curve = this.svgNode('polyline', { points: points.join(' '), class: className });
    curve.appendChild(this.svgNode('title', {})).textContent = `${label} of clients`;
    return [curve, end];
  }

  /** Keeps the labels of lines that end together apart. */
  labelY(i) {
    let y = Infinity;
    for (let line = 0; line <= i; line++) y = Math.min(this.y(this.data.rates.at(-1).quantiles[line]) + 4, y - 12);
    return Math.max(y, DEMAND_MARGIN.top + (4 - i) * 12);
  }

  /** Returns the keys of the sample that a limit touches, and the share of the requests that it denies. */
  touched({ rate, capacity }) {
    const { own, sample, rates } = this.data;
    const present = rate === own && capacity === this.data.capacity;
    const [, keys, requests] = rates[rate].steps.filter(each => each[0] <= capacity).at(-1) ?? [0, sample, 1];
    return { keys, requests, atMost: requests > 0 && (!present || this.data.refunds) };
  }

  write(limit) {
    const { sample, keys, rates, tier, global, tooLittle } = this.data;
    const { suggestion } = this;
    const rate = rates[limit.rate].rate;
    const spec = `${rate}, capacity ${demandNumber(limit.capacity)}`;
    this.specText.textContent = spec;
    let text = 'No request was seen yet.';
    if (sample > 0) {
      const { keys: touched, requests, atMost } = this.touched(limit);
      const clients = `${demandNumber(touched)} of ${demandNumber(sample)}${keys > sample ? ` followed clients, of about ${demandNumber(keys)}` : ' clients'}`
          + ` (at most ${demandPercent(demandShareAtMost(touched, sample))} of all) and `;
      text = `Would deny ${global ? '' : clients}${atMost ? 'at most ' : ''}${demandPercent(requests)} of requests.`;
    }
    this.sentence.textContent = text;
    this.hint.hidden = sample === 0;
    const measured = demandTime(this.data.measuredSeconds);
    this.share.hidden = global || tooLittle;
    this.hint.firstChild.data = tooLittle ? 'Too little traffic yet: ' : 'The tightest limit for ';
    const clients = `${demandNumber(keys)} ${keys === 1 ? 'client' : 'clients'}`;
    this.hintText.textContent = tooLittle
        ? `${global ? '' : `${clients}, `}${measured}. A limit is suggested after ten minutes${global ? '' : ' with at least 30 clients'}.`
        : (global ? 'all requests: ' : ' clients: ') + (suggestion
        ? `${rates[suggestion.rate].rate}, capacity ${demandNumber(suggestion.capacity)}`
            + `${suggestion.outermost ? '; a rate beyond those of this chart may fit better' : ''}.`
        : `none yet, since each takes longer than ${measured} from empty to full.`)
        + ` Measured for ${measured}.`
        + (this.data.refunds ? ' This policy gives tokens back, and the chart counts them as used: its numbers are upper bounds.' : '')
        + (this.data.calendar ? ' The chart is for refill: greedy; with the refill of a calendar, its limits deny more.' : '');
    const same = other => other && other.rate === limit.rate && other.capacity === limit.capacity;
    this.tryIt.hidden = !suggestion || same(suggestion);
    this.reset.hidden = same(this.presentLimit);
    for (const [key, value] of Object.entries({ 'aria-label': 'The limit', 'aria-valuemin': 0, 'aria-valuemax': rates.length - 1,
      'aria-valuenow': limit.rate, 'aria-valuetext': `${spec}. ${text}` })) this.point.setAttribute(key, value);
    const path = ['ratelimit', 'policies', this.name, ...(tier ? ['tiers', tier] : [])];
    const indent = depth => '  '.repeat(depth);
    const rest = this.data.calendar ? '# for a policy with refill: greedy, without a zone' : '# only these two lines change';
    const entries = [`${rest}; keep the policy's key, paths and the rest`, `rate: ${rate}`, `capacity: ${limit.capacity}`,
      ...(this.data.calendar && !tier ? ['refill: greedy'] : [])];
    this.yaml.textContent = [
      ...path.map((part, depth) => `${indent(depth)}${part}:`),
      ...entries.map(entry => indent(path.length) + entry),
    ].join('\n');
  }

  async copyYaml() {
    getSelection().selectAllChildren(this.yaml);
    try {
      await navigator.clipboard.writeText(this.yaml.textContent);
      this.copy.textContent = 'Copied';
    } catch {
      this.copy.textContent = 'Selected: press Ctrl+C';
    }
  }
}

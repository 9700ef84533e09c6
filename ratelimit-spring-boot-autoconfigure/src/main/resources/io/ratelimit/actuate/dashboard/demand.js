'use strict';

/* The chart of the limits that the traffic needs: rate and capacity, both logarithmic, and the limit as a point to drag. */

const DEMAND_LINES = [['p50', '50 %'], ['p90', '90 %'], ['p99', '99 %'], ['p999', '99.9 %'], ['max', 'all']];
const DEMAND_WIDTH = 360;
const DEMAND_HEIGHT = 230;
const DEMAND_MARGIN = { left: 42, right: 46, top: 10, bottom: 34 };

/** Returns the bounds of a share of which a sample shows k of n, at 95 % (Wilson); for none 3 of n. */
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

const demandNumber = n => Math.round(n).toLocaleString('en');

/** A chart of one limit. take() gives it data, which keeps the point where the reader left it. */
class DemandChart {

  /** @param name the policy, for the YAML */
  constructor(name) {
    this.name = name;
    this.node = document.createElement('div');
    this.node.className = 'demand-limit';
    this.title = this.add('h4');
    this.svg = this.node.appendChild(this.svgNode('svg', { viewBox: `0 0 ${DEMAND_WIDTH} ${DEMAND_HEIGHT}` }));
    this.plot = this.svg.appendChild(this.svgNode('g', {}));
    this.point = this.svg.appendChild(this.svgNode('circle', { r: 8, class: 'demand-point', tabindex: 0, role: 'slider' }));
    this.sentence = this.add('p');
    this.sentence.className = 'demand-sentence';
    this.sentence.setAttribute('aria-live', 'polite');
    this.hint = this.add('p');
    this.tools = this.add('p');
    this.tools.className = 'demand-tools';
    this.tryIt = this.button('Show the tightest', () => this.data.suggestion && this.move(this.data.suggestion.rate, this.data.suggestion.capacity));
    this.reset = this.button('Show the present limit', () => { this.chosen = null; this.draw(); });
    this.yaml = this.add('pre');
    this.yaml.tabIndex = 0;
    this.copy = this.button('Copy', () => this.copyYaml());
    this.chosen = null;
    this.listen();
  }

  add(name) {
    return this.node.appendChild(document.createElement(name));
  }

  button(text, action) {
    const button = this.tools.appendChild(document.createElement('button'));
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
    this.data = data;
    this.draw();
  }

  /** The limit that the point shows: the present one until it is moved. */
  get limit() {
    return this.chosen ?? { rate: this.data.own, capacity: this.data.capacity };
  }

  move(rate, capacity) {
    this.chosen = { rate: Math.min(Math.max(rate, 0), this.data.rates.length - 1), capacity: Math.min(Math.max(Math.round(capacity), 1), 1e12) };
    this.draw();
  }

  listen() {
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

  x(rate) {
    const logs = this.data.rates.map(each => Math.log(each.perSecond));
    const span = logs.at(-1) - logs[0] || 1;
    return DEMAND_MARGIN.left + (logs[rate] - logs[0]) / span * (DEMAND_WIDTH - DEMAND_MARGIN.left - DEMAND_MARGIN.right);
  }

  y(capacity) {
    const share = Math.log(Math.max(capacity, 1)) / Math.log(this.highest);
    return DEMAND_HEIGHT - DEMAND_MARGIN.bottom - Math.min(share, 1) * (DEMAND_HEIGHT - DEMAND_MARGIN.bottom - DEMAND_MARGIN.top);
  }

  draw() {
    const { tier, rates, capacity } = this.data;
    this.title.textContent = tier ? `Tier ${tier}` : '';
    this.title.hidden = !tier;
    this.highest = 2 * Math.max(8, capacity, ...rates.flatMap(rate => rate.quantiles));
    this.plot.replaceChildren(...this.axes(), ...DEMAND_LINES.flatMap((line, i) => this.line(line, i)));
    const limit = this.limit;
    this.point.setAttribute('cx', this.x(limit.rate));
    this.point.setAttribute('cy', this.y(limit.capacity));
    this.write(limit);
  }

  axes() {
    const nodes = [];
    const bottom = DEMAND_HEIGHT - DEMAND_MARGIN.bottom;
    const text = (x, y, anchor, content) => {
      const node = this.svgNode('text', { x, y, 'text-anchor': anchor });
      node.textContent = content;
      nodes.push(node);
    };
    this.data.rates.forEach((rate, i) => {
      nodes.push(this.svgNode('line', { x1: this.x(i), x2: this.x(i), y1: DEMAND_MARGIN.top, y2: bottom }));
      if ((i - this.data.own) % 2 === 0) text(this.x(i), bottom + 14, 'middle', rate.rate);
    });
    for (let tick = 1; tick <= this.highest; tick *= this.highest > 1e4 ? 100 : 10) {
      nodes.push(this.svgNode('line', { x1: DEMAND_MARGIN.left, x2: DEMAND_WIDTH - DEMAND_MARGIN.right, y1: this.y(tick), y2: this.y(tick) }));
      text(DEMAND_MARGIN.left - 5, this.y(tick) + 4, 'end', tick >= 1e4 ? `10^${Math.round(Math.log10(tick))}` : demandNumber(tick));
    }
    text(DEMAND_WIDTH / 2, DEMAND_HEIGHT - 4, 'middle', 'rate, and the capacity that this share needs with it');
    return nodes;
  }

  line([className, label], i) {
    if (this.data.sample === 0) return [];
    const points = this.data.rates.map((rate, at) => `${this.x(at)},${this.y(rate.quantiles[i])}`);
    const end = this.svgNode('text', { x: DEMAND_WIDTH - DEMAND_MARGIN.right + 5, y: this.labelY(i), class: className });
    end.textContent = label;
    return [this.svgNode('polyline', { points: points.join(' '), class: className }), end];
  }

  /** Keeps the labels of lines that end together apart. */
  labelY(i) {
    let y = Infinity;
    for (let line = 0; line <= i; line++) y = Math.min(this.y(this.data.rates.at(-1).quantiles[line]) + 4, y - 12);
    return Math.max(y, DEMAND_MARGIN.top + (4 - i) * 12);
  }

  /** Returns the keys of the sample that a limit touches, and the share of the requests that it denies. */
  touched({ rate, capacity }) {
    const { own, denied, sample, rates } = this.data;
    const step = rates[rate].steps.filter(each => each[0] <= capacity).at(-1);
    const present = rate === own && capacity === this.data.capacity;
    const [, keys, requests] = step ?? [0, sample, 1];
    return { keys, requests: keys === 0 ? 0 : present ? denied : requests, atMost: !present && keys > 0 };
  }

  write(limit) {
    const { sample, keys, rates, refill, suggestion, tier } = this.data;
    const rate = rates[limit.rate].rate;
    const spec = `${rate}, capacity ${demandNumber(limit.capacity)}`;
    let text = `${spec}: no request was seen yet.`;
    if (sample > 0) {
      const { keys: touched, requests, atMost } = this.touched(limit);
      text = `${spec}: touches ${demandPercent(touched / sample)} of clients (${demandNumber(touched)} of ${demandNumber(sample)}`
          + `${keys > sample ? ` followed, of about ${demandNumber(keys)}` : ''}; of all, at most ${demandPercent(demandShareAtMost(touched, sample))}),`
          + ` would have denied ${atMost ? 'at most ' : ''}${demandPercent(requests)} of requests.`;
    }
    this.sentence.textContent = text;
    this.hint.textContent = suggestion
        ? `The tightest for 99.9 % of clients within a minute: ${rates[suggestion.rate].rate}, capacity ${demandNumber(suggestion.capacity)}`
            + `${suggestion.outermost ? '; a rate beyond those of this chart may fit better' : ''}.`
        : '';
    this.tryIt.hidden = !suggestion;
    this.reset.hidden = !this.chosen;
    for (const [key, value] of Object.entries({ 'aria-label': 'The limit', 'aria-valuemin': 0, 'aria-valuemax': rates.length - 1,
      'aria-valuenow': limit.rate, 'aria-valuetext': text })) this.point.setAttribute(key, value);
    const path = ['ratelimit', 'policies', this.name, ...(tier ? ['tiers', tier] : [])];
    const indent = depth => '  '.repeat(depth);
    const entries = [`rate: ${rate}`, `capacity: ${limit.capacity}`, ...(refill === 'interval' && !tier ? ['refill: interval'] : [])];
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

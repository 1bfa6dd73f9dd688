import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { renderMetrics } from './exposition.ts'
import { MetricRegistry } from './metric-registry.ts'

interface ParsedSample {
  readonly name: string
  readonly labels: Record<string, string>
  readonly value: number
}

interface ParsedFamily {
  readonly name: string
  readonly type: string
  readonly help: string
  readonly samples: ParsedSample[]
}

/** Reads escapes as the formats define them; anything else after a backslash is an error. */
function unescaped(text: string, allowed: Record<string, string>): string {
  return text.replaceAll(/\\([\s\S]?)/g, (_, letter: string) => {
    const meant = allowed[letter]
    if (meant === undefined) throw new Error(`escape \\${letter}`)
    return meant
  })
}

const QUOTED = { '\\': '\\', n: '\n', '"': '"' }
const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (-?[\d.e+-]+|NaN|[+-]Inf)$/s
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\\n]|\\.)*)"(,|$)/gsy

function parseLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {}
  LABEL.lastIndex = 0
  for (let at = 0; at < text.length; at = LABEL.lastIndex) {
    const found = LABEL.exec(text)
    if (found === null) throw new Error(`labels: ${text.slice(at)}`)
    labels[found[1]!] = unescaped(found[2]!, QUOTED)
  }
  return labels
}

const SUFFIXES: Record<string, readonly string[]> = { gauge: [''], histogram: ['_bucket', '_sum', '_count'] }

/** Reads one format, from its description alone, and strictly: what a scraper could stumble over is an error. */
class PageParser {
  readonly families: ParsedFamily[] = []
  readonly #isOpen: boolean
  #help: { readonly name: string; readonly text: string } | undefined

  constructor(isOpen: boolean) {
    this.#isOpen = isOpen
  }

  line(line: string): void {
    const [, kind, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.*)$/s.exec(line) ?? []
    if (this.#isOpen && /(?<!\\)(?:\\\\)*"/.test(rest)) throw new Error(`a bare quote: ${rest}`)
    if (kind === 'HELP') this.#help = { name, text: unescaped(rest, this.#isOpen ? QUOTED : { '\\': '\\', n: '\n' }) }
    else if (kind === 'TYPE') this.#type(name, rest)
    else this.#sample(line)
  }

  #type(name: string, type: string): void {
    const isRepeated = this.families.some((family) => family.name === name)
    if (isRepeated || this.#help?.name !== name) throw new Error(`family ${name}`)
    this.families.push({ name, type, help: this.#help.text, samples: [] })
  }

  #sample(line: string): void {
    const [, name, labels = '', value] = SAMPLE.exec(line) ?? []
    const family = this.families.at(-1)
    if (name === undefined || family === undefined) throw new Error(`line: ${line}`)
    const suffixes = SUFFIXES[family.type] ?? [this.#isOpen ? '_total' : '']
    if (!suffixes.some((suffix) => name === family.name + suffix)) throw new Error(`${name} in ${family.name}`)
    family.samples.push({ name, labels: parseLabels(labels), value: Number(value) })
  }
}

function parse(body: string, isOpen: boolean): ParsedFamily[] {
  if (!body.endsWith('\n')) throw new Error('the last line is not ended')
  const lines = body.slice(0, -1).split('\n')
  if (isOpen && lines.pop() !== '# EOF') throw new Error('no # EOF')
  const parser = new PageParser(isOpen)
  for (const line of lines) parser.line(line)
  return parser.families
}

const OPEN = 'application/openmetrics-text; version=1.0.0'

function parsed(registry: MetricRegistry, accept?: string): ParsedFamily[] {
  // The first family is that of overflows.
  return parse(renderMetrics(registry.snapshot(), accept).body, accept === OPEN).slice(1)
}

describe('renderMetrics', () => {
  it('writes the Prometheus text format', () => {
    const registry = new MetricRegistry()
    const calls = registry.counter({ name: 'calls_total', help: 'Calls.', labels: ['path', 'result'] })
    calls.labels({ path: '/a', result: 'ok' }).inc(3)
    calls.labels({ path: '/b', result: 'ok' }).inc()
    registry.gauge({ name: 'open', help: 'Open now.', merge: 'sum' }).labels().set(-1.5)
    const page = renderMetrics(registry.snapshot())
    expect(page.contentType).toBe('text/plain; version=0.0.4; charset=utf-8')
    expect(page.body).toBe(`# HELP sluice_metrics_overflow_total Lookups whose label values were counted as other.
# TYPE sluice_metrics_overflow_total counter
sluice_metrics_overflow_total{metric="calls_total"} 0
# HELP calls_total Calls.
# TYPE calls_total counter
calls_total{path="/a",result="ok"} 3
calls_total{path="/b",result="ok"} 1
# HELP open Open now.
# TYPE open gauge
open -1.5
`)
  })

  it('writes OpenMetrics, in which a counter is named without _total', () => {
    const registry = new MetricRegistry()
    registry.counter({ name: 'calls_total', help: 'Calls.' }).labels().inc(2)
    const page = renderMetrics(registry.snapshot(), OPEN)
    expect(page.contentType).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8')
    expect(page.body).toBe(`# HELP sluice_metrics_overflow Lookups whose label values were counted as other.
# TYPE sluice_metrics_overflow counter
# HELP calls Calls.
# TYPE calls counter
calls_total 2
# EOF
`)
  })

  it('adds up the buckets of a histogram and shows it in two units', () => {
    const registry = new MetricRegistry()
    const took = registry.histogram({
      name: 'took_ms',
      help: 'Time.',
      labels: ['path'],
      bounds: [0.07, 1, 2500],
      alsoAs: { name: 'took_seconds', divisor: 1000 },
    })
    for (const ms of [0, 0.07, 0.08, 1, 1.5, 2500, 9000]) took.labels({ path: '/' }).observe(ms)
    const sumMs = 0.07 + 0.08 + 1 + 1.5 + 2500 + 9000
    const [inMs, inSeconds] = parsed(registry)
    const bucket = (name: string, le: string, value: number) => ({ name, labels: { path: '/', le }, value })
    expect(inMs).toEqual({
      name: 'took_ms',
      type: 'histogram',
      help: 'Time.',
      samples: [
        bucket('took_ms_bucket', '0.07', 2),
        bucket('took_ms_bucket', '1', 4),
        bucket('took_ms_bucket', '2500', 6),
        bucket('took_ms_bucket', '+Inf', 7),
        { name: 'took_ms_sum', labels: { path: '/' }, value: sumMs },
        { name: 'took_ms_count', labels: { path: '/' }, value: 7 },
      ],
    })
    expect(inSeconds?.samples.map(({ name, labels, value }) => [name, labels['le'], value])).toEqual([
      ['took_seconds_bucket', '0.00007', 2],
      ['took_seconds_bucket', '0.001', 4],
      ['took_seconds_bucket', '2.5', 6],
      ['took_seconds_bucket', '+Inf', 7],
      ['took_seconds_sum', undefined, sumMs / 1000],
      ['took_seconds_count', undefined, 7],
    ])
  })

  it('writes bounds in OpenMetrics in their one form', () => {
    const registry = new MetricRegistry()
    const bounds = [-1, 0, 1e-10, 0.00001, 0.0001, 0.25, 1, 10, 100_000, 1e6, 2.5e7, 1e10]
    registry.histogram({ name: 'sizes', help: 'Sizes.', bounds }).labels()
    const les = parsed(registry, OPEN)[0]!.samples.flatMap(({ labels }) => labels['le'] ?? [])
    const expected = '-1.0 0.0 1e-10 1e-05 0.0001 0.25 1.0 10.0 100000.0 1e+06 2.5e+07 1e+10 +Inf'
    expect(les).toEqual(expected.split(' '))
  })

  it('is read back as it was written, whatever is in help and labels (property)', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string({ unit: fc.constantFrom('\\', 'n', '"', '\n', '}', ',', '=') }),
    )
    const value = fc.double({ noNaN: true, noDefaultInfinity: true, min: 0 })
    const series = fc.uniqueArray(fc.record({ one: text, other: text, value }), {
      selector: ({ one, other }) => JSON.stringify([one, other]),
      maxLength: 5,
    })
    fc.assert(
      fc.property(text, series, fc.boolean(), (help, rows, isOpen) => {
        fc.pre(help.length > 0)
        const registry = new MetricRegistry()
        const counter = registry.counter({ name: 'a_total', help, labels: ['one', 'other'] })
        const gauge = registry.gauge({ name: 'b', help, labels: ['one', 'other'], merge: 'sum' })
        for (const row of rows) {
          const { one, other } = row
          counter.labels({ one, other }).inc(row.value)
          gauge.labels({ one, other }).set(-row.value)
        }
        const expected = rows.map((row) => ({ labels: { one: row.one, other: row.other }, value: row.value }))
        const [counters, gauges] = parsed(registry, isOpen ? OPEN : undefined)
        expect([counters?.help, gauges?.help]).toEqual([help, help])
        expect(counters?.samples).toEqual(expected.map((row) => ({ name: 'a_total', ...row })))
        expect(gauges?.samples).toEqual(expected.map((row) => ({ name: 'b', ...row, value: 0 - row.value })))
      }),
    )
  })

  it('replaces half characters, which no page can have', () => {
    const registry = new MetricRegistry()
    const counter = registry.counter({ name: 'a_total', help: 'half \ud800', labels: ['one'] })
    counter.labels({ one: '\ud800' }).inc()
    counter.labels({ one: '\udfff' }).inc()
    expect(parsed(registry)).toEqual([
      {
        name: 'a_total',
        type: 'counter',
        help: 'half \ufffd',
        samples: [{ name: 'a_total', labels: { one: '\ufffd' }, value: 2 }],
      },
    ])
  })
})

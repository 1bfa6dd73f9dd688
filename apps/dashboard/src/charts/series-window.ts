import type { AlignedData } from 'uplot'

const SHORTEST_SPAN_MS = 1000

/**
 * The newest points of aligned series, in buffers that are allocated once. A point has an instant and one number for
 * each series; NaN where nothing was measured. Each buffer is twice as long as the window: points are appended until it
 * is full, then the newest half moves to the front. So a view is always one piece of memory, as charts need it.
 */
export class SeriesWindow {
  readonly capacity: number
  readonly seriesCount: number
  readonly #times: Float64Array<ArrayBuffer>
  readonly #values: readonly Float64Array<ArrayBuffer>[]
  #start = 0
  #end = 0

  constructor(capacity: number, seriesCount: number) {
    this.capacity = capacity
    this.seriesCount = seriesCount
    this.#times = new Float64Array(capacity * 2)
    this.#values = Array.from({ length: seriesCount }, () => new Float64Array(capacity * 2))
  }

  /** Points in the window. */
  get length(): number {
    return this.#end - this.#start
  }

  /** The instant of the newest point; undefined when there is none. */
  get lastAtMs(): number | undefined {
    return this.length === 0 ? undefined : this.#times[this.#end - 1]
  }

  /** The instant of the oldest point; undefined when there is none. */
  get firstAtMs(): number | undefined {
    return this.length === 0 ? undefined : this.#times[this.#start]
  }

  /** Removes all points. */
  clear(): void {
    this.#start = 0
    this.#end = 0
  }

  /** Sets the point of an instant: the newest one again, or a new one after it. An older instant is left out. */
  set(atMs: number, values: ArrayLike<number>): void {
    const last = this.lastAtMs
    if (last !== undefined && atMs < last) return
    if (last !== atMs) this.#append(atMs)
    for (let index = 0; index < this.seriesCount; index += 1) {
      this.#values[index]![this.#end - 1] = values[index] ?? Number.NaN
    }
  }

  #append(atMs: number): void {
    if (this.#end === this.#times.length) {
      const from = this.#end - this.capacity + 1
      for (const buffer of [this.#times, ...this.#values]) buffer.copyWithin(0, from, this.#end)
      this.#start = 0
      this.#end = this.capacity - 1
    }
    this.#times[this.#end] = atMs
    this.#end += 1
    if (this.length > this.capacity) this.#start = this.#end - this.capacity
  }

  /** The points as a chart takes them: instants, then the values of each series. Valid until the next change. */
  view(): AlignedData {
    const cut = (buffer: Float64Array): Float64Array => buffer.subarray(this.#start, this.#end)
    return [cut(this.#times), ...this.#values.map((values) => withGaps(cut(values)))] as unknown as AlignedData
  }

  /** The highest value of the first `count` series; undefined when nothing was measured. */
  highest(count: number): number | undefined {
    let highest = Number.NEGATIVE_INFINITY
    for (let series = 0; series < count; series += 1) {
      const values = this.#values[series]!
      for (let index = this.#start; index < this.#end; index += 1) {
        if (values[index]! > highest) highest = values[index]!
      }
    }
    return highest === Number.NEGATIVE_INFINITY ? undefined : highest
  }

  /** The position of the newest point that is not after an instant; -1 when all are. */
  indexAt(atMs: number): number {
    let low = this.#start
    let high = this.#end
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#times[middle]! <= atMs) low = middle + 1
      else high = middle
    }
    return low - 1 - this.#start
  }

  /** The instant at a position. */
  timeAt(index: number): number {
    return this.#times[this.#start + index] ?? Number.NaN
  }

  /** The instant at which the span of a position ends: that of the next point, or as long as the span before. */
  endOf(index: number): number {
    const [beforeMs, atMs, nextMs] = [index - 1, index, index + 1].map((each) =>
      each < 0 || each >= this.length ? Number.NaN : this.timeAt(each),
    ) as [number, number, number]
    if (!Number.isNaN(nextMs)) return nextMs
    return Number.isNaN(beforeMs) ? atMs + SHORTEST_SPAN_MS : 2 * atMs - beforeMs
  }

  /** The value of a series at a position; NaN where there is none. */
  valueAt(series: number, index: number): number {
    return index < 0 || index >= this.length ? Number.NaN : (this.#values[series]?.[this.#start + index] ?? Number.NaN)
  }
}

/** Charts know what was not measured as null, which typed arrays cannot hold. Series without gaps are not copied. */
function withGaps(values: Float64Array): ArrayLike<number | null> {
  return values.some(Number.isNaN) ? Array.from(values, (value) => (Number.isNaN(value) ? null : value)) : values
}

/** Keeps threads asleep and releases all of them at once, round after round. */
export class StartGate {
  readonly #round: Int32Array

  private constructor(memory: SharedArrayBuffer) {
    this.#round = new Int32Array(memory)
  }

  /** A gate that is shut for round 1. */
  static create(): StartGate {
    return new StartGate(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  }

  /** The gate of another thread, by its {@link memory}. */
  static attach(memory: SharedArrayBuffer): StartGate {
    return new StartGate(memory)
  }

  /** For {@link StartGate.attach} in another thread. */
  get memory(): SharedArrayBuffer {
    return this.#round.buffer as SharedArrayBuffer
  }

  /** The last round that was released; 0 before the first. */
  get round(): number {
    return Atomics.load(this.#round, 0)
  }

  /** Releases the threads that wait for the next round, and shuts the gate for the one after it. */
  openNext(): void {
    Atomics.add(this.#round, 0, 1)
    Atomics.notify(this.#round, 0)
  }

  /** Blocks this thread until `round` is released. */
  wait(round: number): void {
    for (let open = this.round; open < round; open = this.round) Atomics.wait(this.#round, 0, open)
  }
}

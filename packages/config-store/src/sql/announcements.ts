import type { Notifier } from '../notifier.ts'

/** Tells notifiers of changes, without making who changed something wait for it. */
export class Announcements {
  readonly #notifiers: readonly Pick<Notifier, 'announce'>[]
  readonly #underWay = new Set<Promise<unknown>>()

  constructor(notifiers: readonly Pick<Notifier, 'announce'>[]) {
    this.#notifiers = notifiers
  }

  /** After a change was committed: whether or not anybody is told, it was made, and polling finds it. */
  announce(): void {
    for (const notifier of this.#notifiers) {
      const told = notifier.announce().catch(() => false)
      this.#underWay.add(told)
      void told.then(() => this.#underWay.delete(told))
    }
  }

  /** Resolves when everybody was told, or could not be, of all that was changed until now. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay)
  }
}

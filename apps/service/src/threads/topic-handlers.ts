/** Who answers which topic in one thread. */
export class TopicAnswers {
  readonly #answers = new Map<string, (question: unknown) => unknown>()

  add(topic: string, give: (question: unknown) => unknown): void {
    if (this.#answers.has(topic)) throw new Error(`"${topic}" is answered already`)
    this.#answers.set(topic, give)
  }

  /** Rejects when nobody answers the topic. */
  async give(topic: string, question: unknown): Promise<unknown> {
    const give = this.#answers.get(topic)
    if (give === undefined) throw new Error(`nobody answers "${topic}"`)
    return await give(question)
  }
}

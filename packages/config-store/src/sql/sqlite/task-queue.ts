/** Runs tasks one after another, in the order they came. */
export class TaskQueue {
  #last: Promise<unknown> = Promise.resolve()

  /** Resolves or rejects as the task does, which begins when all before it have ended. */
  run<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#last.then(task)
    this.#last = result.catch(() => undefined)
    return result
  }
}

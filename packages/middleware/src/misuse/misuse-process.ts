/** What is known of the process that a limiter counts in. */
export interface ProcessFacts {
  /** Whether it is one of the workers of `node:cluster`. */
  readonly isClusterWorker: boolean
  /** The number that a process manager such as PM2 gave it (`NODE_APP_INSTANCE`); undefined when there is none. */
  readonly instance: string | undefined
}

/** The part of Node's `process` that is looked at. */
export interface ProcessLike {
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly getBuiltinModule?: (name: string) => unknown
}

/** The facts of a process; those of one that is alone where nothing is known, as in runtimes other than Node. */
export function processFacts(from: ProcessLike | undefined): ProcessFacts {
  const cluster = from?.getBuiltinModule?.('node:cluster') as { readonly isWorker?: boolean } | undefined
  return { isClusterWorker: cluster?.isWorker === true, instance: from?.env?.['NODE_APP_INSTANCE'] }
}

/** Whether other processes do the same work. A manager numbers a single process too, with 0. */
export function isOneOfMany({ isClusterWorker, instance }: ProcessFacts): boolean {
  return isClusterWorker || Number(instance ?? 0) > 0
}

import type { AlgorithmName } from './scenario.ts'

/** What the playground says about an algorithm. */
export interface AlgorithmText {
  readonly label: string
  /** One sentence for somebody who has never heard of it. */
  readonly summary: string
}

/** The texts of each algorithm. */
export const ALGORITHM_TEXTS: Readonly<Record<AlgorithmName, AlgorithmText>> = {
  'fixed-window': {
    label: 'Fixed window',
    summary: 'One counter that starts anew with each window. Cheap, but around a boundary twice the limit passes.',
  },
  'sliding-window-counter': {
    label: 'Sliding window counter',
    summary: 'Two counters, weighted by time. Cheap, and close to the truth while traffic is even.',
  },
  'sliding-window-log': {
    label: 'Sliding window log',
    summary: 'Remembers every call. Never more than the limit in any window, at the price of memory.',
  },
  gcra: {
    label: 'GCRA',
    summary: 'One number per caller: a smooth rate with a burst. The default of Sluice.',
  },
  'token-bucket': {
    label: 'Token bucket',
    summary: 'Tokens come back at a constant rate, up to the size of the bucket; each call takes one.',
  },
  'leaky-bucket-meter': {
    label: 'Leaky bucket (meter)',
    summary: 'Calls fill a bucket that leaks at a constant rate; what does not fit is denied.',
  },
  'leaky-bucket-queue': {
    label: 'Leaky bucket (queue)',
    summary: 'Calls wait for their turn and go on at a constant rate; a full queue denies.',
  },
  hybrid: {
    label: 'Hybrid',
    summary: 'A fixed window, with a token bucket on top for callers that are entitled to bursts.',
  },
  concurrency: {
    label: 'Concurrency',
    summary: 'Counts calls in progress. How often a caller calls makes no difference.',
  },
}

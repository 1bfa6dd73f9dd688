/** Gives the next random number, from 0 (included) to 1 (excluded). Not for secrets. */
export type Random = () => number

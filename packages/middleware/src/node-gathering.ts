import { Gathering } from './gathering.ts'

/** That of all servers of this process. */
export const nodeGathering: Gathering = new Gathering((run) => void setImmediate(run))

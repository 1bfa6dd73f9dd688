import { Fingerprint } from '../../fingerprint.ts'

// The same in every process: all nodes must put a caller on the same side.
const fingerprint = new Fingerprint({ low: 0x73_68_61_72, high: 0x65_00_00_01 })

/**
 * Where a caller stands between 0 and 100, spread evenly: always the same for the same salt and caller, on every node. A share
 * of n percent are those below n; who is in a share is in every larger one.
 */
export function callerShare(salt: string, caller: string): number {
  fingerprint.of(salt.length, 0, `${salt}\n${caller}`)
  return ((fingerprint.word0 >>> 0) / 0x1_00_00_00_00) * 100
}

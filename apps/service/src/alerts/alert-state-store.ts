import type { AlertState, AlertStateStore } from './alert-state.ts'
import type { StateFile } from './state-file.ts'

const PART = 'desk'

/** Keeps the state of a desk in a part of `file`. */
export function alertStateStore(file: StateFile): AlertStateStore {
  return {
    // The file is ours, of this version and whole.
    load: () => file.get(PART) as AlertState | undefined,
    save: (state) => file.put(PART, state),
  }
}

import type { JsonSchema } from '@sluice/core/internal'

/** One thing that can be set. */
export interface SettingDefinition {
  /** Without the two dashes. */
  readonly flag: string
  /** Of the environment. */
  readonly variable: string
  /** What stands for its value in the help; empty for a switch, which needs none. */
  readonly argument: string
  /** What it does, and what holds when it is left out. */
  readonly help: string
  /** What its value must be. `title` is what is expected, as the rest of a sentence. */
  readonly schema: JsonSchema
  /** Whether a value may hold a password. It is never shown then. */
  readonly isSecret?: boolean
}

import type { BatchAnswer } from '@sluice/contract'
import { MOST_CHECKS, OPERATIONS } from '@sluice/contract'
import type { LineForm } from './turn-line.ts'

/** How checks are sent: one that is alone as it is, several as a batch. */
export const CHECK_LINE: LineForm = {
  noun: 'checks',
  alone: { operation: OPERATIONS.check, bodyOf: (body) => body },
  together: { operation: OPERATIONS.checkBatch, field: 'requests', most: MOST_CHECKS },
  answersOf: (answer, count) => {
    const { answers } = answer as Partial<BatchAnswer>
    return Array.isArray(answers) && answers.length === count ? answers : undefined
  },
}

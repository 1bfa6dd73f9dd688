import type { Rule } from '@sluice/core'
import type { PendingBatch } from '@sluice/core/internal'
import { compileRule, createBatch, createItem } from '@sluice/core/internal'
import { expect, it } from 'vitest'
import type { CallContext } from '../wire/call-encoding.ts'
import { ByteWriter, CallArguments } from '../wire/call-encoding.ts'
import type { DecideCall } from './call-builder.ts'
import { BatchGroup, singleCall } from './call-builder.ts'
import { encodeDecideCall } from './decide-call.ts'

const RULES: Readonly<Record<string, Rule>> = {
  gcra: { limit: 10, window: '1m' },
  'token bucket': { algorithm: 'token-bucket', capacity: 7, refillPerSecond: 2 },
  'fixed window': { algorithm: 'fixed-window', limit: 3, window: '1h' },
  'sliding counter': { algorithm: 'sliding-window-counter', limit: 5, window: '10s' },
}

const context: CallContext = {
  writer: new ByteWriter(),
  body: new ByteWriter(),
  time: { givenMicros: 1_700_000_000_000_000, aboutMicros: 1_700_000_000_000_000, slackMs: 250 },
  recordOf: (key) => `record:${key}`,
}

function pendingOn(rule: Rule, key: string, cost: number): PendingBatch {
  return {
    batch: createBatch([createItem(compileRule('rule', rule)[0]!, key, cost)]),
    isSent: false,
    isAbandoned: false,
    next: undefined,
    complete: () => undefined,
    fail: () => undefined,
  }
}

/** What a call with any number of checks writes, for a call with one. */
function encodeByTables({ bulkChecks }: DecideCall): { readonly keys: readonly string[]; readonly args: Buffer[] } {
  const args = new CallArguments(context.time)
  const { writer, body } = context
  body.clear()
  for (const { limits, cost, groups } of bulkChecks) {
    body.uint16(limits.limits.length)
    body.double(cost)
    body.uint16(groups.length)
    for (const limit of limits.limits) body.uint16(args.limitIndex(limit))
    for (const { first, size } of groups) {
      body.uint16(args.keyIndex(context.recordOf(first.items[0]!.key)))
      body.uint16(size)
    }
  }
  return { keys: args.keys, args: [args.header(writer, body)] }
}

it.each(Object.keys(RULES))('one check alone is encoded as one of many (%s)', (name) => {
  const rule = RULES[name]!
  const alone = singleCall(pendingOn(rule, 'user-1', 3))
  expect(encodeDecideCall(alone, context)).toEqual(encodeByTables(alone))
  const group = new BatchGroup(pendingOn(rule, 'user-2', 1))
  const { limits } = alone.bulkChecks[0]!
  group.join({ ...pendingOn(rule, 'user-2', 1), batch: createBatch([...group.first.items]) })
  const repeated: DecideCall = { bulkChecks: [{ limits, cost: 1, groups: [group] }], groups: [] }
  expect(group.size).toBe(2)
  expect(encodeDecideCall(repeated, context)).toEqual(encodeByTables(repeated))
})

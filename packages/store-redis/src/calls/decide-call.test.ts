import type { Rule } from '@sluice/core'
import type { PendingBatch } from '@sluice/core/internal'
import { compileRule, createBatch, createItem } from '@sluice/core/internal'
import { expect, it } from 'vitest'
import type { CallContext, ScriptCall } from '../wire/call-encoding.ts'
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

/** The length of a call with one check by one bucket. */
const SHORT_BYTES = 87

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

/** The call that lua/includes/single-bucket-check.lua makes of the short form when it does not decide itself. */
function expanded({ keys, args }: ScriptCall): ScriptCall {
  const bytes = args[0]!
  if (bytes.length !== SHORT_BYTES) return { keys, args }
  const [tag, others, capacity] = [bytes.subarray(29, 37), bytes.subarray(63, 79), bytes.subarray(79, 87)]
  const [full, rate] = [bytes.subarray(39, 47), bytes.subarray(47, 63)]
  const limit = [Buffer.of(1), tag, others, capacity, full, Buffer.alloc(24), rate, Buffer.alloc(8), capacity]
  const check = [Buffer.of(1, 0), bytes.subarray(16, 24), Buffer.of(1, 0, 1, 0, 1, 0), bytes.subarray(24, 26)]
  const parts = [bytes.subarray(0, 16), Buffer.of(1, 0, 1, 0), ...limit, Buffer.of(0), ...check]
  return { keys, args: [Buffer.concat(parts)] }
}

it.each(Object.keys(RULES))('one check alone says what one of many says (%s)', (name) => {
  const rule = RULES[name]!
  const alone = singleCall(pendingOn(rule, 'user-1', 3))
  expect(expanded(encodeDecideCall(alone, context))).toEqual(encodeByTables(alone))
  const group = new BatchGroup(pendingOn(rule, 'user-2', 1))
  const { limits } = alone.bulkChecks[0]!
  group.join({ ...pendingOn(rule, 'user-2', 1), batch: createBatch([...group.first.items]) })
  const repeated: DecideCall = { bulkChecks: [{ limits, cost: 1, groups: [group] }], groups: [] }
  expect(group.size).toBe(2)
  expect(expanded(encodeDecideCall(repeated, context))).toEqual(encodeByTables(repeated))
})

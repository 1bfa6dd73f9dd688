import type * as wire from '@sluice/contract'
import type * as engine from '@sluice/core/policy'
import { expectTypeOf } from 'vitest'

// The contract depends on nothing, so it has types of its own for what the engine defines. Here the compiler compares
// them: what the engine has fits into what the contract says, and both have the same properties.

/** The properties of all members of a union. */
type KeysOf<T> = T extends unknown ? keyof T : never

type Item<T> = NonNullable<T> extends readonly (infer E)[] ? E : never

expectTypeOf<engine.Membership>().toEqualTypeOf<wire.Membership>()
expectTypeOf<engine.Block>().toEqualTypeOf<wire.Block>()
expectTypeOf<engine.Incident>().toEqualTypeOf<wire.Incident>()
expectTypeOf<engine.RequestMatch>().toEqualTypeOf<wire.RequestMatch>()
expectTypeOf<engine.DenyEntry>().toEqualTypeOf<wire.DenyEntry>()

// Their rules and terms are compared below.
expectTypeOf<Omit<engine.Tier, 'rules'>>().toEqualTypeOf<Omit<wire.Tier, 'rules'>>()
expectTypeOf<Omit<engine.Exemption, 'rules'>>().toEqualTypeOf<Omit<wire.Exemption, 'rules'>>()
expectTypeOf<Omit<engine.Override, 'terms'>>().toEqualTypeOf<Omit<wire.Override, 'terms'>>()

// The engine tells algorithms, units and durations apart, which the contract leaves to the schema.
expectTypeOf<engine.RuleSet>().toExtend<wire.RuleSet>()
expectTypeOf<engine.Override>().toExtend<wire.Override>()

expectTypeOf<keyof wire.RuleSet>().toEqualTypeOf<keyof engine.RuleSet>()
expectTypeOf<keyof wire.PolicyRule>().toEqualTypeOf<KeysOf<engine.PolicyRule>>()
expectTypeOf<keyof wire.OverrideTerms>().toEqualTypeOf<keyof engine.Override['terms']>()

type WireRule = Required<wire.PolicyRule>
expectTypeOf<WireRule['cost']>().toEqualTypeOf<Required<engine.PolicyRule>['cost']>()
expectTypeOf<keyof WireRule['penalty']>().toEqualTypeOf<keyof engine.Penalty>()
expectTypeOf<keyof WireRule['errorRate']>().toEqualTypeOf<keyof engine.ErrorRateCut>()
expectTypeOf<keyof Item<WireRule['schedule']>>().toEqualTypeOf<keyof engine.ScheduleEntry>()

type WireWindow = Item<wire.OverrideTerms['windows']>
type EngineWindow = Item<engine.Override['terms']['windows']>
expectTypeOf<keyof WireWindow>().toEqualTypeOf<keyof EngineWindow>()

expectTypeOf<keyof wire.DescriptorDomain>().toEqualTypeOf<keyof engine.DescriptorDomain>()
expectTypeOf<keyof wire.DescriptorNode>().toEqualTypeOf<keyof engine.DescriptorNode>()
expectTypeOf<keyof Required<wire.DescriptorNode>['limit']>().toEqualTypeOf<
  keyof Required<engine.DescriptorNode>['limit']
>()

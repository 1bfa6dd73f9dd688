import type { DocumentTable, StoredDocument } from '@sluice/config-store'
import type { Sleep } from '@sluice/runtime'
import { keyDigest } from '@sluice/runtime'
import type { AlertNotice, AlertRecord, Silence } from './alert-record.ts'
import { dueNotice, isSilent, noticeId, noticeText, shownAlert, withTold } from './alert-record.ts'
import type { AlertRuleName } from './alert-rule.ts'

/** What was measured while a condition holds. */
export type Measured = Pick<AlertRecord, 'value' | 'threshold' | 'unit' | 'summary'>

/** A message that is not delivered yet, and the node that delivers it. */
export interface ClaimedNotice {
  readonly notice: AlertNotice
  readonly node: string
  /** Rises for as long as that node is there. */
  readonly beat: number
}

/**
 * The alerts of a cluster: plain data that all nodes share, see docs/decisions/2026-11-17-cluster-alerts.md. Nothing in it is
 * compared with a clock.
 */
export interface ClusterState {
  readonly silences: { readonly [Name in AlertRuleName]?: Silence }
  /** Oldest first. At most one of each rule is firing. */
  readonly alerts: readonly AlertRecord[]
  /** Oldest first. */
  readonly outbox: readonly ClaimedNotice[]
  /** The nodes on which the condition of a rule holds; the number rises for as long as a node is there. */
  readonly holders: { readonly [Name in AlertRuleName]?: Readonly<Record<string, number>> }
  /** The id of the next alert of each rule: known before, so that nodes that cannot reach each other use the same. */
  readonly nextIds: { readonly [Name in AlertRuleName]?: string }
}

export const NO_ALERTS: ClusterState = { silences: {}, alerts: [], outbox: [], holders: {}, nextIds: {} }

/** What one node knows and wants when it changes the state. */
export interface NodeView {
  /** Names the node alone. */
  readonly node: string
  /** Names it for people. */
  readonly nodeName: string
  readonly nowMs: number
  /** The rules that it watches for the cluster. */
  readonly rules: readonly AlertRuleName[]
  /** Those whose condition holds on it. */
  readonly holding: ReadonlyMap<AlertRuleName, Measured>
  /** Whether it is time to renew its entries and claims. */
  readonly renews: boolean
  /** Whether another node has not renewed an entry or claim for too long, by its key of {@link keysOf}. */
  readonly isGone: (key: string) => boolean
  /** Ids of messages of this node that were delivered, or became dead letters. */
  readonly finished: ReadonlySet<string>
  /** 0: never. */
  readonly remindEveryMs: number
  /** Makes an id that no alert has had. */
  readonly newId: () => string
}

const MOST_ALERTS = 50
const MOST_NOTICES = 100

/** What says that a node has renewed its entry since. */
function holderKey(rule: string, node: string, beat: number): string {
  return `holder ${rule} ${node} ${beat}`
}

/** What says that a node has renewed its claim since. */
function claimKey({ notice, node, beat }: ClaimedNotice): string {
  return `claim ${notice.id} ${node} ${beat}`
}

/** Every key that a state has. */
export function keysOf({ holders, outbox }: ClusterState): readonly string[] {
  const held = Object.entries(holders).flatMap(([rule, nodes]) =>
    Object.entries(nodes).map(([node, beat]) => holderKey(rule, node, beat)),
  )
  return [...held, ...outbox.map(claimKey)]
}

/**
 * The state after a node has entered what it knows: which conditions hold on it, which messages it has delivered, and which
 * nodes it takes for gone. Alerts that begin or end by that have their messages in the same state, claimed by this node.
 */
export function advance(state: ClusterState, view: NodeView): ClusterState {
  const holders = nextHolders(state, view)
  const opened = nextAlerts({ ...state, holders, nextIds: nextIdsOf(state, view) }, view)
  const told = tellAll(opened, view)
  return { ...told, alerts: keptAlerts(told.alerts), outbox: nextOutbox(told, view).slice(-MOST_NOTICES) }
}

function nextHolders({ holders }: ClusterState, view: NodeView): ClusterState['holders'] {
  const { node, rules, holding, renews, isGone } = view
  const names = new Set([...Object.keys(holders), ...rules]) as Set<AlertRuleName>
  const next = Array.from(names, (rule): [AlertRuleName, Record<string, number>] => {
    const others = Object.entries(holders[rule] ?? {}).filter(
      ([other, beat]) => other !== node && !isGone(holderKey(rule, other, beat)),
    )
    const before = holders[rule]?.[node]
    const own = before === undefined ? 1 : before + (renews ? 1 : 0)
    return [rule, Object.fromEntries(holding.has(rule) ? [...others, [node, own]] : others)]
  })
  return Object.fromEntries(next.filter(([, nodes]) => Object.keys(nodes).length > 0))
}

function nextIdsOf({ nextIds }: ClusterState, { rules, newId }: NodeView): ClusterState['nextIds'] {
  const missing = rules.filter((rule) => nextIds[rule] === undefined)
  return missing.length === 0 ? nextIds : { ...nextIds, ...Object.fromEntries(missing.map((rule) => [rule, newId()])) }
}

/** Opens alerts whose condition holds on a node, and resolves those whose condition holds on none. */
function nextAlerts(state: ClusterState, { nodeName, nowMs, holding, renews }: NodeView): ClusterState {
  const { holders } = state
  const nextIds = { ...state.nextIds }
  const alerts = state.alerts.map((record): AlertRecord => {
    if (record.state !== 'firing') return record
    if (holders[record.rule] === undefined) return { ...record, state: 'resolved', resolvedAt: nowMs }
    const measured = renews ? holding.get(record.rule) : undefined
    return measured === undefined ? record : { ...record, ...measured }
  })
  for (const [rule, measured] of holding) {
    if (alerts.some((record) => record.rule === rule && record.state === 'firing')) continue
    // Every rule has one by now.
    const id = nextIds[rule]!
    nextIds[rule] = keyDigest(id)
    const about = { id, rule, scope: 'cluster', node: nodeName, state: 'firing', firedAt: nowMs, reminders: 0 } as const
    alerts.push({ ...about, ...measured })
  }
  return { ...state, alerts, nextIds }
}

/** Makes the messages that are due, claimed by this node. */
function tellAll(state: ClusterState, { node, nowMs, remindEveryMs }: NodeView): ClusterState {
  const outbox = [...state.outbox]
  const alerts = state.alerts.map((record) => {
    const silence = state.silences[record.rule]
    const kind = dueNotice(record, { nowMs, isSilent: isSilent(silence, nowMs), remindEveryMs })
    if (kind === undefined) return record
    const alert = shownAlert(record, silence, nowMs)
    const notice = { id: noticeId(record, kind), kind, at: nowMs, text: noticeText(kind, record), alert }
    outbox.push({ notice, node, beat: 1 })
    return withTold(record, kind, nowMs)
  })
  return { ...state, alerts, outbox }
}

/** Without what this node has delivered, with its claims renewed, and with claims of nodes that are gone taken over. */
function nextOutbox({ outbox }: ClusterState, { node, renews, isGone, finished }: NodeView): readonly ClaimedNotice[] {
  return outbox.flatMap((claimed) => {
    const isOwn = claimed.node === node
    if (isOwn) {
      if (finished.has(claimed.notice.id)) return []
      return renews ? { ...claimed, beat: claimed.beat + 1 } : claimed
    }
    return isGone(claimKey(claimed)) ? { ...claimed, node, beat: claimed.beat + 1 } : claimed
  })
}

/** The newest; one that is firing, or whose end is not told yet, is never dropped. */
function keptAlerts(alerts: readonly AlertRecord[]): readonly AlertRecord[] {
  let surplus = alerts.length - MOST_ALERTS
  return alerts.filter(({ state, told }) => {
    const isOver = state === 'resolved' && told?.state !== 'firing'
    if (surplus <= 0 || !isOver) return true
    surplus--
    return false
  })
}

/** A node that could not reach the shared state, and its copy: all that others did before is in both. */
export interface ReturningNode extends Pick<NodeView, 'node' | 'nowMs'> {
  readonly own: ClusterState
}

/**
 * The shared state with what a node did while it could not reach it.
 *
 * An alert that the node opened is the cluster's from now on. Where another is firing by now, it ends: its condition is that
 * other one's. An alert that both have is as the shared state has it.
 */
export function merged(shared: ClusterState, { own, node, nowMs }: ReturningNode): ClusterState {
  const known = new Map(shared.alerts.map((record) => [record.id, record]))
  const isFiring = (rule: AlertRuleName): boolean =>
    shared.alerts.some((record) => record.rule === rule && record.state === 'firing')
  const added = own.alerts
    .filter(({ id }) => !known.has(id))
    .map((record): AlertRecord => {
      if (record.state !== 'firing' || !isFiring(record.rule)) return record
      return { ...record, state: 'resolved', resolvedAt: nowMs }
    })
  const both = shared.alerts.map((record) => withOwnAcknowledgement(record, own))
  const sent = new Set(shared.outbox.map(({ notice }) => notice.id))
  const unsent = own.outbox.filter((claimed) => claimed.node === node && !sent.has(claimed.notice.id))
  return {
    ...shared,
    silences: newerSilences(shared.silences, own.silences),
    alerts: [...both, ...added].toSorted((one, other) => one.firedAt - other.firedAt),
    outbox: [...shared.outbox, ...unsent],
    nextIds: laterIds(shared, own),
  }
}

/** Somebody who could only reach this node has acknowledged it there. */
function withOwnAcknowledgement(record: AlertRecord, { alerts }: ClusterState): AlertRecord {
  const { acknowledgement } = alerts.find(({ id }) => id === record.id) ?? {}
  return acknowledgement === undefined || record.acknowledgement !== undefined ? record : { ...record, acknowledgement }
}

function newerSilences(shared: ClusterState['silences'], own: ClusterState['silences']): ClusterState['silences'] {
  const mine = Object.entries(own).filter(([rule, silence]) => silence.at > (shared[rule as AlertRuleName]?.at ?? 0))
  return { ...shared, ...Object.fromEntries(mine) }
}

/** Ids follow from each other: where the node has used the one that is next in the shared state, its own is further. */
function laterIds(shared: ClusterState, own: ClusterState): ClusterState['nextIds'] {
  const used = new Set(own.alerts.map(({ id }) => id))
  const later = Object.entries(own.nextIds).filter(([rule]) => used.has(shared.nextIds[rule as AlertRuleName] ?? ''))
  return { ...own.nextIds, ...shared.nextIds, ...Object.fromEntries(later) }
}

/** One document that all nodes share. Calls reject when it cannot be reached. */
export interface SharedDocument {
  read(): Promise<StoredDocument | undefined>
  /** False when another revision is there: nothing was changed then. */
  write(body: string, revision: number): Promise<boolean>
}

/** Longer ones count as not answered. */
const CALL_MS = 3000

/** A document of `table`. No call takes longer than three seconds, and none is made while an earlier one has not come back. */
export function sharedDocument(table: DocumentTable, name: string, sleep: Sleep): SharedDocument {
  let pending: Promise<unknown> | undefined
  const inTime = async <T>(call: () => Promise<T>): Promise<T> => {
    if (pending !== undefined) throw new Error('an earlier call has not come back')
    const calling = call()
    const settled = calling
      .catch(() => undefined)
      .then(() => {
        if (pending === settled) pending = undefined
      })
    pending = settled
    const ended = new AbortController()
    const late = sleep(CALL_MS, ended.signal).then(
      () => Promise.reject(new Error(`no answer in ${CALL_MS} ms`)),
      () => calling,
    )
    try {
      return await Promise.race([calling, late])
    } finally {
      ended.abort()
      // Whichever comes second has nobody left to tell.
      late.catch(() => undefined)
    }
  }
  return {
    read: () => inTime(() => table.get(name)),
    write: (body, revision) => inTime(() => table.put(name, body, revision)),
  }
}

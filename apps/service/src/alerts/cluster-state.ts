import { keyDigest } from '@sluice/runtime'
import type { AlertNotice, AlertRecord, Silence } from './alert-record.ts'
import { conditionOf, dueNotice, isSilent, noticeId, noticeText, shownAlert, withTold } from './alert-record.ts'
import type { AlertCondition } from './alert-rule.ts'

/** The measurement of a condition that is true. */
export type Measured = Pick<AlertRecord, 'value' | 'threshold' | 'unit' | 'summary'>

/** A message that is not delivered yet, with the node that delivers it. */
export interface ClaimedNotice {
  readonly notice: AlertNotice
  readonly node: string
  /** Heartbeat: increases while that node is alive. */
  readonly beat: number
}

/**
 * The alerts of a cluster: plain data that all nodes share, see docs/decisions/2026-11-17-cluster-alerts.md. Silences,
 * holders and ids are those of conditions, by their keys. No time in it is compared with the clock of another node.
 */
export interface ClusterState {
  readonly silences: Readonly<Record<string, Silence>>
  /** Oldest first. At most one alert per condition is firing. */
  readonly alerts: readonly AlertRecord[]
  /** Oldest first. */
  readonly outbox: readonly ClaimedNotice[]
  /** Nodes that find a condition true, with their heartbeats. */
  readonly holders: Readonly<Record<string, Readonly<Record<string, number>>>>
  /**
   * Id of the next alert of each condition of the cluster: fixed in advance, so that partitioned nodes use the same.
   */
  readonly nextIds: Readonly<Record<string, string>>
}

export const NO_ALERTS: ClusterState = { silences: {}, alerts: [], outbox: [], holders: {}, nextIds: {} }

/** What one node knows when it changes the state. */
export interface NodeView {
  /** Unique id of the node. */
  readonly node: string
  /** Name of the node for people. */
  readonly nodeName: string
  readonly nowMs: number
  /** What it evaluates. */
  readonly conditions: readonly Pick<AlertCondition, 'key' | 'scope' | 'rule'>[]
  /** What it finds true, by the key of the condition. */
  readonly holding: ReadonlyMap<string, Measured>
  /** Whether to renew its entries and claims. */
  readonly renews: boolean
  /** Whether another node has not renewed an entry or claim for too long, by its key of {@link keysOf}. */
  readonly isGone: (key: string) => boolean
  /** Ids of its messages that were delivered or became dead letters. */
  readonly finished: ReadonlySet<string>
  /** 0: never. */
  readonly remindEveryMs: number
  /** Creates a unique alert id. */
  readonly newId: () => string
}

const MAX_ALERTS = 50
const MAX_NOTICES = 100

/** An ended silence is kept for a day, so that a node that was disconnected does not bring back an older one. */
const SILENCE_KEPT_MS = 86_400_000

/** Changes when the node renews its entry. */
function holderKey(condition: string, node: string, beat: number): string {
  return `holder ${condition} ${node} ${beat}`
}

/** Changes when the node renews its claim. */
function claimKey({ notice, node, beat }: ClaimedNotice): string {
  return `claim ${notice.id} ${node} ${beat}`
}

/** All keys of a state. */
export function keysOf({ holders, outbox }: ClusterState): readonly string[] {
  const held = Object.entries(holders).flatMap(([condition, nodes]) =>
    Object.entries(nodes).map(([node, beat]) => holderKey(condition, node, beat)),
  )
  return [...held, ...outbox.map(claimKey)]
}

/**
 * The state after an update by one node: which conditions are true on it, which messages it has delivered, and which
 * nodes are gone. Messages about alerts that fire or resolve by that are in the same state, claimed by this node.
 */
export function advance(state: ClusterState, view: NodeView): ClusterState {
  const holders = nextHolders(state, view)
  const opened = nextAlerts({ ...state, holders, nextIds: nextIdsOf(state, view) }, view)
  const next = addNotices(opened, view)
  return {
    ...next,
    silences: keptSilences(next.silences, view),
    alerts: keptAlerts(next.alerts),
    outbox: nextOutbox(next, view).slice(-MAX_NOTICES),
  }
}

function nextHolders({ holders }: ClusterState, view: NodeView): ClusterState['holders'] {
  const { node, conditions, holding, renews, isGone } = view
  const keys = new Set([...Object.keys(holders), ...conditions.map(({ key }) => key)])
  const next = Array.from(keys, (key): [string, Record<string, number>] => {
    const others = Object.entries(holders[key] ?? {}).filter(
      ([other, beat]) => other !== node && !isGone(holderKey(key, other, beat)),
    )
    const before = holders[key]?.[node]
    const own = before === undefined ? 1 : before + (renews ? 1 : 0)
    return [key, Object.fromEntries(holding.has(key) ? [...others, [node, own]] : others)]
  })
  return Object.fromEntries(next.filter(([, nodes]) => Object.keys(nodes).length > 0))
}

function nextIdsOf({ nextIds }: ClusterState, { conditions, newId }: NodeView): ClusterState['nextIds'] {
  const missing = conditions.filter(({ key, scope }) => scope === 'cluster' && nextIds[key] === undefined)
  return missing.length === 0
    ? nextIds
    : { ...nextIds, ...Object.fromEntries(missing.map(({ key }) => [key, newId()])) }
}

/** Fires alerts whose condition a node finds true, and resolves those whose condition none finds true. */
function nextAlerts(
  state: ClusterState,
  { nodeName, nowMs, conditions, holding, renews, newId }: NodeView,
): ClusterState {
  const { holders } = state
  const nextIds = { ...state.nextIds }
  const alerts = state.alerts.map((record): AlertRecord => {
    if (record.state !== 'firing') return record
    if (holders[conditionOf(record)] === undefined) return { ...record, state: 'resolved', resolvedAt: nowMs }
    const measured = renews ? holding.get(conditionOf(record)) : undefined
    return measured === undefined ? record : { ...record, ...measured }
  })
  for (const { key, scope, rule } of conditions) {
    const measured = holding.get(key)
    if (measured === undefined) continue
    if (alerts.some((record) => conditionOf(record) === key && record.state === 'firing')) continue
    // Only its own node opens an alert of a node, so no other node has to know its id in advance.
    const id = nextIds[key] ?? newId()
    if (scope === 'cluster') nextIds[key] = keyDigest(id)
    const about = { id, rule: rule.name, scope, node: nodeName, state: 'firing', firedAt: nowMs, reminders: 0 } as const
    alerts.push({ ...about, ...(key === rule.name ? {} : { condition: key }), ...measured })
  }
  return { ...state, alerts, nextIds }
}

/** Adds the messages that are due, claimed by this node. */
function addNotices(state: ClusterState, { node, nowMs, remindEveryMs }: NodeView): ClusterState {
  const outbox = [...state.outbox]
  const alerts = state.alerts.map((record) => {
    const silence = state.silences[conditionOf(record)]
    const kind = dueNotice(record, { nowMs, isSilent: isSilent(silence, nowMs), remindEveryMs })
    if (kind === undefined) return record
    const alert = shownAlert(record, silence, nowMs)
    const notice = { id: noticeId(record, kind), kind, at: nowMs, text: noticeText(kind, record), alert }
    outbox.push({ notice, node, beat: 1 })
    return withTold(record, kind, nowMs)
  })
  return { ...state, alerts, outbox }
}

/** Removes what this node has delivered, renews its claims, and takes over the claims of nodes that are gone. */
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

/** Drops the oldest resolved alerts. One that fires, or whose end is not reported yet, is kept. */
function keptAlerts(alerts: readonly AlertRecord[]): readonly AlertRecord[] {
  let surplus = alerts.length - MAX_ALERTS
  return alerts.filter(({ state, told }) => {
    const isOver = state === 'resolved' && told?.state !== 'firing'
    if (surplus <= 0 || !isOver) return true
    surplus--
    return false
  })
}

/** Drops silences that ended long ago: nodes come and go, and their conditions with them. */
function keptSilences(silences: ClusterState['silences'], { nowMs }: NodeView): ClusterState['silences'] {
  const kept = Object.entries(silences).filter(([, { until }]) => until + SILENCE_KEPT_MS > nowMs)
  return Object.fromEntries(kept)
}

/** A node that is reconnected, and its copy of the state. */
export interface ReturningNode extends Pick<NodeView, 'node' | 'nowMs'> {
  readonly own: ClusterState
}

/**
 * The shared state with the changes that a node made while it was disconnected.
 *
 * An alert that the node opened becomes one of all. If another alert of the condition fires by now, it is resolved.
 * For an alert that both have, the shared state counts.
 */
export function merged(shared: ClusterState, { own, node, nowMs }: ReturningNode): ClusterState {
  const known = new Map(shared.alerts.map((record) => [record.id, record]))
  const isFiring = (condition: string): boolean =>
    shared.alerts.some((record) => conditionOf(record) === condition && record.state === 'firing')
  const added = own.alerts
    .filter(({ id }) => !known.has(id))
    .map((record): AlertRecord => {
      if (record.state !== 'firing' || !isFiring(conditionOf(record))) return record
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

/** Keeps an acknowledgement that was made on this node while it was disconnected. */
function withOwnAcknowledgement(record: AlertRecord, { alerts }: ClusterState): AlertRecord {
  const { acknowledgement } = alerts.find(({ id }) => id === record.id) ?? {}
  return acknowledgement === undefined || record.acknowledgement !== undefined ? record : { ...record, acknowledgement }
}

function newerSilences(shared: ClusterState['silences'], own: ClusterState['silences']): ClusterState['silences'] {
  const mine = Object.entries(own).filter(([condition, silence]) => silence.at > (shared[condition]?.at ?? 0))
  return { ...shared, ...Object.fromEntries(mine) }
}

/** Each id is derived from the previous one: if the node has used the next id of the shared state, its own is later. */
function laterIds(shared: ClusterState, own: ClusterState): ClusterState['nextIds'] {
  const used = new Set(own.alerts.map(({ id }) => id))
  const later = Object.entries(own.nextIds).filter(([condition]) => used.has(shared.nextIds[condition] ?? ''))
  return { ...own.nextIds, ...shared.nextIds, ...Object.fromEntries(later) }
}

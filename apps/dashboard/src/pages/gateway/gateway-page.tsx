import type { GatewayAnswer, GatewayInstance, GatewayRoute, GatewayUpstream } from '@sluice/contract'
import type { JSX } from 'preact'
import { call } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'
import { nowMs } from '../../clock-and-timers.ts'
import { Badge } from '../../ui/controls/badge.tsx'
import { Meter } from '../../ui/controls/meter.tsx'
import { Empty, LoadedView, Notice } from '../../ui/feedback/states.tsx'
import { Link } from '../../ui/navigation/link.tsx'
import { Card, Page } from '../../ui/shell/page.tsx'
import { agoText, percentText, pluralText } from '../../ui/theme/format.ts'
import { flowsOf } from './flows.ts'
import classes from './gateway.module.css'

const REFRESH_MS = 1000

/** Routes to upstreams as a flow, with the health of each instance. */
export function GatewayPage(): JSX.Element {
  const gateway = useQuery('gateway', (signal) => call('gateway', { signal }), { periodMs: REFRESH_MS })
  return (
    <Page
      title="Gateway"
      description="Which requests go where, and how the instances behind them stand. Read every second from this node."
    >
      <LoadedView state={gateway.state} onRetry={() => void gateway.reload()}>
        {(answer) => <Flow answer={answer} />}
      </LoadedView>
    </Page>
  )
}

function Flow({ answer }: { answer: GatewayAnswer }): JSX.Element {
  const { mode, problem, waitingFor, keySet } = answer
  if (mode === 'off') {
    return (
      <Card>
        <Empty title="This node has no gateway" icon="gateway">
          Set SLUICE_GATEWAY_PORT, or start the service with npm start, and list routes and upstreams in sluice.yaml.
        </Empty>
      </Card>
    )
  }
  return (
    <>
      {mode === 'demo' ? (
        <Notice icon="gateway">
          No routes are configured: the demo upstream answers. List routes and upstreams in sluice.yaml.
        </Notice>
      ) : null}
      {problem === undefined ? null : (
        <Notice tone="danger">
          <strong>The configuration in the file is not in use.</strong> {problem}
        </Notice>
      )}
      {waitingFor.length === 0 ? null : <Notice tone="warning">Waits for {waitingFor.join(', ')}.</Notice>}
      {keySet?.problem === undefined ? null : (
        <Notice tone="warning">
          The keys that tokens are verified with could not be loaded again: {keySet.problem}
          {keySet.loadedAt === undefined
            ? ''
            : ` In use: ${pluralText(keySet.keys, 'key')}, loaded ${agoText(keySet.loadedAt, nowMs())}.`}
        </Notice>
      )}
      {flowsOf(answer).map(({ routes, upstream, name }) => (
        <section key={name} class={classes.flow} aria-label={`Routes to ${name}`}>
          <ul class={classes.routes}>
            {routes.map((route) => (
              <RouteItem key={route.name} route={route} />
            ))}
            {routes.length === 0 ? <li class={classes.muted}>No route leads here.</li> : null}
          </ul>
          <div class={classes.arrow} aria-hidden="true" />
          {upstream === undefined ? (
            <div class={classes.upstream}>
              <Badge tone="danger">upstream {name} does not exist</Badge>
            </div>
          ) : (
            <Upstream upstream={upstream} />
          )}
        </section>
      ))}
    </>
  )
}

function RouteItem({ route }: { route: GatewayRoute }): JSX.Element {
  const { name, path, methods, hosts, auth, limited, resource } = route
  return (
    <li class={classes.route}>
      <div class={classes.routeHead}>
        <code>
          {methods === undefined ? '' : `${methods.join(' ')} `}
          {path}
        </code>
        <span class={classes.muted}>{name}</span>
      </div>
      <div class={classes.facts}>
        {(hosts ?? []).map((host) => (
          <Badge key={host}>{host}</Badge>
        ))}
        {auth === 'none' ? null : <Badge tone="accent">identity {auth}</Badge>}
        {limited ? (
          <Link to={`/rules?search=${encodeURIComponent(resource ?? path.replace(/\/\*$/, ''))}`}>
            <Badge tone="good">limited{resource === undefined ? '' : ` as ${resource}`}</Badge>
          </Link>
        ) : (
          <Badge tone="warning">not limited</Badge>
        )}
      </div>
    </li>
  )
}

function Upstream({ upstream }: { upstream: GatewayUpstream }): JSX.Element {
  const { name, available, instances, unresolved } = upstream
  return (
    <div class={classes.upstream} data-available={available}>
      <div class={classes.upstreamHead}>
        <strong>{name}</strong>
        <Badge tone={available ? 'good' : 'danger'}>{available ? 'available' : 'no instance takes requests'}</Badge>
      </div>
      <ul class={classes.instances}>
        {instances.map((instance) => (
          <Instance key={instance.instance} instance={instance} />
        ))}
        {unresolved.map((text) => (
          <li key={text} class={classes.unresolved}>
            {text}
          </li>
        ))}
      </ul>
    </div>
  )
}

function Instance({ instance }: { instance: GatewayInstance }): JSX.Element {
  const { health, breaker, inFlight, concurrencyLimit, requests, failures, weight } = instance
  const limit = concurrencyLimit ?? Math.max(1, inFlight)
  return (
    <li class={classes.instance}>
      <span class={classes.health} data-health={breaker === 'closed' ? health : 'unhealthy'} />
      <code>{instance.instance}</code>
      <span class={classes.facts}>
        <Badge tone={health === 'healthy' ? 'good' : 'danger'}>{health}</Badge>
        {breaker === 'closed' ? null : (
          <Badge tone={breaker === 'open' ? 'danger' : 'warning'}>breaker {breaker}</Badge>
        )}
      </span>
      <span class={classes.load}>
        <Meter most={limit} value={inFlight} label={`${pluralText(inFlight, 'request')} in flight`} />
        {inFlight}
        {concurrencyLimit === undefined ? '' : ` of ${concurrencyLimit}`} in flight
      </span>
      <span class={classes.muted}>
        {pluralText(requests, 'request')}, {percentText(requests === 0 ? 0 : failures / requests)} failed
        {weight === 1 ? '' : `, weight ${weight}`}
      </span>
    </li>
  )
}

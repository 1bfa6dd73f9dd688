import type { Settings } from '../../settings.ts'
import { isLoopback } from '../../settings.ts'

/** Whether requests with this Host header are answered. */
export type AllowsHost = (host: string) => boolean

/** A name, or an IPv6 address in brackets, and a port that may be there. */
const HOST = /^(\[[0-9a-f:.%]+\]|[^:]*)(?::\d*)?$/i

/**
 * Which Host headers are answered; undefined when all are. A web page can make its own name resolve to 127.0.0.1 and send requests
 * here, but only under that name: a service that listens on this machine alone answers to no other names than its own. The port
 * is not compared: tunnels and port mappings change it.
 */
export function allowedHosts({ host, allowedHosts: allowed }: HostSettings): AllowsHost | undefined {
  const isLocal = isLoopback(host)
  if (!isLocal && allowed.length === 0) return undefined
  const names = new Set([...allowed, ...(isLocal ? ['localhost', ...boundAddresses(host)] : [])].map(hostName))
  let last: string | undefined
  return (given) => {
    // Most clients send the same again and again.
    if (given === last) return true
    const [, name] = HOST.exec(given) ?? []
    if (name === undefined || !names.has(name.toLowerCase())) return false
    last = given
    return true
  }
}

/** The settings that say which Host headers are answered. */
export type HostSettings = Pick<Settings, 'host' | 'allowedHosts'>

function boundAddresses(host: string): readonly string[] {
  return host.toLowerCase() === 'localhost' ? ['127.0.0.1', '::1'] : [host]
}

/** A name or an address as it stands in a Host header. */
function hostName(text: string): string {
  const isBareIpv6 = text.includes(':') && !text.startsWith('[')
  return (isBareIpv6 ? `[${text}]` : text).toLowerCase()
}

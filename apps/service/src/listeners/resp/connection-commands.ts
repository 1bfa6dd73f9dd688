import type { ReplyValue } from './reply-writer.ts'
import { OK, ReplyError, SimpleString } from './reply-writer.ts'
import type { RespSession } from './resp-session.ts'

/** A command by its arguments, its name left out. Throws {@link ReplyError}. */
export type Command = (session: RespSession, args: readonly string[]) => ReplyValue | Promise<ReplyValue>

/** A command and what `COMMAND` says of it. */
export interface CommandEntry {
  readonly run: Command
  /** Number of arguments including the name. Negative: the minimum. */
  readonly arity: number
  /** Position of the only key; 0 for none. */
  readonly firstKey: number
  /** Whether clients that have not authenticated may use it. */
  readonly isOpen?: boolean
}

/** The version of Redis whose commands and replies these are: clients choose by it what they send. */
const REDIS_VERSION = '7.4.0'

/** What connections answer about themselves. `version`: of the service. */
export function connectionCommands(version: string): Readonly<Record<string, CommandEntry>> {
  return {
    PING: { run: ping, arity: -1, firstKey: 0 },
    ECHO: { run: (_, [text = '']) => text, arity: 2, firstKey: 0 },
    HELLO: { run: (session, args) => hello(session, args, version), arity: -1, firstKey: 0, isOpen: true },
    AUTH: { run: auth, arity: -2, firstKey: 0, isOpen: true },
    SELECT: { run: select, arity: 2, firstKey: 0 },
    CLIENT: { run: client, arity: -2, firstKey: 0 },
    INFO: { run: () => infoText(version), arity: -1, firstKey: 0 },
    QUIT: { run: quit, arity: -1, firstKey: 0, isOpen: true },
    RESET: { run: reset, arity: 1, firstKey: 0, isOpen: true },
  }
}

function ping(_: RespSession, args: readonly string[]): ReplyValue {
  if (args.length > 1) throw new ReplyError("ERR wrong number of arguments for 'ping' command")
  return args[0] ?? new SimpleString('PONG')
}

/** `HELLO [2|3 [AUTH user key] [SETNAME name]]`: the protocol changes only if everything else is right. */
function hello(session: RespSession, args: readonly string[], version: string): ReplyValue {
  const [protocol, ...options] = args
  if (protocol !== undefined && protocol !== '2' && protocol !== '3') {
    throw new ReplyError('NOPROTO unsupported protocol version')
  }
  let name: string | undefined
  for (let at = 0; at < options.length; ) {
    const option = options[at]!.toUpperCase()
    const length = option === 'AUTH' ? 3 : 2
    if ((option !== 'AUTH' && option !== 'SETNAME') || at + length > options.length) {
      throw new ReplyError(`ERR Syntax error in HELLO option '${options[at]}'`)
    }
    if (option === 'AUTH') session.authenticate(options[at + 2]!)
    else name = checkName(options[at + 1]!)
    at += length
  }
  session.requireAccess()
  if (name !== undefined) session.name = name
  if (protocol !== undefined) session.protocol = protocol === '3' ? 3 : 2
  return {
    server: 'redis',
    version: REDIS_VERSION,
    proto: session.protocol,
    id: session.id,
    mode: 'standalone',
    role: 'master',
    modules: [{ name: 'sluice', ver: 1, path: '', args: [version] }],
  }
}

/** `AUTH key` or `AUTH user key`. The user is not looked at: a key names its owner. */
function auth(session: RespSession, args: readonly string[]): ReplyValue {
  if (args.length > 2) throw new ReplyError('ERR syntax error')
  session.authenticate(args.at(-1)!)
  return OK
}

function select(_: RespSession, [index]: readonly string[]): ReplyValue {
  if (index !== '0') throw new ReplyError('ERR DB index is out of range')
  return OK
}

function client(session: RespSession, args: readonly string[]): ReplyValue {
  const [subcommand = '', value] = args
  switch (subcommand.toUpperCase()) {
    case 'ID':
      return session.id
    case 'GETNAME':
      return session.name === '' ? null : session.name
    case 'SETNAME':
      if (args.length !== 2) break
      session.name = checkName(value!)
      return OK
    case 'INFO':
      return `id=${session.id} name=${session.name} resp=${session.protocol}\n`
    case 'SETINFO':
    case 'NO-EVICT':
    case 'NO-TOUCH':
      return OK
    default:
  }
  throw new ReplyError(
    `ERR unknown subcommand or wrong number of arguments for '${subcommand.slice(0, 64)}'. Use ID, GETNAME, ` +
      'SETNAME, INFO or SETINFO.',
  )
}

const NAME = /^[!-~]{0,64}$/

function checkName(name: string): string {
  if (NAME.test(name)) return name
  throw new ReplyError(
    'ERR Client names cannot contain spaces, newlines or special characters, or exceed 64 characters.',
  )
}

function quit(session: RespSession): ReplyValue {
  session.isEnding = true
  return OK
}

function reset(session: RespSession): ReplyValue {
  session.reset()
  return new SimpleString('RESET')
}

/** `loading` and `role` are what clients wait for before they send commands. */
function infoText(version: string): string {
  return [
    '# Server',
    `redis_version:${REDIS_VERSION}`,
    'redis_mode:standalone',
    `sluice_version:${version}`,
    '# Persistence',
    'loading:0',
    '# Replication',
    'role:master',
    '# Cluster',
    'cluster_enabled:0',
    '',
  ].join('\r\n')
}

/** `COMMAND` over a table of commands. */
export function commandCommand(table: () => ReadonlyMap<string, CommandEntry>): CommandEntry {
  const infoOf = (name: string): ReplyValue => {
    const entry = table().get(name.toUpperCase())
    if (entry === undefined) return null
    const flags = [new SimpleString(entry.firstKey > 0 ? 'write' : 'fast')]
    return [name.toLowerCase(), entry.arity, flags, entry.firstKey, entry.firstKey, entry.firstKey > 0 ? 1 : 0]
  }
  const run: Command = (_, [subcommand, ...names]) => {
    const all = [...table().keys()]
    if (subcommand === undefined) return all.map(infoOf)
    switch (subcommand.toUpperCase()) {
      case 'COUNT':
        return all.length
      case 'LIST':
        return all.map((name) => name.toLowerCase())
      case 'INFO':
        return (names.length === 0 ? all : names).map(infoOf)
      case 'DOCS':
        return {}
      default:
        throw new ReplyError(`ERR unknown subcommand '${subcommand.slice(0, 64)}'. Use COUNT, LIST, INFO or DOCS.`)
    }
  }
  return { run, arity: -1, firstKey: 0 }
}

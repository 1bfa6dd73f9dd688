// The commands of the documents: a block marked `sh`, followed by a block with what it prints.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** A command of a document and what it prints. */
export interface DocumentCommand {
  readonly command: string
  /** Language of the second block, such as `json` or `text`. */
  readonly language: string
  readonly printed: string
}

const COMMAND = /^```sh\n((?:(?!```)[\s\S])*?)^```\n\n```(?!sh\n)(\w+)\n([\s\S]*?)^```$/gm

/** The commands of a document that show what they print. */
export function commandsOf(markdown: string): DocumentCommand[] {
  return [...markdown.matchAll(COMMAND)].map(([, command = '', language = '', printed = '']) => ({
    command,
    language,
    printed,
  }))
}

/** What a command prints in a shell; the same requests are sent with `fetch` on a machine without curl. */
export async function runCommand(command: string, variables: Readonly<Record<string, string>> = {}): Promise<string> {
  try {
    await run('curl', ['--version'])
  } catch {
    return await withoutCurl(command, variables)
  }
  const { stdout } = await run('sh', ['-c', command], { env: { ...process.env, ...variables } })
  return stdout
}

/** Sends the request of the one curl call of a command, as often as its loop does. */
async function withoutCurl(command: string, variables: Readonly<Record<string, string>>): Promise<string> {
  const filled = Object.entries(variables).reduce((text, [name, value]) => text.replaceAll(`$${name}`, value), command)
  const [, loop] = /^for i in ([\d ]+);/.exec(filled) ?? []
  const [, url = ''] = /(http:[^\s";]+)/.exec(filled) ?? []
  const [, body] = / -d '([^']*)'/.exec(filled) ?? []
  const [, method = body === undefined ? 'GET' : 'POST'] = / -X (\w+)/.exec(filled) ?? []
  const headers = [...filled.matchAll(/ -H ["']([^"']+)["']/g)].map(
    ([, text = '']) => text.split(': ') as [string, string],
  )
  const printed: string[] = []
  for (const _ of loop?.split(' ') ?? ['once']) {
    const response = await fetch(url, { method, headers, ...(body === undefined ? {} : { body }) })
    const text = await response.text()
    printed.push(filled.includes('%{http_code}') ? `${response.status}\n` : text)
  }
  return printed.join('')
}

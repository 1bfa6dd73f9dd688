// The entry of every npm script: `node tools/run.mjs [node flags] <script.ts> [arguments]`.
//
// A fresh clone has any Node from 20 on and no node_modules; the sources need Node 24, which is a dependency. So this
// file is plain JavaScript without dependencies: it installs what package-lock.json says if that has not been done,
// then hands over to the pinned Node. Node flags that take a value are written `--flag=value`.
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs'
import { constants } from 'node:os'
import { delimiter, dirname, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

const OLDEST_NODE = 20
const LOCK_BEAT_MS = 2000
const LOCK_STALE_MS = 30_000
const LOCK_POLL_MS = 250
const LOCK_WAIT_MS = 15 * 60_000
const PROGRESS_POLL_MS = 500
const PARENT_POLL_MS = 250
const FORWARDED_SIGNALS = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..')
const modules = join(root, 'node_modules')
const pinnedNode = join(modules, 'node', 'bin', process.platform === 'win32' ? 'node.exe' : 'node')

/** A failure that the person at the keyboard can act on; printed without a stack. */
class RunError extends Error {
  /**
   * @param {string} code stable, for scripts to recognise
   * @param {string} message what was found, what was expected, what to do
   */
  constructor(code, message) {
    super(message)
    this.code = code
  }
}

/**
 * @param {string} path
 * @returns {{ packages?: Record<string, { version?: string, resolved?: string, link?: boolean, optional?: boolean,
 * devOptional?: boolean }> }}
 */
function readLock(path) {
  return JSON.parse(readFileSync(path, 'utf8'))
}

/**
 * Why an install is needed, or undefined when node_modules holds what package-lock.json says. npm records what it put
 * there in node_modules/.package-lock.json as its last step, so an install that was cut short is seen too.
 * @returns {string | undefined}
 */
function reasonToInstall() {
  const installedLock = join(modules, '.package-lock.json')
  if (!existsSync(installedLock)) return 'node_modules is missing or incomplete'
  const lock = join(root, 'package-lock.json')
  if (!existsSync(lock)) return undefined
  const installed = readLock(installedLock).packages ?? {}
  for (const [path, wanted] of Object.entries(readLock(lock).packages ?? {})) {
    if (!path.startsWith('node_modules/')) continue
    const found = installed[path]
    // Optional packages are those of other platforms.
    if (found === undefined && (wanted.optional || wanted.devOptional)) continue
    if (found === undefined) return `package-lock.json asks for ${path}, which is not installed`
    if (found.version !== wanted.version || (wanted.link && found.resolved !== wanted.resolved)) {
      return (
        `package-lock.json asks for ${path} ${wanted.version ?? wanted.resolved}, installed is ` +
        `${found.version ?? found.resolved}`
      )
    }
  }
  return undefined
}

/** The PATH without this workspace's binaries: npm must not run on the Node that it is about to replace. */
function outerPath() {
  const entries = (process.env['PATH'] ?? '').split(delimiter)
  return entries.filter((entry) => !resolve(entry).startsWith(modules + sep)).join(delimiter)
}

/**
 * Runs npm in the workspace, its output in ours, and answers its exit code.
 * @param {readonly string[]} args
 * @returns {Promise<number>}
 */
function npm(args) {
  // `include=dev`: NODE_ENV=production must not leave out the compiler. `loglevel=error`: some dependencies announce
  // that they want a newer Node than the one npm runs on; they get it, because everything runs on the pinned one.
  const flags = [
    '--include=dev',
    '--engine-strict=false',
    '--no-audit',
    '--no-fund',
    '--no-progress',
    '--loglevel=error',
  ]
  return new Promise((settle, fail) => {
    const child = spawn('npm', [...args, ...flags], {
      cwd: root,
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, PATH: outerPath() },
      shell: process.platform === 'win32',
    })
    const stopForwarding = forwardSignals(child)
    child.on('error', (cause) => {
      stopForwarding()
      fail(
        new RunError(
          'NPM_MISSING',
          `npm could not be started (${cause.message}). Install Node with npm, or put npm on the PATH.`,
        ),
      )
    })
    child.on('exit', (code) => {
      stopForwarding()
      settle(code ?? 1)
    })
  })
}

/**
 * Passes the signals that end a process on to the child, so that it can finish in order and we after it.
 * @param {import('node:child_process').ChildProcess} child
 * @returns {() => void} stops the forwarding
 */
function forwardSignals(child) {
  // A terminal sends Ctrl-C to the child as well; a second one could cut its graceful stop short.
  const inTerminal = [process.stdin, process.stdout, process.stderr].some((stream) => stream.isTTY)
  const stops = FORWARDED_SIGNALS.map((signal) => {
    const forward = () => {
      if (signal !== 'SIGINT' || !inTerminal) child.kill(signal)
    }
    process.on(signal, forward)
    return () => process.removeListener(signal, forward)
  })
  const stopWatching = watchParent(() => child.kill('SIGTERM'))
  return () => {
    stopWatching()
    for (const stop of stops) stop()
  }
}

/**
 * Calls `onEnd` when the parent process has ended. npm runs scripts in a shell. Not every shell replaces itself with
 * the last command: one that stays ends by the signal that was meant for us and does not pass it on.
 * @param {() => void} onEnd
 * @returns {() => void} stops watching
 */
function watchParent(onEnd) {
  // Started by hand, this process may outlive its parent: `nohup node tools/run.mjs ... &`.
  if (process.env['npm_lifecycle_event'] === undefined || process.platform === 'win32') return () => undefined
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    onEnd()
  }, PARENT_POLL_MS)
  timer.unref()
  return () => clearInterval(timer)
}

/**
 * Shows on standard error how many packages are installed: on a terminal in one line that is redrawn, elsewhere one
 * line for each quarter.
 * @returns {() => void} stops it
 */
function showInstallProgress() {
  const paths = lockedPaths()
  const startMs = Date.now()
  let quarters = 0
  const timer = setInterval(() => {
    const done = paths.filter((path) => existsSync(join(root, path, 'package.json'))).length
    const text = `sluice: installed ${done} of ${paths.length} packages`
    if (process.stderr.isTTY) {
      process.stderr.write(`\r\u001B[2K${text}, ${Math.round((Date.now() - startMs) / 1000)} s`)
    } else if (Math.floor((4 * done) / paths.length) > quarters) {
      quarters = Math.floor((4 * done) / paths.length)
      console.error(text)
    }
  }, PROGRESS_POLL_MS)
  return () => {
    clearInterval(timer)
    if (process.stderr.isTTY) process.stderr.write('\r\u001B[2K')
  }
}

/**
 * Where package-lock.json puts packages that are installed on every platform.
 * @returns {readonly string[]}
 */
function lockedPaths() {
  const lock = join(root, 'package-lock.json')
  if (!existsSync(lock)) return []
  const packages = Object.entries(readLock(lock).packages ?? {})
  return packages.flatMap(([path, { optional, devOptional }]) =>
    path.startsWith('node_modules/') && !optional && !devOptional ? [path] : [],
  )
}

/** @param {number} ms */
function pause(ms) {
  return new Promise((wake) => setTimeout(wake, ms))
}

/**
 * Runs `work` while holding the install lock of this workspace. The lock is a directory, made by the first process;
 * its time stamp is renewed while the holder lives, so a lock that was left behind by a killed process goes stale.
 * @param {() => Promise<void>} work
 */
async function withInstallLock(work) {
  const lock = join(root, '.install-lock')
  const giveUpAt = Date.now() + LOCK_WAIT_MS
  let told = false
  while (!takeLock(lock)) {
    if (Date.now() > giveUpAt) {
      throw new RunError(
        'INSTALL_BUSY',
        `Another process has been installing dependencies for ${LOCK_WAIT_MS / 60_000} minutes. Wait for it, or ` +
          'end it, and repeat the command.',
      )
    }
    if (!told) console.error('sluice: another process is installing dependencies; waiting for it')
    told = true
    await pause(LOCK_POLL_MS)
  }
  const beat = setInterval(() => utimesSync(lock, new Date(), new Date()), LOCK_BEAT_MS)
  try {
    await work()
  } finally {
    clearInterval(beat)
    rmSync(lock, { recursive: true, force: true })
  }
}

/**
 * @param {string} lock
 * @returns {boolean} whether the lock is ours now
 */
function takeLock(lock) {
  try {
    mkdirSync(lock)
    return true
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EEXIST') throw error
  }
  try {
    if (Date.now() - statSync(lock).mtimeMs < LOCK_STALE_MS) return false
    // Moved before it is removed: of several processes that see it stale, one succeeds.
    const stale = `${lock}-${process.pid}`
    renameSync(lock, stale)
    rmSync(stale, { recursive: true, force: true })
  } catch (error) {
    // Somebody else was quicker; the next round tells.
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'ENOENT') throw error
  }
  return false
}

async function install() {
  // The process that held the lock before us may have done the work.
  const reason = reasonToInstall()
  if (reason === undefined) return
  const command = existsSync(join(root, 'package-lock.json')) ? 'ci' : 'install'
  console.error(`sluice: running \`npm ${command}\` because ${reason}; the first time, this takes a minute or two`)
  const startMs = Date.now()
  const stopProgress = showInstallProgress()
  const code = await npm([command]).finally(stopProgress)
  if (code !== 0) {
    throw new RunError(
      'INSTALL_FAILED',
      `\`npm ${command}\` ended with code ${code}; its output is above. If the network was down, run \`npm ` +
        `${command}\` in ${root} when it is back, then repeat the command.`,
    )
  }
  console.error(`sluice: installed the dependencies in ${Math.round((Date.now() - startMs) / 1000)} s`)
}

/** The pinned Node arrives by the install script of a package, and npm may be configured not to run those. */
async function restoreNode() {
  console.error('sluice: running `npm rebuild node` because the pinned Node is not in node_modules')
  await npm(['rebuild', 'node', '--ignore-scripts=false'])
  if (existsSync(pinnedNode)) return
  throw new RunError(
    'NODE_MISSING',
    `The pinned Node was expected at ${relative(root, pinnedNode)} and is not there after \`npm rebuild node\`. ` +
      `Allow install scripts (\`npm config get ignore-scripts\` must say false) and run \`npm ci\` in ${root}.`,
  )
}

async function ensureInstalled() {
  const ready = () => reasonToInstall() === undefined && existsSync(pinnedNode)
  if (ready()) return
  await withInstallLock(async () => {
    await install()
    if (!existsSync(pinnedNode)) await restoreNode()
  })
}

/**
 * Runs the script on the pinned Node and ends as it ends: same code, same signal.
 * @param {readonly string[]} args
 */
function handOver(args) {
  // The last flag keeps V8 from an abort when several threads strip types; vitest.config.ts says more.
  const flags = [
    '--conditions=source',
    '--disable-warning=ExperimentalWarning',
    '--wasm-wrapper-tiering-budget=1000000000',
  ]
  const child = spawn(pinnedNode, [...flags, ...args], { stdio: 'inherit' })
  const stopForwarding = forwardSignals(child)
  child.on('error', (cause) =>
    report(
      new RunError('NODE_MISSING', `${pinnedNode} could not be started (${cause.message}). Run \`npm ci\` in ${root}.`),
    ),
  )
  child.on('exit', (code, signal) => {
    if (signal === null) {
      process.exitCode = code ?? 1
      return
    }
    stopForwarding()
    process.exitCode = 128 + constants.signals[signal]
    process.kill(process.pid, signal)
  })
}

/** @param {unknown} error */
function report(error) {
  if (!(error instanceof RunError)) throw error
  console.error(`sluice: ${error.code}: ${error.message}`)
  process.exitCode = 1
}

async function main() {
  const args = process.argv.slice(2)
  const script = args.find((argument) => !argument.startsWith('-'))
  // A program from node_modules is there only after the install.
  const isInstalledLater = script !== undefined && resolve(script).startsWith(modules + sep)
  if (script === undefined || !(isInstalledLater || existsSync(resolve(script)))) {
    throw new RunError(
      'SCRIPT_MISSING',
      `${script === undefined ? 'No script was given' : `${script} does not exist in ${process.cwd()}`}. Expected: ` +
        'node tools/run.mjs [node flags] <script.ts> [arguments].',
    )
  }
  if (Number.parseInt(process.versions.node, 10) < OLDEST_NODE) {
    throw new RunError(
      'NODE_TOO_OLD',
      `This is Node ${process.versions.node}; Node ${OLDEST_NODE} or later is needed. Install one from ` +
        'https://nodejs.org.',
    )
  }
  await ensureInstalled()
  handOver(args)
}

main().catch(report)

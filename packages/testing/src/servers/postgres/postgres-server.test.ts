import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { PostgresOptions, PostgresServer } from './postgres-server.ts'
import { startPostgres } from './postgres-server.ts'

/** Long for a machine under load; met within milliseconds. */
const SOON = { timeout: 10_000, interval: 5 }

async function start(options: PostgresOptions = {}): Promise<PostgresServer> {
  const server = await startPostgres(options)
  onTestFinished(() => server.close())
  return server
}

/** Whether there is a process of this id that has not ended. */
function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

async function folderOf(server: PostgresServer): Promise<string> {
  return dirname(await server.query('SHOW data_directory'))
}

/** How a statement ends: what it gives, or what psql says. */
function outcomeOf(result: Promise<string>): Promise<string> {
  return result.catch((error: { stderr: string }) => error.stderr)
}

describe('a PostgreSQL server', () => {
  let server: PostgresServer

  beforeAll(async () => {
    server = await startPostgres()
  })

  afterAll(() => server.close())

  it('takes connections as soon as it is there', async () => {
    expect(server).toMatchObject({ host: '127.0.0.1', status: 'running' })
    expect(server.url).toBe(`postgres://sluice@127.0.0.1:${server.port}/postgres`)
    expect(await server.query('SELECT 1, current_user UNION SELECT 2, $$b$$ ORDER BY 1')).toBe('1|sluice\n2|b')
    expect(server.log).toContain('ready to accept connections')
  })

  it('has a database of its own for each test, empty or like another', async () => {
    const first = await server.createDatabase()
    await server.query('CREATE TABLE t AS SELECT 7 AS a', first.name)
    const copy = await server.createDatabase(first.name)
    const empty = await server.createDatabase()
    expect(copy.url).toBe(`postgres://sluice@127.0.0.1:${server.port}/${copy.name}`)
    expect(await server.query('SELECT a FROM t', copy.name)).toBe('7')
    expect(await outcomeOf(server.query('SELECT a FROM t', empty.name))).toContain('relation "t" does not exist')
  })

  it('hangs while paused, connections included, and then answers what it was sent', async () => {
    const sleeping = server.query('SELECT pg_sleep(0.05), 1')
    await server.pause()
    expect(server.status).toBe('paused')
    let isAnswered = false
    const answer = server.query('SELECT 2').then((text) => {
      isAnswered = true
      return text
    })
    // Whatever is not hanging answers long before this process has ended.
    await new Promise((resolve) => spawn('sleep', ['0.3']).once('exit', resolve))
    expect(isAnswered).toBe(false)
    server.resume()
    expect([await sleeping, await answer]).toEqual(['|1', '2'])
    expect(server.status).toBe('running')
  })

  it('says which port is taken, and shows its log when it cannot start', async () => {
    const taken = startPostgres({ port: server.port })
    await expect(taken).rejects.toMatchObject({ code: 'SLUICE_TESTING_PORT_TAKEN' })
    await expect(taken).rejects.toThrow(`port ${server.port} of 127.0.0.1`)
    const failed = startPostgres({ config: { 'no.such.parameter': 'x', work_mem: 'many' } })
    await expect(failed).rejects.toMatchObject({ code: 'SLUICE_TESTING_START_FAILED' })
    await expect(failed).rejects.toThrow('work_mem')
  })
})

describe('the life of a PostgreSQL server', () => {
  it('keeps its data and its port through a crash, a stop and a restart', async () => {
    const server = await start()
    const { port, pid } = server
    await server.query('CREATE TABLE t AS SELECT 7 AS a')
    await server.kill()
    expect(server.status).toBe('ended')
    expect(await outcomeOf(server.query('SELECT 1'))).toContain('Connection refused')
    await server.restart()
    expect(server).toMatchObject({ port, status: 'running' })
    expect(server.pid).not.toBe(pid)
    expect(await server.query('SELECT a FROM t')).toBe('7')
    await server.pause()
    await server.restart()
    expect(await server.query('SELECT a FROM t')).toBe('7')
    await server.stop()
    await expect(server.pause()).rejects.toMatchObject({ code: 'SLUICE_TESTING_NOT_RUNNING' })
  })

  it('is gone after close, with its folder, also while paused, and can be closed again', async () => {
    const server = await start()
    const folder = await folderOf(server)
    expect(existsSync(folder)).toBe(true)
    await server.pause()
    await server.close()
    await server.close()
    expect([isAlive(server.pid), existsSync(folder)]).toEqual([false, false])
    await expect(server.restart()).rejects.toMatchObject({ code: 'SLUICE_TESTING_NOT_RUNNING' })
  })

  it('wants the password it was given', async () => {
    const server = await start({ password: 'p w/"' })
    expect(server.url).toBe(`postgres://sluice:p%20w%2F%22@127.0.0.1:${server.port}/postgres`)
    expect(await server.query('SELECT 1')).toBe('1')
    const hba = await server.query('SELECT DISTINCT auth_method FROM pg_hba_file_rules')
    expect(hba).toBe('scram-sha-256')
  })

  it('takes parameters that win over its own', async () => {
    const server = await start({ config: { fsync: 'on', max_connections: '20' } })
    expect(await server.query("SELECT current_setting('fsync'), current_setting('max_connections')")).toBe('on|20')
  })

  it('ends with the process that started it, and leaves no folder', async () => {
    const module = JSON.stringify(new URL('./postgres-server.ts', import.meta.url).href)
    const program = `
      const { startPostgres } = await import(${module})
      const server = await startPostgres()
      console.log(JSON.stringify([server.pid, await server.query('SHOW data_directory')]))
      setInterval(() => undefined, 1000)
    `
    const args = ['--conditions=source', '--disable-warning=ExperimentalWarning', '--input-type=module', '-e', program]
    const parent = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    const ended = new Promise((resolve) => parent.once('exit', resolve))
    const line = await new Promise<Buffer>((resolve) => parent.stdout.once('data', resolve))
    const [pid, folder] = JSON.parse(line.toString()) as [number, string]
    expect([isAlive(pid), existsSync(folder)]).toEqual([true, true])
    parent.kill('SIGKILL')
    await ended
    await expect.poll(() => [isAlive(pid), existsSync(dirname(folder))], SOON).toEqual([false, false])
  })
})

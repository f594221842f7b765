import { accessSync, constants, existsSync } from 'node:fs'
import { get } from 'node:http'
import * as v from 'valibot'
import { ExpectedError } from '../base/errors.ts'
import { systemCode } from '../base/failures.ts'
import { fromHere, inUrl, isLoopback, reachable } from '../base/hosts.ts'
import { parseJson } from '../base/json.ts'
import { configFileOf, hasPassword, type LoadOptions, loadHttpConfig, loadValidHttpConfig } from '../config/load.ts'
import { addressWith, readToken, tokenFileOf } from '../config/start-token.ts'
import { type Body, type ConfigFlag, exitCodes } from './command.ts'

const { ok, failed } = exitCodes

/** Returns exit code 0 if the daemon needs no restart and, with `--ready`, is ready. */
export const health: Body<ConfigFlag & { readonly ready: boolean }> = async (io, { config, ready }) => {
  // A file that the user names must exist. The daemon's own file may have been removed since the daemon started.
  if (config !== undefined && !existsSync(config)) throw new ExpectedError(`${config}: there is no such file`)
  const { http, ofAddress, hasMistakes } = loadHttpConfig({ file: config, env: io.env })
  // Do not throw a ConfigError, because its exit code 2 is reserved in health checks of containers.
  if (ofAddress.length > 0) throw new ExpectedError(ofAddress.join('\n'))
  const { enabled, host, port } = http
  if (!enabled || port === 0) {
    const why = enabled ? 'http.port is 0: only the log shows the port' : 'http.enabled is false'
    throw new ExpectedError(`${why}, so the address is unknown`)
  }
  const doubt = hasMistakes ? `; ${MAY_BE_ELSEWHERE}` : ''
  const answer = await requestHealth({ host, port }, ready ? '/readyz' : '/healthz').catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error)
    throw new ExpectedError(`no answer from ${host}:${port}: ${why}${doubt}`, { cause: error })
  })
  if (!answer.isOurs) throw anotherProgram({ host, port }, doubt)
  io.print(answer.body.trimEnd())
  return answer.status === 200 ? ok.code : failed.code
}

/** Prints the page's address with the token that the daemon has stored for the same configuration. */
export const open: Body<ConfigFlag> = async ({ env, print }, { config: file }) => {
  // Do not require the file, because on the first run there is a token but no configuration file yet.
  const http = loadValidHttpConfig({ file, env, requireFile: false })
  const address = pageAddress(http, { file, env })
  // Do not print the token if another program answers. If nothing answers, hub2mqtt may still be starting.
  const answer = await requestHealth(http, '/healthz').catch(() => undefined)
  if (answer?.isOurs === false) throw anotherProgram(http)
  print(address)
  return ok.code
}

type HealthAddress = Readonly<{ host: string; port: number }>

const MAY_BE_ELSEWHERE =
  'the configuration has mistakes, so the daemon may listen at another address: see hub2mqtt check-config'

const anotherProgram = ({ host, port }: HealthAddress, doubt = '') =>
  new ExpectedError(`another program answers at ${host}:${port}${doubt}`)

/** The answers that distinguish hub2mqtt from any other program on the same port. */
const OURS = v.union([v.object({ live: v.boolean() }), v.object({ ready: v.boolean() })])

const TIMEOUT_MS = 4000
/** Maximum size of an answer. Real answers are far smaller. */
const MAX_BYTES = 1024 * 1024

/** Requests the health of the daemon. Rejects if there is no complete answer in time. */
function requestHealth({ host, port }: HealthAddress, path: '/healthz' | '/readyz') {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: string; isOurs: boolean }>()
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  // Do not use the global agent, because the environment may set a proxy for it.
  const request = get({ host: reachable(host), port, path, agent: false, signal }, (response) => {
    let body = ''
    response.setEncoding('utf8')
    response.on('data', (chunk: string) => {
      body += chunk
      if (body.length > MAX_BYTES) request.destroy(new Error('the answer is too long'))
    })
    response.on('error', reject)
    response.on('end', () => resolve({ status: response.statusCode ?? 0, body, isOurs: v.is(OURS, parseJson(body)) }))
  })
  request.on('error', reject)
  return promise
}

/** Returns `false` only if the permissions of the file or its folders do not let this user read the file. */
function isReadable(file: string): boolean {
  try {
    accessSync(file, constants.R_OK)
    return true
  } catch (error) {
    return systemCode(error) !== 'EACCES'
  }
}

/** Returns the page's address with its token. @throws ExpectedError if a daemon with this configuration has no page */
function pageAddress(http: ReturnType<typeof loadValidHttpConfig>, request: LoadOptions): string {
  const { enabled, page, host, port } = http
  const refuse = (why: string): never => {
    throw new ExpectedError(why)
  }
  if (!enabled || !page) return refuse(`http.${enabled ? 'page' : 'enabled'} is false, so there is no page`)
  if (hasPassword(request)) return refuse('http.password is set: the page requires it, and accepts no start-up token')
  if (!isLoopback(host)) return refuse(`http.host is ${host}: with it, the page requires http.password`)
  if (port === 0) return refuse('http.port is 0: hub2mqtt prints the address only when it starts')
  const file = tokenFileOf(http, configFileOf(request))
  if (file === null) return refuse('no file contains a start-up token: set http.token_file, or pass --config')
  const token = readToken(file)
  if (token === undefined) {
    // If the configuration file is missing, this call throws, so that the user first learns about the file.
    loadValidHttpConfig(request)
    if (!isReadable(file)) return refuse(`${file}: only the user who started hub2mqtt may read the start-up token`)
    return refuse(`${file}: no start-up token; hub2mqtt writes it when it starts, unless http.password is set`)
  }
  return addressWith(fromHere(`http://${inUrl(host)}:${port}`), token)
}

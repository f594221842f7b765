// The connection between an app and its hub: lines of JSON over a pipe, in both directions.
import { syncBuiltinESMExports } from 'node:module'
import { Socket } from 'node:net'
import v8 from 'node:v8'
import { MAX_LINE_BYTES } from './limits.js'

/** The file descriptor of the pipe to the hub. */
const PIPE = 3

/** An error that the hub returned. */
export class HubError extends Error {
  name = 'HubError'

  constructor({ status, code, message }) {
    super(message)
    this.status = status
    this.code = code
  }
}

/** Converts a request to a line that the hub can read. @throws HubError */
export function requestLine(message) {
  let line
  try {
    line = JSON.stringify(message)
  } catch (cause) {
    const refused = { status: 400, code: 'invalid_value', message: 'The values of a call must be JSON values' }
    throw Object.assign(new HubError(refused), { cause })
  }
  if (Buffer.byteLength(line) <= MAX_LINE_BYTES) return line
  throw new HubError({ status: 413, code: 'too_large', message: `A call has at most ${MAX_LINE_BYTES} bytes as JSON` })
}

export function connect() {
  const socket = new Socket({ fd: PIPE })
  confine(socket._handle)
  const waiting = new Map()
  const servers = new Map()
  const listeners = new Map([['answer', settle]])
  let last = 0
  let rest = ''

  socket.setEncoding('utf8')
  socket.on('data', (text) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop()
    for (const line of lines) receive(JSON.parse(line))
  })
  // Exit when the connection is closed, because an app must not outlive its hub.
  socket.on('close', () => process.exit(0))
  socket.on('error', () => process.exit(0))

  function send(message, done) {
    socket.write(`${JSON.stringify(message)}\n`, done)
  }

  function receive(message) {
    const server = servers.get(message.type)
    if (server === undefined) return listeners.get(message.type)?.(message)
    // If the value cannot be written as JSON, the answer is an error as well.
    Promise.try(server, message)
      .then((value) => send({ type: 'answer', id: message.id, value: value ?? null }))
      .catch((error) => send({ type: 'answer', id: message.id, error: refusal(error) }))
  }

  function settle({ id, value, error }) {
    const { resolve, reject } = waiting.get(id) ?? {}
    waiting.delete(id)
    if (error === undefined) resolve?.(value)
    else reject?.(error)
  }

  return {
    send,
    on: (type, listener) => listeners.set(type, listener),
    serve: (type, server) => servers.set(type, server),
    async ask(message) {
      last += 1
      const id = last
      const line = requestLine({ ...message, id })
      const answer = new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject })
        socket.write(`${line}\n`)
      })
      try {
        return await answer
      } catch (error) {
        // Create the error here, so that its stack points to the caller.
        throw new HubError(error)
      }
    },
  }
}

/** Converts an error of the app to an answer: with its own status, or 500 if the error is unexpected. */
export function refusal(error) {
  const { status, code, message } = error instanceof Error ? error : new Error(String(error))
  const known = Number.isInteger(status) && status >= 400 && status <= 599
  if (!known) console.error(error)
  return {
    status: known ? status : 500,
    code: typeof code === 'string' ? code : known ? 'refused' : 'internal_error',
    message: String(message),
  }
}

/** The methods of pipes that apps may still call, because Node needs them to open descriptors such as stdout. */
const KEPT = ['constructor', 'open']

/**
 * Closes two gaps in Node's permission model before any code of the app runs. Node creates and connects sockets with a
 * path without checking permissions, and some flags make V8 write files.
 * @param pipe the handle of a pipe; all pipes share its prototype, which is the only access to the native functions
 */
function confine(pipe) {
  const { prototype } = pipe.constructor
  if (typeof prototype.bind !== 'function') throw new Error('apps cannot be restricted with this version of Node')
  for (const name of Object.getOwnPropertyNames(prototype)) if (!KEPT.includes(name)) forbid(prototype, name)
  forbid(v8, 'setFlagsFromString')
  syncBuiltinESMExports()
}

function forbid(object, name) {
  const value = () => {
    throw Object.assign(new Error('Access to this API has been restricted'), { code: 'ERR_ACCESS_DENIED' })
  }
  Object.defineProperty(object, name, { value, writable: false, configurable: false })
}

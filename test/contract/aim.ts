/** Runs commands against an app of an emulated hub, without a broker or a bridge. */
import { expect } from 'vitest'
import type { Command, Target } from '../../src/contract/command.ts'
import { findCommand } from '../../src/contract/commands.ts'
import { CommandError, fromHubError } from '../../src/contract/errors.ts'
import type { EmulatedHub, EmulatedHubOptions } from '../../src/emulator/hub.ts'
import { HubError } from '../../src/hub/errors.ts'
import type { Hub } from '../../src/hub/hub.ts'
import * as one from '../hub/support.ts'
import { FakeClock } from '../support/fake-clock.ts'

export const APP = 'the.app'
export const NEW_APP = 'com.harborlight.irrigation'
const APPS = [
  { id: APP, name: 'The app', version: '1.0.0', update: '1.1.0', settings: { x: 1, y: 2 } },
  { id: 'another.app' },
  { id: 'third.app' },
]

export interface Aim {
  readonly emulated: EmulatedHub
  readonly target: Target
  /** Only the command uses this clock. The hub and its requests run in real time. */
  readonly clock: FakeClock
  readonly end: () => void
}

export async function aim(
  options: EmulatedHubOptions = {},
  { emulate, hold }: Pick<typeof one, 'emulate' | 'hold'> = one,
): Promise<Aim> {
  const emulated = await emulate({ flavour: 'older', apps: APPS, ...options })
  const held = hold(emulated.url, { realtime: false, pollInterval: 3_600_000, pollIntervalFallback: 3_600_000 })
  await one.listed(held)
  emulated.forgetRequests()
  return { emulated, ...aimAt(held.hub) }
}

export const test = one.test.extend<{ readonly aimed: Aim }>({
  aimed: async ({ emulate, hold }, use) => use(await aim({}, { emulate, hold })),
})

export function aimAt(hub: Hub): Omit<Aim, 'emulated'> {
  const clock = new FakeClock()
  const ending = new AbortController()
  const target: Target = {
    hub,
    app: APP,
    argument: '',
    call: (name, parameters) => hub.call(name, parameters),
    callEndpoint: (endpoint) => hub.callEndpoint(endpoint),
    again: (read) => read(),
    send: async (app, name) => {
      const { command } = named(`app ${name}`)
      try {
        if (command.target === 'app') await command.run({ ...target, app }, {})
        return { ok: true, json: 'null' }
      } catch (error) {
        if (error instanceof HubError) return { ok: false, error: fromHubError(error, true) }
        if (error instanceof CommandError) return { ok: false, error }
        throw error
      }
    },
    report: () => null,
    history: async () => ({ resolution_seconds: 60, cpu_percent: [], memory_bytes: [], source: 'bridge' }),
    guard: () => {},
    repair: () => {},
    clock,
    signal: ending.signal,
  }
  return { target, clock, end: () => ending.abort() }
}

/** Runs a command given as topic and payload, such as `app set-setting/x` and `7`. */
export async function carryOut(
  { target, clock }: Pick<Aim, 'target' | 'clock'>,
  words: string,
  payload = '',
): Promise<unknown> {
  const { command, argument = '' } = named(words)
  if (command.target === 'bridge') throw new Error(`${words} is for no hub`)
  const input = command.payload.read(payload).input()
  // `then` turns a synchronous exception into a rejection.
  return await passTime(
    clock,
    Promise.resolve().then(() => command.run({ ...target, argument }, input)),
  )
}

/** Returns the row of the command table that a topic names, and the argument in the topic. */
export function named(words: string): { readonly command: Command; readonly argument: string | undefined } {
  const [target, topic = ''] = words.split(' ')
  const [name = '', argument] = topic.split('/')
  if (target !== 'app' && target !== 'hub' && target !== 'bridge') throw new Error(`${words} is for nothing`)
  const command = findCommand(target, name, argument !== undefined)
  if (command === undefined) throw new Error(`no command ${words}`)
  return { command, argument }
}

/** Returns the operations that the hub received. Omits reads of the list, which the hub's client also sends itself. */
export const operations = ({ emulated }: Aim) =>
  emulated.requests.map(({ operation }) => operation).filter((name) => name !== 'getApps')

async function passTime<T>(clock: FakeClock, running: Promise<T>): Promise<T> {
  let ended = false
  const end = () => {
    ended = true
  }
  running.then(end, end)
  while (!ended) await clock.advance(1000)
  return running
}

export async function failure(running: Promise<unknown>): Promise<unknown> {
  const error = await running.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(Error)
  return error
}

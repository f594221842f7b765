/** What the set-up page asks for, while no hub is configured. */
import type { Setup, SetupApply, SetupBroker, SetupDone, SetupHub, SetupTest } from './protocol.ts'
import { type ApiReply, json, refuse } from './reply.ts'

export interface SetupDoor {
  look(): Promise<Setup>
  /** @throws SetupRefusal */
  testHub(hub: SetupHub): Promise<SetupTest>
  /** @throws SetupRefusal */
  testBroker(broker: SetupBroker): Promise<SetupTest>
  /** Writes the configuration if it is ours to write. @throws SetupRefusal */
  apply(wanted: SetupApply): Promise<SetupDone>
  /** The answer to `apply` has been sent: if the configuration is written, the bridge may begin. */
  answered(): void
}

const STATUS = { invalid: 400, conflict: 409, busy: 429 } as const

/** Why the set-up does not do what it is asked for. */
export class SetupRefusal extends Error {
  readonly code: keyof typeof STATUS
  readonly waitMs: number | undefined

  constructor(code: keyof typeof STATUS, message: string, waitMs?: number) {
    super(message)
    this.code = code
    this.waitMs = waitMs
  }
}

/** Lets the set-up act, as long as there is one. */
export async function withSetup(
  setup: SetupDoor | undefined,
  act: (setup: SetupDoor) => Promise<object>,
): Promise<ApiReply> {
  if (setup === undefined)
    return refuse(404, 'unknown_path', 'hub2mqtt is set up already, or its configuration says that there are no hubs.')
  try {
    return json(200, await act(setup))
  } catch (error) {
    if (!(error instanceof SetupRefusal)) throw error
    const seconds = error.waitMs === undefined ? undefined : String(Math.ceil(error.waitMs / 1000))
    return refuse(STATUS[error.code], error.code, error.message, seconds ? { 'retry-after': seconds } : undefined)
  }
}

import { BROKER_FAULTS } from './broker.ts'
import { BURSTS } from './bursts.ts'
import type { Fault, Faults } from './fault.ts'
import { GATEWAY_FAULTS } from './gateway.ts'
import { HOURS } from './hours.ts'
import { HUB_FAULTS } from './hub.ts'
import { LIES } from './lies.ts'
import { LIMITS } from './limits.ts'
import { OTHERS } from './others.ts'
import { PAYLOAD_FAULTS } from './payloads.ts'
import { PROCESS_FAULTS } from './process.ts'
import { RELOADS } from './reloads.ts'
import { STRANGERS } from './strangers.ts'

export const FAULTS: Faults = {
  ...BROKER_FAULTS,
  ...HUB_FAULTS,
  ...PROCESS_FAULTS,
  ...GATEWAY_FAULTS,
  ...LIES,
  ...PAYLOAD_FAULTS,
  ...BURSTS,
  ...LIMITS,
  ...RELOADS,
  ...STRANGERS,
  ...HOURS,
}

export function faultNamed(name: string): Fault {
  const fault = FAULTS[name] ?? OTHERS[name]
  if (fault === undefined)
    throw new Error(`unknown fault "${name}"; expected one of: ${Object.keys(FAULTS).join(', ')}`)
  return fault
}

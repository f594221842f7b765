/** Runs writes that succeed only if the hub's response or a check of its state confirms them. */
import { asHubError, HubError } from '../hub/errors.ts'
import { OPERATIONS, type OperationName, type Parameters } from '../hub/operations.ts'
import { effectOf, writeCheck } from '../hub/written.ts'
import type { Target } from './command.ts'
import { CommandError } from './errors.ts'

/** Resolves to `null` if only a check confirms the write. @throws CommandError `outcome_unknown`, or HubError */
export async function confirmed<T>(write: Promise<T>, check: ReturnType<typeof writeCheck>): Promise<T | null> {
  try {
    return await write
  } catch (error) {
    if (!isUndecided(error) || check === undefined) throw error
    const done = await tried(check)
    if (done === true) return null
    throw undecided(error, done === false)
  }
}

/** Runs a write whose response has no data. */
export async function write<N extends OperationName>(
  { hub, call }: Target,
  name: N,
  parameters: Parameters<N>,
): Promise<null> {
  const effect = effectOf(name, parameters, OPERATIONS[name].body?.(parameters))
  await confirmed(call(name, parameters), writeCheck(hub, effect))
  return null
}

/** Runs a check. Resolves to its result, or to `undefined` if the check fails. */
export async function tried<T>(check: () => Promise<T>): Promise<T | undefined> {
  try {
    return await check()
  } catch (error) {
    asHubError(error)
    return undefined
  }
}

/** Returns whether a failed write may have been executed. */
export function isUndecided(error: unknown): error is HubError {
  return error instanceof HubError && (error.code === 'no_answer' || error.code === 'nonsense')
}

export function undecided(error: HubError, seen: boolean): Error {
  if (error.code === 'nonsense') return error
  const found = seen ? `${error.message} A look at the hub finds it not done so far.` : error.message
  return new CommandError('outcome_unknown', found, { cause: error })
}

// Closes what Node's permission model leaves open, before any code of the app runs: sockets by a path, which are made and
// reached without a look at the rights, and flags by which V8 writes files.
import { syncBuiltinESMExports } from 'node:module'
import v8 from 'node:v8'

/** What a pipe is still to do: to take over a descriptor, as for the app's output. */
const KEPT = ['constructor', 'open']

/** @param pipe the handle of a pipe: all others share its prototype, and there is no second way to the native functions */
export function confine(pipe) {
  const { prototype } = pipe.constructor
  if (typeof prototype.bind !== 'function') throw new Error('this version of Node cannot be confined')
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

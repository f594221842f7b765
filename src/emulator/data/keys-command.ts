/** `hub2mqtt emulate keys`: the keys of a data folder, beside the hub that may be using it. Says nothing itself. */
import { EmulatorOptionError, isKnownScope, scopeNames, writtenScope } from '../scopes.ts'
import { HubDataError, holdsHub } from './data-folder.ts'
import { openDatabase } from './database.ts'
import { StoredKeys } from './keys.ts'

const MAX_NAME = 100

export interface KeysCommand extends Disposable {
  /** @throws EmulatorOptionError for a scope that there is not, or a name that is too long */
  create(scopes: readonly string[], name: string): { readonly id: string; readonly key: string }
  /** One line each. */
  list(): string[]
  /** @throws HubDataError where there is no such key */
  revoke(id: string): void
}

/**
 * `make`: where nothing is yet, so that a hub can have its keys before its first start.
 * @throws HubDataError where the folder is not one of a hub
 */
export function keysOf(folder: string, { make = false } = {}): KeysCommand {
  if (!make && !holdsHub(folder)) throw new HubDataError(`${folder}: holds no hub`)
  const database = openDatabase(folder, { alone: false })
  const keys = new StoredKeys(database)
  return {
    create(scopes, name) {
      const unknown = scopes.find((scope) => !isKnownScope(scope))
      if (unknown !== undefined) {
        throw new EmulatorOptionError(`--scope: unknown scope "${unknown}", known are ${scopeNames().join(', ')}`)
      }
      if (name.length > MAX_NAME) throw new EmulatorOptionError(`--name: at most ${MAX_NAME} characters`)
      return keys.create(scopes, { name })
    },
    list: () =>
      keys.list().map(({ id, at, scopes, name }) => {
        // As the reference writes them, and as they can be given.
        const written = scopes.map(writtenScope).join(',')
        return [id, new Date(at).toISOString(), written, name].join('  ').trimEnd()
      }),
    revoke(id) {
      if (!keys.revoke(id)) throw new HubDataError('there is no key with this id; see hub2mqtt emulate keys list')
    },
    [Symbol.dispose]: () => database.close(),
  }
}

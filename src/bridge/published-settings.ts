/** The settings that the configuration publishes by name: read after each list, and after our own writes. */
import type { Json } from '../base/json.ts'
import type { OwnerOf } from '../contract/publications.ts'
import { asHubError, type HubErrorCode } from '../hub/errors.ts'
import type { Hub } from '../hub/hub.ts'
import { OPERATIONS } from '../hub/operations.ts'
import type { BridgeSettings } from './bridge-options.ts'
import type { HubStateOptions } from './hub-state.ts'
import { OwnerRows } from './owner-rows.ts'

type Published = BridgeSettings['settings']['publish']

/** States are read by people and automations. A larger value is a database and is not published. */
const MAX_LENGTH = 64 * 1024

/** Failures that do not concern a single setting: the next read would fail in the same way. */
const OF_ALL: ReadonlySet<HubErrorCode> = new Set<HubErrorCode>([
  'unauthorized',
  'forbidden',
  'subscription',
  'unknown_app',
  'rate_limited',
  'unreachable',
  'no_answer',
])

/** The failures among these that do not take the hub offline. */
const LASTING: ReadonlySet<HubErrorCode> = new Set<HubErrorCode>(['forbidden', 'subscription'])

export type PublishedSettings = ReturnType<typeof publishedSettings>

/** The settings of a hub with this configured name. */
export function publishedSettings(
  hubName: string,
  hub: Hub,
  { live, table, log }: Pick<HubStateOptions, 'live' | 'table' | 'log'>,
) {
  /** App id → setting name → its description, from the last configuration. */
  let published: Published = live.value.settings.publish
  /** The settings that the hub has or had. */
  const rows = new Map<string, OwnerRows<'setting'>>()
  /** Apps to read, one request at a time. */
  const due = new Set<string>()
  /** Settings that could not be read or published → the logged reason. */
  const failures = new Map<string, string>()
  let isReading = false

  return {
    publishes,
    refresh,
    refreshApp,
    appGone,
    rendered,
    /** Number of settings that could not be read or published. */
    get failures(): number {
      return failures.size
    },
    /** The configuration has changed: clears what is no longer published, and reads the rest. */
    reconfigured(): void {
      failures.clear()
      publish(live.value.settings.publish)
      refresh()
    },
    /** Clears all published settings, and stops publishing. */
    clear: () => publish(new Map()),
    /** Stops publishing, and leaves the topics as they are. */
    release(): void {
      published = new Map()
    },
  }

  /** Whether a setting is published: if so, the sweep must not clear it before it was read. */
  function publishes({ app, name }: Pick<OwnerOf<'setting'>, 'app' | 'name'>): boolean {
    return published.get(app)?.has(name) === true
  }

  /** Publishes these settings from now on, and clears the others. */
  function publish(wanted: Published): void {
    const before = published
    published = wanted
    for (const [app, names] of before) {
      for (const name of names.keys()) if (!publishes({ app, name })) rowsOf(app, name).clear()
    }
  }

  /** Clears the settings of an app that is gone. */
  function appGone(app: string): void {
    for (const name of published.get(app)?.keys() ?? []) rows.get(keyOf(app, name))?.clear()
  }

  function* rendered(): ReturnType<OwnerRows<'setting'>['rendered']> {
    for (const one of rows.values()) yield* one.rendered()
  }

  /** Reads all published settings. Call it after each read of the list, because hubs send no events for settings. */
  function refresh(): void {
    for (const app of published.keys()) refreshApp(app)
  }

  /** Reads the settings of one app, if any is published. */
  function refreshApp(app: string): void {
    if (!published.has(app)) return
    due.add(app)
    if (!isReading) void readDue()
  }

  async function readDue(): Promise<void> {
    isReading = true
    for (const app of due) {
      due.delete(app)
      await readApp(app)
    }
    isReading = false
  }

  async function readApp(app: string): Promise<void> {
    const names = [...(published.get(app)?.keys() ?? [])]
    if (!hub.apps.all.has(app)) {
      if (hub.apps.complete) for (const name of names) hold(app, name, undefined)
      return
    }
    const permission = hub.permits('getAppSettings')
    if (permission === 'forbidden') {
      noteAll(app, names, permission, `the API key lacks ${OPERATIONS.getAppSettings.scope}`)
    }
    if (permission === 'yes') await readNamed(app, names)
  }

  async function readNamed(app: string, names: readonly string[]): Promise<void> {
    try {
      const values = new Map(Object.entries(await hub.call('getAppSettings', { id: app })))
      for (const name of names) hold(app, name, values.get(name))
    } catch (error) {
      // Published values stay until a read succeeds; the next read of the list tries again.
      const { code, foreign, message } = asHubError(error)
      log.debug({ app, reason: code }, 'the settings of an app could not be read')
      // A single setting, even an unpublished one, can make the whole answer unreadable.
      if (LASTING.has(code) && !foreign) noteAll(app, names, code, message)
      if (foreign || OF_ALL.has(code)) return
      for (const name of names) if (!(await readOne(app, name))) return
    }
  }

  /** @returns whether the next setting is worth a request */
  async function readOne(app: string, name: string): Promise<boolean> {
    try {
      // Some hubs answer `null` for a setting that does not exist.
      hold(app, name, (await hub.call('getAppSetting', { id: app, name })) ?? undefined)
      return true
    } catch (error) {
      const { code, foreign, message } = asHubError(error)
      if (foreign || OF_ALL.has(code)) return false
      if (code === 'unknown_setting') hold(app, name, undefined)
      else noteAll(app, [name], code, message)
      return true
    }
  }

  function hold(app: string, name: string, value: Json | undefined): void {
    // The configuration may have changed since the request.
    if (!publishes({ app, name })) return
    try {
      const tooLong = value !== undefined && JSON.stringify(value).length > MAX_LENGTH
      if (tooLong) noteFailure(app, name, 'too_large', 'a setting is too large to be published')
      else failures.delete(keyOf(app, name))
      const own = rowsOf(app, name)
      if (value === undefined || tooLong) own.clear()
      else own.set({ value })
    } catch (err) {
      // Hub data must not crash the daemon, and one setting must not block the others.
      log.error({ app, setting: name, err }, 'a setting could not be published')
    }
  }

  /** Notes the same failure for several settings. */
  function noteAll(app: string, names: readonly string[], reason: HubErrorCode, why: string): void {
    const message = `a published setting cannot be read, and stays as it was: ${why}`
    for (const name of names) noteFailure(app, name, reason, message)
  }

  /** Logs a failure unless the setting's last one had the same reason: the hub's wording may differ each time. */
  function noteFailure(app: string, name: string, reason: string, message: string): void {
    if (!publishes({ app, name }) || failures.get(keyOf(app, name)) === reason) return
    failures.set(keyOf(app, name), reason)
    log.warn({ hub: hubName, app, setting: name, reason }, message)
  }

  function rowsOf(app: string, name: string): OwnerRows<'setting'> {
    const key = keyOf(app, name)
    const known = rows.get(key) ?? new OwnerRows({ kind: 'setting', hub: hubName, app, name }, table)
    rows.set(key, known)
    return known
  }
}

const keyOf = (app: string, name: string) => `${app} ${name}`

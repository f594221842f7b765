import { isIP } from 'node:net'
import type { Clock } from '../../base/clock.ts'
import { membershipOf } from '../../cluster/fleet.ts'
import type { Loaded } from '../../config/load.ts'
import type { Config } from '../../config/options.ts'
import { shownText } from '../../observability/controls.ts'
import { Scrubber } from '../../observability/scrub.ts'
import { examineBroker } from './broker.ts'
import { about, counted, type Finding, type Outcome } from './finding.ts'
import { examineHub } from './hub.ts'

type Examination = Pick<Loaded, 'config' | 'secrets' | 'warnings'> & { readonly clock: Clock }

/** Examines the configuration, the hubs and the brokers. Changes nothing there. */
export async function* examine(examination: Examination): AsyncGenerator<Finding> {
  const scrubber = new Scrubber(examination.secrets)
  // Findings quote text from hubs and brokers, which may contain secrets.
  const clean = (text: string) => shownText(scrubber.text(text))
  for await (const { text, remedy, ...finding } of examineAll(examination))
    yield { ...finding, text: clean(text), remedy: clean(remedy) }
}

async function* examineAll({ config, warnings, clock }: Examination): AsyncGenerator<Finding> {
  const { ok, note } = about('configuration')
  const names = Object.keys(config.hubs)
  yield ok(`no mistakes; ${counted(names.length, 'hub')}`)
  for (const warning of warnings) yield note(warning)
  const use = config.updates.store ? 'is queried once a day for each installed app' : 'is not used'
  yield about('store').ok(`the public app store ${use} (updates.store)`)
  yield* await examineBroker(config, clock)
  if (config.fleet.nats.length > 0) {
    // Most installations do not need the NATS client, so load it on demand.
    const { examineNats } = await import('./nats.ts')
    yield* examineNats(config.fleet)
  }
  const nameById = new Map<string, string>()
  for (const [name, hub] of Object.entries(config.hubs)) {
    const id = yield* examineHub({ name, hub, config, clock })
    const other = id === null ? undefined : nameById.get(id)
    if (id !== null && other === undefined) nameById.set(id, name)
    if (other === undefined) continue
    const text = `it is the same hub as ${other}: its apps are on MQTT twice, and in Home Assistant under only one name`
    yield about(`hub ${name}`).problem(text, `keep one of ${other} and ${name}, or correct an address`)
  }
}

const MARKS: Readonly<Record<Outcome, string>> = { ok: 'ok     ', note: 'note   ', problem: 'problem' }

export function lineOf({ subject, outcome, text, remedy }: Finding): string {
  const line = `${MARKS[outcome]}  ${subject}: ${text}`
  return remedy === '' ? line : `${line}\n         → ${remedy}`
}

/** Returns text for a bug report, without names, addresses and the folder of the configuration. */
export function reportOf(findings: readonly Finding[], config: Config, version: string): string {
  const { platform, arch, versions } = process
  const head = `hub2mqtt ${version}, Node ${versions.node}, ${platform} ${arch}`
  const hidden = findings.map((finding) => anonymous(config, finding.names)(lineOf(finding)))
  return ['```', head, ...hidden, '```'].join('\n')
}

/** Removes the names and addresses of the configuration, and `others`, from strings. */
function anonymous({ hubs, mqtt, discovery, fleet }: Config, others: readonly string[]) {
  const words = new Map(others.map((name) => [name, '<name>']))
  const hide = (urls: readonly string[], what: string) => {
    const names = new Set(urls.map((url) => new URL(url).hostname))
    for (const [index, name] of [...names].entries())
      words.set(name, index === 0 ? `<${what}>` : `<${what} ${index + 1}>`)
  }
  Object.entries(hubs).forEach(([name, { url }], index) => {
    words.set(name, `<hub ${index + 1}>`).set(new URL(url).hostname, '<address>')
  })
  hide(mqtt.url ?? [], 'broker')
  hide(fleet.nats, 'nats')
  // Hide the member's name, except in a numbered fleet, where the name is only a number.
  const membership = membershipOf({ fleet })
  if (membership?.mode === 'leases') words.set(membership.member, '<member>')
  if (fleet.username !== null) words.set(fleet.username, '<user>')
  if (fleet.bucket !== 'hub2mqtt') words.set(fleet.bucket, '<bucket>')
  if (mqtt.username !== null) words.set(mqtt.username, '<user>')
  if (mqtt.base_topic !== 'hub2mqtt') words.set(mqtt.base_topic, '<base>')
  if (discovery.prefix !== 'homeassistant') words.set(discovery.prefix, '<prefix>')
  // Prefer the longest word, because one word may be part of another. Replace all at once, for the same reason.
  const all = [...words.keys()].sort((one, other) => other.length - one.length).map(RegExp.escape)
  const pattern = new RegExp(`(?<![\\w-])(?:${all.join('|')})(?![\\w-])`, 'g')
  return (text: string): string =>
    withoutFolders(withoutAddresses(text.replace(pattern, (word) => words.get(word) ?? word)))
}

/** Removes the addresses in error messages of the system, to which names resolve. They may be followed by a port. */
const withoutAddresses = (text: string): string =>
  text.replace(/[\w.:%]+/g, (word) =>
    [word, word.slice(0, word.lastIndexOf(':'))].some((address) => isIP(address) !== 0) ? '<address>' : word,
  )

/** Removes the folders of files from places such as `(/home/alice/hub2mqtt.yaml line 4)`. */
const withoutFolders = (text: string): string => text.replace(/(?<=\()[^()]*[\\/](?=[^\\/()]* line \d)/g, '')

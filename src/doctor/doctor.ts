/** `hub2mqtt doctor`: looks at everything that an installation needs, and says what is wrong and what mends it. */
import type { Clock } from '../base/clock.ts'
import type { Config } from '../config/options.ts'
import { examineBroker } from './broker.ts'
import { about, type Finding, type Outcome } from './finding.ts'
import { examineHub } from './hub.ts'

export interface Examination {
  readonly config: Config
  /** Of the configuration; nothing in it is wrong. */
  readonly warnings: readonly string[]
  readonly clock: Clock
}

/** Yields each finding as soon as it is known. Changes nothing, at the hub or on the broker. */
export async function* examine({ config, warnings, clock }: Examination): AsyncGenerator<Finding> {
  const { ok, note } = about('configuration')
  const names = Object.keys(config.hubs)
  yield ok(`no mistakes; ${names.length === 1 ? 'one hub' : `${names.length} hubs`}`)
  for (const warning of warnings) yield note(warning)
  yield* await examineBroker({ config, clock })
  for (const [name, hub] of Object.entries(config.hubs)) yield* examineHub({ name, hub, config, clock })
}

const MARKS: Readonly<Record<Outcome, string>> = { ok: 'ok     ', note: 'note   ', problem: 'problem' }

/** One line, or two with a remedy. */
export function lineOf({ subject, outcome, text, remedy }: Finding): string {
  const line = `${MARKS[outcome]}  ${subject}: ${text}`
  return remedy === undefined ? line : `${line}\n         → ${remedy}`
}

interface ReportOptions {
  readonly config: Config
  readonly secrets: readonly string[]
  readonly version: string
}

/** What a bug report needs: versions and findings, without a name, an address or a secret of the configuration. */
export function reportOf(findings: readonly Finding[], { config, secrets, version }: ReportOptions): string {
  const hubs = Object.entries(config.hubs)
  const private_ = new Map<string, string>(secrets.map((secret) => [secret, '<secret>']))
  const hide = (text: string | null | undefined, as: string) => text && private_.set(text, as)
  hubs.forEach(([name, { url }], index) => {
    hide(name, `<hub ${index + 1}>`)
    hide(new URL(url).hostname, '<address>')
  })
  const { mqtt, discovery } = config
  if (mqtt.url !== null) hide(new URL(mqtt.url).hostname, '<broker>')
  hide(mqtt.username, '<user>')
  if (mqtt.base_topic !== 'hub2mqtt') hide(mqtt.base_topic, '<base>')
  if (discovery.prefix !== 'homeassistant') hide(discovery.prefix, '<prefix>')
  // The longest first, as one may be part of another.
  const words = [...private_].sort(([one], [other]) => other.length - one.length)
  const redacted = (text: string) =>
    words.reduce(
      (all, [word, as]) => all.replace(new RegExp(`(?<![\\w-])${RegExp.escape(word)}(?![\\w-])`, 'g'), as),
      text,
    )
  const { platform, arch, versions } = process
  const head = `hub2mqtt ${version}, Node ${versions.node}, ${platform} ${arch}`
  return ['```', head, ...findings.map((finding) => redacted(lineOf(finding))), '```'].join('\n')
}

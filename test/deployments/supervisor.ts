/**
 * Copies how Home Assistant's Supervisor validates the keys that this app can have, because no package registry offers
 * the Supervisor: `supervisor/apps/validate.py`, `apps/options.py`, `apps/const.py` and `validate.py` of 2026.07 and
 * later (https://github.com/home-assistant/supervisor). Unlike the Supervisor, these schemas reject all other keys, which
 * are mistakes, obsolete, or set to their defaults.
 */
import * as v from 'valibot'

const number = String.raw`-?\d*\.?\d+`
const range = String.raw`(\((${number})?,(${number})?\))?`
const optionType = v.pipe(
  v.string(),
  v.regex(new RegExp(`^(bool|email|url|port|device|(str|password|int|float)${range}|match\\(.*\\)|list\\(.+\\))\\??$`)),
)
const portName = v.pipe(v.string(), v.regex(/^\d+(\/tcp|\/udp)?$/))
const port = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(65_535))
const versionTag = v.pipe(v.string(), v.regex(/^\d+(\.\d+)*$/))
const webAddress = v.pipe(v.string(), v.url())
const flag = v.optional(v.boolean())

/** The names of folders for which the Supervisor logs no warning. */
const FOLDERS = 'data ssl backup share media homeassistant_config local_apps all_app_configs app_config'.split(' ')

export const appManifest = v.strictObject({
  name: v.string(),
  version: versionTag,
  slug: v.pipe(v.string(), v.regex(/^[-_.A-Za-z0-9]+$/)),
  description: v.string(),
  // The Supervisor has deprecated armhf, armv7 and i386.
  arch: v.array(v.picklist(['aarch64', 'amd64'])),
  url: v.optional(webAddress),
  image: v.optional(v.pipe(v.string(), v.regex(/^([a-zA-Z\-.:\d{}]+\/)*[-\w{}]+\/[-\w{}]+$/))),
  startup: v.optional(v.picklist(['initialize', 'system', 'services', 'application', 'once'])),
  init: flag,
  homeassistant: v.optional(versionTag),
  services: v.optional(v.array(v.pipe(v.string(), v.regex(/^(mqtt|mysql):(provide|want|need)$/)))),
  // Permits only objects: an older Supervisor ignores an unknown string, and the folder would be missing.
  map: v.optional(
    v.array(v.strictObject({ type: v.picklist(FOLDERS), read_only: flag, path: v.optional(v.string()) })),
  ),
  ingress: flag,
  panel_icon: v.optional(v.string()),
  ports: v.optional(v.record(portName, v.nullable(port))),
  options: v.optional(v.record(v.string(), v.unknown())),
  schema: v.optional(v.record(v.string(), optionType)),
})

export const translations = v.strictObject({
  configuration: v.optional(
    v.record(v.string(), v.strictObject({ name: v.string(), description: v.optional(v.nullable(v.string())) })),
  ),
  network: v.optional(v.record(portName, v.string())),
})

export const repository = v.strictObject({
  name: v.string(),
  url: v.optional(webAddress),
  maintainer: v.optional(v.string()),
})

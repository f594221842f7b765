/** Manifests of apps for real hubs, brought into the form that this hub reads. */
import { isRecord } from '../../base/json.ts'

export interface Adapted {
  readonly manifest: Readonly<Record<string, unknown>>
  /** What this hub has no use for. */
  readonly ignored: readonly string[]
}

/** Leaves fields of neither form as they are, so that they are refused. */
export function adapted(
  given: Readonly<Record<string, unknown>>,
  isOwn: (field: string) => boolean,
  isColor: (value: unknown) => boolean,
): Adapted {
  const fields = Object.entries(given)
  const own = new Map(fields.filter(([field]) => isOwn(field)))
  const ignored = fields.map(([field]) => field).filter((field) => !isOwn(field))
  for (const [field, adapt] of FORMS) if (own.has(field)) own.set(field, adapt(own.get(field)))

  const permissions = own.get('permissions')
  if (Array.isArray(permissions)) {
    own.set(
      'permissions',
      permissions.filter((permission) => !isForeign(permission)),
    )
    ignored.push(...permissions.filter(isForeign).map((permission) => `permission ${permission}`))
  }
  const { brandColor } = given
  if (!isColor(brandColor)) return { manifest: Object.fromEntries(own), ignored }
  return {
    manifest: { color: brandColor, ...Object.fromEntries(own) },
    ignored: ignored.filter((field) => field !== 'brandColor'),
  }
}

/** Prefers the English text. */
function textOf(value: unknown): unknown {
  if (!isRecord(value)) return value
  const [, text] = Object.entries(value).find(([language, one]) => language === 'en' && isText(one)) ?? []
  return text ?? Object.values(value).find(isText) ?? value
}

function nameOf(value: unknown): unknown {
  return isRecord(value) && Object.hasOwn(value, 'name') ? value['name'] : value
}

const FORMS: readonly (readonly [field: string, adapt: (value: unknown) => unknown])[] = [
  ['name', textOf],
  ['description', textOf],
  ['author', nameOf],
]

const isText = (value: unknown): value is string => typeof value === 'string'

/** Such as `homey:manager:api`: not a scope of this hub. */
const isForeign = (permission: unknown): permission is string => isText(permission) && permission.includes(':')

/** Values of the options that say who may use the page and its API. */
import * as v from 'valibot'
import { isGoodHash, isHash } from '../base/secrets.ts'
import { origin } from './addresses.ts'
import { text } from './schemas.ts'

const PASSWORD = 'at least 8 characters in one line, or a hash as hub2mqtt hash-password prints it'

/** Plain text, or a hash of it. */
export const pagePassword = v.pipe(
  text({ name: 'secret', expected: PASSWORD, pattern: /^[^\p{Cc}\p{Cs}]{8,4096}$/u }),
  v.check((given) => !isHash(given) || isGoodHash(given), `expected ${PASSWORD}`),
)

const TOKEN = 'expected {token: at-least-16-characters, access: read} or access: full'

/** A token of a script. It travels in an HTTP header. */
export const token = v.pipe(
  v.unknown(),
  v.transform((given) => (given instanceof Map ? Object.fromEntries(given) : null)),
  v.strictObject(
    {
      token: v.pipe(v.string(TOKEN), v.regex(/^[\x21-\x7e]{16,512}$/u, TOKEN)),
      access: v.picklist(['full', 'read'], TOKEN),
    },
    TOKEN,
  ),
  v.readonly(),
  v.metadata({ name: 'token', secretOf: ({ token: secret }: { readonly token: string }) => secret }),
)

/** One that may show the page in a frame. */
export const ancestor = v.pipe(
  v.union([v.literal('self'), origin], 'expected self, or an origin such as https://dashboard.lan'),
  v.metadata({ name: 'origin' }),
)

export const address = text({
  name: 'address',
  quotable: true,
  expected: 'an IP address such as 192.168.1.10',
  pattern: /^(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f]*:[0-9A-Fa-f:.]{1,45})$/u,
})

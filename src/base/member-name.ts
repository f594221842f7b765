/** A fleet member's name, which must be valid as a topic level, in a NATS key, and as a record key. */
export const MEMBER_NAME = /^(?!(?:cmd|result|__proto__|constructor|prototype)$)[a-z0-9_-]{1,32}$/

export function memberNameOf(host: string): string {
  const name = (host.split('.')[0] ?? '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9_-]/g, '-')
    .slice(-32)
  return MEMBER_NAME.test(name) ? name : `member${name}`
}

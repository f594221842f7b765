/** Names of members: a topic level, part of a key, and the key of a record, which three names cannot be. */
export const MEMBER_NAME = /^(?!(?:cmd|result|__proto__|constructor|prototype)$)[a-z0-9_-]{1,32}$/

/** Makes a member's name of that of a machine or a container. */
export function memberNameOf(host: string): string {
  const name = (host.split('.')[0] ?? '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9_-]/g, '-')
    .slice(-32)
  return MEMBER_NAME.test(name) ? name : `member${name}`
}

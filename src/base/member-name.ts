/** Names of members, which are a topic level and part of a key. */
export const MEMBER_NAME = /^(?!(?:cmd|result)$)[a-z0-9_-]{1,32}$/

/** Of a machine or a container, as a member's name. */
export function memberNameOf(host: string): string {
  const name = (host.split('.')[0] ?? '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9_-]/g, '-')
    .slice(-32)
  return MEMBER_NAME.test(name) ? name : `member${name}`
}

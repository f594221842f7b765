/** Validates topics, and matches them against filters. */

/** Returns why a topic cannot be published to; `undefined` if the topic is valid. */
export function topicFault(topic: string): string | undefined {
  if (topic === '') return 'it is empty'
  if (topic.includes('+') || topic.includes('#')) return 'it contains a wildcard'
  if (topic.includes('\0')) return 'it contains a NUL'
  if (!topic.isWellFormed()) return 'it is not valid Unicode'
  if (Buffer.byteLength(topic) > 65_535) return 'it is longer than 65,535 bytes'
  return undefined
}

export function topicMatcher(filters: readonly string[]): (topic: string) => boolean {
  const split = filters.map((filter) => filter.split('/'))
  return (topic) => {
    const levels = topic.split('/')
    for (const filter of split) if (matches(filter, levels)) return true
    return false
  }
}

/** Returns whether a filter matches a topic. Both arguments are split into levels. */
export function matches(filter: readonly string[], levels: readonly string[]): boolean {
  // A wildcard at the first level does not match topics that begin with `$`.
  if (levels[0]?.startsWith('$') && filter[0] !== levels[0]) return false
  for (let i = 0; i < filter.length; i += 1) {
    const level = filter[i]
    if (level === '#') return true
    if (i >= levels.length || (level !== '+' && level !== levels[i])) return false
  }
  return filter.length === levels.length
}

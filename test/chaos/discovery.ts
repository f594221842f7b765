/** Each app must have exactly one device. The topics in a device's discovery message show to which app it belongs. */

export const DEVICE = /^[^/]+\/(device\/[^/]+|[^/]+\/[^/]+\/[^/]+)\/config$/

interface DiscoveryFaults {
  readonly ghosts: string[]
  readonly missing: string[]
}

/** @param base the topics of apps without their ids @param appTopics the state topics of the existing apps */
export function discoveryFaults(
  retained: ReadonlyMap<string, string>,
  base: string,
  appTopics: ReadonlySet<string>,
): DiscoveryFaults {
  const ghosts: string[] = []
  const owners = new Map<string, string>()
  let others = 0
  for (const [topic, text] of retained) {
    if (!DEVICE.test(topic)) continue
    const [app, ...more] = new Set(references(text, base))
    if (app === undefined) others += 1
    else if (more.length > 0 || !appTopics.has(app) || owners.has(app)) ghosts.push(topic)
    else owners.set(app, topic)
  }
  const isOn = owners.size + others + ghosts.length > 0
  const missing = isOn ? [...appTopics].filter((app) => !owners.has(app)).map((app) => `a device for ${app}`) : []
  return { ghosts, missing }
}

export function references(text: string, base: string): string[] {
  return [...text.matchAll(/"([^"\\]+)"/g)].flatMap(([, word = '']) => {
    if (!word.startsWith(base)) return []
    return [base + (word.slice(base.length).split('/')[0] ?? '')]
  })
}

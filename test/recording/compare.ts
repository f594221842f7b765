import type { Seen, Stage } from './record.ts'

/** Lists the differences between recordings. Each difference names the stage, client and topic, and both values. */
export function differences(olds: readonly Stage[], news: readonly Stage[]): string[] {
  const names = (stages: readonly Stage[]) => stages.map(({ name }) => name).join(', ')
  if (names(olds) !== names(news)) return [`the stages differ\n  before: ${names(olds)}\n  after:  ${names(news)}`]
  return olds.flatMap((old, at) => {
    const [one, other] = [linesOf(old), linesOf(news[at] ?? old)]
    return [...new Set([...one.keys(), ...other.keys()])].flatMap((place) =>
      explain(`${old.name} | ${place}`, one.get(place) ?? [], other.get(place) ?? []),
    )
  })
}

/** Returns one line per message, by client and topic. */
function linesOf({ live, retained }: Stage): Map<string, string[]> {
  const lines = new Map<string, string[]>()
  for (const [client, topics] of Object.entries(live)) {
    for (const [topic, all] of Object.entries(topics)) lines.set(`${client} | ${topic}`, all.map(lineOf))
  }
  for (const [topic, seen] of Object.entries(retained)) {
    lines.set(`retained | ${topic}`, [seen === null ? 'cleared' : lineOf(seen)])
  }
  return lines
}

export function lineOf({ payload, ...rest }: Seen): string {
  return `${payload} ${JSON.stringify(rest)}`
}

function explain(place: string, before: readonly string[], after: readonly string[]): string[] {
  const most = Math.max(before.length, after.length)
  for (let at = 0; at < most; at += 1) {
    const [one, other] = [before[at], after[at]]
    if (one === other) continue
    const from = differsAt(one, other)
    const counts = before.length === after.length ? '' : ` (${before.length} messages before, ${after.length} after)`
    return [`${place} | message ${at + 1}${counts}\n  before: ${cut(one, from)}\n  after:  ${cut(other, from)}`]
  }
  return []
}

function differsAt(one = '', other = ''): number {
  let at = 0
  while (at < one.length && one[at] === other[at]) at += 1
  return at
}

const CONTEXT = 80

/** Returns the part of a line around a difference. */
function cut(line: string | undefined, at: number): string {
  if (line === undefined) return '(no such message)'
  const from = Math.max(0, at - CONTEXT)
  const to = Math.min(line.length, at + 2 * CONTEXT)
  return `${from > 0 ? '…' : ''}${line.slice(from, to)}${to < line.length ? '…' : ''}`
}

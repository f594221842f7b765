const LONGEST = 80

/** Counts the letters to add, remove, replace, or swap with a neighbour to turn `a` into `b`. */
function distance(a: string, b: string): number {
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replace = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swap = isSwap ? (before[j - 2] ?? 0) + 1 : replace
      next.push(Math.min(replace, swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    before = row
    row = next
  }
  return row[b.length] ?? 0
}

/** Returns the most similar of the `known` names, or `undefined` if none is similar enough to be a typo. */
export function nearest(name: string, known: readonly string[], prefix = ''): string | undefined {
  if (name.length > LONGEST) return undefined
  const plain = (text: string) => text.slice(prefix.length).toLowerCase().replaceAll('-', '_')
  const [best] = known
    .map((candidate) => ({ candidate, away: distance(plain(name), plain(candidate)) }))
    .sort((a, b) => a.away - b.away)
  if (best === undefined || best.away > Math.max(1, Math.floor(plain(best.candidate).length / 4))) return undefined
  return best.candidate
}

/** Returns `; did you mean port?`, or an empty string. Ignores the common `prefix` of all names. */
export function didYouMean(name: string, known: readonly string[], prefix = ''): string {
  const best = nearest(name, known, prefix)
  return best === undefined ? '' : `; did you mean ${best}?`
}

/** Amounts with a unit, as written in options and payloads: durations such as `500ms` or `7d`, and sizes. */

/** The units of durations in milliseconds, from the largest unit to the smallest. */
export const DURATION_UNITS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 } as const

/** Units and their sizes in the smallest unit, from the largest unit to the smallest. */
export type Units = Readonly<Record<string, number>>

export const amountPattern = (units: Units, digits: number): RegExp =>
  new RegExp(`^\\d{1,${digits}}(?:${Object.keys(units).join('|')})$`, 'u')

/** Converts a text that matches `amountPattern` to the smallest unit. */
export function amountIn(units: Units, written: string): number {
  const [, digits, unit = ''] = /^(\d+)(\D+)$/.exec(written) ?? []
  return Number(digits) * (units[unit] ?? Number.NaN)
}

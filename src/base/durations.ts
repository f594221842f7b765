/** Durations as written in options and payloads: `500ms`, `10s`, `2m`, `1h`, `7d`. */

/** The units of durations in milliseconds, from the largest unit to the smallest. */
export const DURATION_UNITS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 } as const

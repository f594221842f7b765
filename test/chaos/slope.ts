/** The slope of a straight line through samples, with its confidence interval. */
export interface Slope {
  readonly perMinute: number
  /** Half the width of the 95 % confidence interval. */
  readonly plusMinus: number
}

/** Fits the line by least squares. Widens the interval, because neighbouring samples are correlated. */
export function slopeOf(samples: readonly { readonly minute: number; readonly value: number }[]): Slope {
  const count = samples.length
  const mean = (numbers: readonly number[]) => numbers.reduce((sum, one) => sum + one, 0) / numbers.length
  const [x0, y0] = [mean(samples.map(({ minute }) => minute)), mean(samples.map(({ value }) => value))]
  const spread = samples.reduce((sum, { minute }) => sum + (minute - x0) ** 2, 0)
  const perMinute = samples.reduce((sum, { minute, value }) => sum + (minute - x0) * (value - y0), 0) / spread
  const residuals = samples.map(({ minute, value }) => value - y0 - perMinute * (minute - x0))
  const squares = residuals.reduce((sum, one) => sum + one ** 2, 0)
  const neighbours = residuals.slice(1).reduce((sum, one, index) => sum + one * (residuals[index] ?? 0), 0)
  const correlation = Math.min(0.95, Math.max(0, squares === 0 ? 0 : neighbours / squares))
  const inflation = (1 + correlation) / (1 - correlation)
  const error = Math.sqrt((squares / Math.max(1, count - 2) / spread) * inflation)
  return { perMinute, plusMinus: 1.96 * error }
}

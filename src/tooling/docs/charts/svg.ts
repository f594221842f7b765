/** What all charts share: the frame, the colours in light and dark, and a few shapes. */

export interface Chart {
  readonly title: string
  /** For who cannot see it. */
  readonly description: string
  readonly width: number
  readonly height: number
  readonly body: readonly string[]
}

/** Light, then dark. Paper and ink change together, so that a chart is legible wherever it stands. */
const COLOURS: Readonly<Record<string, readonly [property: string, light: string, dark: string]>> = {
  paper: ['fill', '#ffffff', '#161b22'],
  ink: ['fill', '#1f2328', '#e6edf3'],
  quiet: ['fill', '#59636e', '#9198a1'],
  grid: ['stroke', '#d1d9e0', '#3d444d'],
  hub2mqtt: ['fill', '#0969da', '#58a6ff'],
  bare: ['fill', '#818b98', '#8b949e'],
  plain: ['fill', '#bc4c00', '#f0883e'],
  line: ['stroke', '#0969da', '#58a6ff'],
}

const rules = (shade: 1 | 2) =>
  Object.entries(COLOURS)
    .map(([name, row]) => `.${name}{${row[0]}:${row[shade]}}`)
    .join('')

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** A tenth of a pixel is enough. */
export const px = (value: number): string => String(Math.round(value * 10) / 10)

export function svg({ title, description, width, height, body }: Chart): string {
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" font-family="system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif" font-size="12">`,
    `<title>${escaped(title)}</title>`,
    `<desc>${escaped(description)}</desc>`,
    `<style>${rules(1)}.line,.grid{fill:none}@media(prefers-color-scheme:dark){${rules(2)}.line,.grid{fill:none}}</style>`,
    `<rect class="paper" width="${width}" height="${height}" rx="6"/>`,
    text(title, { x: 20, y: 28, size: 15, weight: 600 }),
    ...body,
    '</svg>',
  ].join('\n')}\n`
}

/** `y` is the base line. */
export function text(
  words: string,
  {
    x,
    y,
    class: name = 'ink',
    anchor,
    size,
    weight,
  }: {
    readonly x: number
    readonly y: number
    readonly class?: string
    readonly anchor?: 'start' | 'middle' | 'end'
    readonly size?: number
    readonly weight?: number
  },
): string {
  const more = [
    anchor === undefined ? '' : ` text-anchor="${anchor}"`,
    size === undefined ? '' : ` font-size="${size}"`,
    weight === undefined ? '' : ` font-weight="${weight}"`,
  ].join('')
  return `<text class="${name}" x="${px(x)}" y="${px(y)}"${more}>${escaped(words)}</text>`
}

export const bar = (name: string, x: number, y: number, width: number, height: number): string =>
  `<rect class="${name}" x="${px(x)}" y="${px(y)}" width="${px(width)}" height="${px(height)}" rx="2"/>`

export const dot = (name: string, x: number, y: number, radius: number): string =>
  `<circle class="${name}" cx="${px(x)}" cy="${px(y)}" r="${radius}"/>`

export const path = (
  name: string,
  points: readonly (readonly [x: number, y: number])[],
  { width = 1, dash = '' }: { readonly width?: number; readonly dash?: string } = {},
): string => {
  const steps = points.map(([x, y], index) => `${index === 0 ? 'M' : 'L'}${px(x)} ${px(y)}`).join('')
  return `<path class="${name}" d="${steps}" stroke-width="${width}"${dash === '' ? '' : ` stroke-dasharray="${dash}"`}/>`
}

/** From a range of values to a range of pixels. */
export const linear =
  ([low, high]: readonly [number, number], [from, to]: readonly [number, number]) =>
  (value: number) =>
    from + ((value - low) / (high - low)) * (to - from)

export const logarithmic = (values: readonly [number, number], pixels: readonly [number, number]) => {
  const scale = linear([Math.log10(values[0]), Math.log10(values[1])], pixels)
  return (value: number) => scale(Math.log10(value))
}

/** The next number upwards that an axis may end with. */
export function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value))
  return ([1, 1.5, 2, 3, 4, 5, 6, 8].find((step) => step * power >= value) ?? 10) * power
}

/** As many digits as one wants to read. */
export function figure(value: number): string {
  const digits = value >= 100 ? 3 : 2
  return value.toLocaleString('en', { minimumSignificantDigits: digits, maximumSignificantDigits: digits })
}

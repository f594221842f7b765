/** Formats of numbers with a unit. */
import { accept, type Format, refuse } from './format.ts'

interface Unit {
  readonly suffix: string
  readonly factor: number
}

/** A number with a unit, kept as a number of the smallest unit. Units go from large to small. */
function quantity(name: string, units: readonly Unit[], minimum: number, maximum: number): Format<number> {
  const show = (value: number): string => {
    const unit = units.find(({ factor }) => value % factor === 0 && value >= factor) ?? units.at(-1)
    return unit === undefined ? String(value) : `${value / unit.factor}${unit.suffix}`
  }
  const expected = `a ${name} from ${show(minimum)} to ${show(maximum)}`
  const pattern = new RegExp(`^(\\d{1,12})(${units.map(({ suffix }) => suffix).join('|')})$`)
  return {
    name,
    expected,
    quotable: true,
    schema: { type: 'string', pattern: pattern.source },
    parse: (raw) => {
      const [, digits, suffix] = (typeof raw === 'string' ? pattern.exec(raw) : null) ?? []
      const factor = units.find((unit) => unit.suffix === suffix)?.factor
      if (digits === undefined || factor === undefined) {
        return refuse(`${expected}, written with its unit (${units.map((unit) => unit.suffix).join(', ')})`)
      }
      const value = Number(digits) * factor
      return value >= minimum && value <= maximum ? accept(value) : refuse(expected)
    },
    fromText: (value) => value,
    show,
  }
}

const TIME: readonly Unit[] = [
  { suffix: 'h', factor: 3_600_000 },
  { suffix: 'm', factor: 60_000 },
  { suffix: 's', factor: 1000 },
  { suffix: 'ms', factor: 1 },
]
const SIZE: readonly Unit[] = [
  { suffix: 'MiB', factor: 1_048_576 },
  { suffix: 'KiB', factor: 1024 },
  { suffix: 'B', factor: 1 },
]

/** `500ms`, `10s`, `2m`, `1h`; the value is in milliseconds, as are the bounds. */
export const duration = (minimum: number, maximum: number) => quantity('duration', TIME, minimum, maximum)

/** `64KiB`, `1MiB`; the value is in bytes, as are the bounds. */
export const size = (minimum: number, maximum: number) => quantity('size', SIZE, minimum, maximum)

/** Planted bug: the API key is masked only in outgoing texts. The hub's texts are truncated before they are masked. */
import { Scrubber } from '../../../src/observability/scrub.ts'

const { text, line, payload } = Scrubber.prototype
let leaving = false

function within(scrub: () => string): string {
  leaving = true
  try {
    return scrub()
  } finally {
    leaving = false
  }
}

Scrubber.prototype.text = function (whole) {
  return leaving ? text.call(this, whole) : whole
}
Scrubber.prototype.line = function (whole) {
  return within(() => line.call(this, whole))
}
Scrubber.prototype.payload = function (whole) {
  return within(() => payload.call(this, whole))
}
